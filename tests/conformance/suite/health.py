"""The gRPC health protocol."""

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from .target import Case


class Health(Case):
    def check(self, service: str):
        stub = health_pb2_grpc.HealthStub(self.channel)
        return stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=10).status

    def test_the_service_is_serving(self):
        self.assertEqual(self.check("ratelimit"), health_pb2.HealthCheckResponse.SERVING)

    def test_an_unknown_service_is_not_found(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.check("no.such.Service")
        self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)
