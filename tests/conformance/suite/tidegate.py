"""What only Tidegate does: its own rules, and what the reference gets wrong."""

import json

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from .target import OK, OVER_LIMIT, Case, Unit, descriptor, fresh


class Tidegate(Case):
    def headers(self, answer):
        return {header.key.lower(): header.value for header in answer.response_headers_to_add}

    def test_a_window_that_is_no_unit_is_unknown(self):
        answer = self.ask(descriptor(("bucket", fresh())), domain="tidegate")
        self.assertEqual(answer.statuses[0].current_limit.unit, Unit.UNKNOWN)
        self.assertEqual(answer.statuses[0].current_limit.name, "bucket")
        self.assertIn("2 per 1m30s, token_bucket", str(answer.dynamic_metadata))

    def test_counts_clip_to_32_bits(self):
        status = self.ask(descriptor(("large", fresh())), domain="tidegate").statuses[0]
        self.assertEqual(status.limit_remaining, 2**32 - 1)
        self.assertEqual(status.current_limit.requests_per_unit, 2**32 - 1)

    def test_the_metadata_of_a_rule_is_told_when_it_admits(self):
        answer = self.ask(descriptor(("told", fresh())), domain="tidegate")
        self.assertIn("gold", str(answer.dynamic_metadata))

    def test_a_refusal_says_which_rule_and_brings_a_problem(self):
        asked = descriptor(("told", fresh()))
        self.ask(asked, domain="tidegate", hits=3)
        answer = self.ask(asked, domain="tidegate")
        self.assertEqual(answer.overall_code, OVER_LIMIT)
        self.assertIn("told", str(answer.dynamic_metadata))
        problem = json.loads(answer.raw_body)
        self.assertEqual(problem["status"], 429)
        self.assertEqual(problem["violated-policies"], ["told"])
        headers = self.headers(answer)
        self.assertEqual(headers["content-type"], "application/problem+json")
        self.assertEqual((headers["x-ratelimit-limit"], headers["x-ratelimit-remaining"]), ("3", "0"))
        self.assertGreaterEqual(int(headers["retry-after"]), 1)

    def test_an_admitted_request_brings_headers(self):
        headers = self.headers(self.ask(descriptor(("told", fresh())), domain="tidegate"))
        self.assertEqual((headers["x-ratelimit-limit"], headers["x-ratelimit-remaining"]), ("3", "2"))
        self.assertNotIn("retry-after", headers)

    def test_a_refund_gives_back_and_never_refuses(self):
        key = fresh()
        self.ask(descriptor(("told", key)), domain="tidegate", hits=3)
        refund = self.ask(descriptor(("told", key), hits=2, negative=True), domain="tidegate")
        self.assertEqual(refund.overall_code, OK)
        answers = [self.ask(descriptor(("told", key)), domain="tidegate").overall_code for _ in range(3)]
        self.assertEqual(answers, [OK, OK, OVER_LIMIT])

    def test_an_override_without_a_unit_is_an_error_and_the_server_lives(self):
        for unit in [Unit.UNKNOWN, 99]:
            error = self.refused_with(descriptor(("fifty", fresh()), limit=(1, unit)))
            self.assertIn("unit", error.details())
        self.assertEqual(self.ask(descriptor(("fifty", fresh()))).overall_code, OK)

    def test_keys_and_values_are_never_joined(self):
        run = fresh()
        first = self.ask(descriptor(("a", f"{run}_b"), ("b", "c")), domain="tidegate")
        second = self.ask(descriptor(("a", run), ("b", "b_c")), domain="tidegate")
        third = self.ask(descriptor(("a_b", run)), domain="tidegate")
        self.assertEqual([it.overall_code for it in (first, second, third)], [OK, OK, OK])

    def test_the_server_describes_itself(self):
        services = ProtoReflectionDescriptorDatabase(self.channel).get_services()
        self.assertIn("envoy.service.ratelimit.v3.RateLimitService", services)
        self.assertIn("grpc.health.v1.Health", services)
        database = ProtoReflectionDescriptorDatabase(self.channel)
        file = database.FindFileContainingSymbol("envoy.service.ratelimit.v3.RateLimitService")
        self.assertEqual(file.service[0].method[0].name, "ShouldRateLimit")

    def test_the_whole_server_has_a_health(self):
        stub = health_pb2_grpc.HealthStub(self.channel)
        watch = stub.Watch(health_pb2.HealthCheckRequest(service=""), timeout=10)
        self.assertEqual(next(iter(watch)).status, health_pb2.HealthCheckResponse.SERVING)
        watch.cancel()

    def test_compression_is_declined(self):
        stub_call = self.channel.unary_unary("/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit")
        with self.assertRaises(grpc.RpcError) as caught:
            stub_call(b"\x0a\x01x" * 100, timeout=10, compression=grpc.Compression.Gzip)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNIMPLEMENTED)
