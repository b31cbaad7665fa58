"""The server under test, and short ways to ask it."""

import itertools
import json
import unittest
import urllib.error
import urllib.request
import uuid

import grpc

from .stubs import ratelimit, rls, rls_grpc

OK = rls.RateLimitResponse.OK
OVER_LIMIT = rls.RateLimitResponse.OVER_LIMIT
Unit = rls.RateLimitResponse.RateLimit

# How long an answer may take before it counts as missing; a local server takes less than a millisecond.
PATIENCE_SECONDS = 10

_addresses: dict[str, str | None] = {}
# Every run counts on keys of its own, so that it can be repeated against a server that remembers.
_run = uuid.uuid4().hex[:12]
_numbers = itertools.count()


def choose(grpc_address: str, http_address: str | None) -> None:
    _addresses.update(grpc=grpc_address, http=http_address)


def answers() -> bool:
    """Whether anybody takes connections for gRPC there."""
    with grpc.insecure_channel(_addresses["grpc"]) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=PATIENCE_SECONDS)
        except grpc.FutureTimeoutError:
            return False
    return True


def fresh() -> str:
    """A value that nobody has used yet."""
    return f"{_run}-{next(_numbers)}"


def descriptor(*entries: tuple[str, str], hits=None, negative=False, limit=None):
    made = ratelimit.RateLimitDescriptor()
    for key, value in entries:
        made.entries.add(key=key, value=value)
    if hits is not None:
        made.hits_addend.value = hits
    if negative:
        made.is_negative_hits = True
    if limit is not None:
        made.limit.requests_per_unit, made.limit.unit = limit
    return made


class Case(unittest.TestCase):
    """A case: a channel to the server, and what is asked and expected most."""

    @classmethod
    def setUpClass(cls):
        cls.channel = grpc.insecure_channel(_addresses["grpc"])
        cls.stub = rls_grpc.RateLimitServiceStub(cls.channel)
        cls.http = _addresses["http"]

    @classmethod
    def tearDownClass(cls):
        cls.channel.close()

    def ask(self, *descriptors, domain="contract", hits=0):
        request = rls.RateLimitRequest(domain=domain, descriptors=descriptors, hits_addend=hits)
        return self.stub.ShouldRateLimit(request, timeout=PATIENCE_SECONDS)

    def refused_with(self, *descriptors, domain="contract"):
        with self.assertRaises(grpc.RpcError) as caught:
            self.ask(*descriptors, domain=domain)
        return caught.exception

    def codes(self, response):
        return [status.code for status in response.statuses]

    def remaining(self, response):
        return [status.limit_remaining for status in response.statuses]

    def post_json(self, body: bytes):
        request = urllib.request.Request(f"http://{self.http}/json", data=body, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.read()

    def post(self, message: dict):
        status, body = self.post_json(json.dumps(message).encode())
        return status, json.loads(body)
