"""Requests that make no sense, in the words and codes of envoyproxy/ratelimit."""

import grpc

from .target import OK, Case, descriptor, fresh


class Requests(Case):
    def test_an_empty_domain_is_an_error(self):
        error = self.refused_with(descriptor(("fifty", fresh())), domain="")
        self.assertEqual(error.code(), grpc.StatusCode.UNKNOWN)
        self.assertEqual(error.details(), "rate limit domain must not be empty")

    def test_no_descriptors_are_an_error(self):
        error = self.refused_with()
        self.assertEqual(error.code(), grpc.StatusCode.UNKNOWN)
        self.assertEqual(error.details(), "rate limit descriptor list must not be empty")

    def test_a_descriptor_without_entries_has_no_limit(self):
        answer = self.ask(descriptor())
        self.assertEqual((answer.overall_code, self.codes(answer)), (OK, [OK]))

    def test_an_unknown_method_is_unimplemented(self):
        call = self.channel.unary_unary("/envoy.service.ratelimit.v3.RateLimitService/NoSuchMethod")
        with self.assertRaises(grpc.RpcError) as caught:
            call(b"", timeout=10)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNIMPLEMENTED)
