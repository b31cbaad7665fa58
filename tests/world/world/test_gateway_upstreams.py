"""Upstreams that come and go behind the gateway, under load."""

from .gateway import THREE, Gateway, Nginx, Uvicorn
from .load import Load
from .process import World, eventually, free_port, get

# Every restart is long enough that each of its phases meets requests, and short enough for CI.
REQUESTS_BETWEEN = 100


def with_retries(*upstreams, extra="") -> str:
    urls = ", ".join(it.url for it in upstreams)
    return f"""
gateway:
  upstreams:
    api: [{urls}]
  routes:
    - path: /*
      upstream: api
      retry: {{ on: [connect, reset, 502, 503, 504] }}
{extra}"""


class Restarts:
    """Tests for a World with a kind of upstream, self.kind."""

    def setUp(self):
        super().setUp()
        self.both = [self.kind(self, "first"), self.kind(self, "second")]
        self.gateway = Gateway(self, with_retries(*self.both))

    def test_restarts_in_turn_are_not_noticed(self):
        load = Load(self, self.gateway.port)
        for upstream in self.both * 2:
            load.until_more(REQUESTS_BETWEEN)
            self.stop(upstream.program, "terminate")
            load.until_more(REQUESTS_BETWEEN)
            upstream.start()
        load.until_more(REQUESTS_BETWEEN)
        self.assertEqual(set(load.stop()), {200})

    def test_both_down_is_no_denial(self):
        for upstream in self.both:
            self.stop(upstream.program, "terminate")
        statuses = {self.gateway.get().status for _ in range(50)}
        self.assertLessEqual(statuses, {502, 503})
        self.assertLessEqual({self.gateway.get(method="POST").status for _ in range(5)}, {502, 503})
        self.both[0].start()
        # The budget of retries is used up, so the first requests may still meet the one that is down.
        eventually("the one that is back is used", lambda: self.gateway.get().status == 200)
        self.assertEqual({self.gateway.get().status for _ in range(20)}, {200})


class UvicornRestarts(Restarts, World):
    kind = Uvicorn

    def test_a_kill_is_noticed_only_by_those_whose_response_had_begun(self):
        small = Load(self, self.gateway.port)
        large = Load(self, self.gateway.port, "/bytes/2000000?length=1", n_clients=4)
        for upstream in self.both:
            small.until_more(REQUESTS_BETWEEN)
            large.until_more(10)
            self.stop(upstream.program, "kill")
            small.until_more(REQUESTS_BETWEEN)
            upstream.start()
        large.until_more(10)
        # The head of a small response and its body are two writes, between which uvicorn may be killed.
        self.assertLessEqual(set(small.stop()), {200, Load.CUT_OFF})
        self.assertLessEqual(set(large.stop()), {200, Load.CUT_OFF})
        self.assertGreater(large.counts[200], 10)

    def test_a_request_that_is_not_idempotent_is_sent_once(self):
        """Killed while they hold a POST: nobody knows what became of it, so the client is told."""
        posts = Load(self, self.gateway.port, "/hold", "POST", n_clients=1)
        held = []

        def is_held():
            held[:] = [it for it in self.both if direct(it, "/held") == "1"]
            return held

        eventually("one of them has the request", is_held)
        self.stop(held[0].program, "kill")
        eventually("the client was told", lambda: posts.counts.total() > 0)
        self.assertEqual(set(posts.counts), {502})
        # The next one is held by the other.
        other = next(it for it in self.both if it is not held[0])
        eventually("the next request is sent to the other", lambda: direct(other, "/held") == "1")
        direct(other, "/release")
        posts.stop()
        self.assertLessEqual(set(posts.counts), {200, 502})


class NginxRestarts(Restarts, World):
    kind = Nginx


class NothingBehind(World):
    def test_a_limit_holds_though_the_upstream_is_down(self):
        gateway = Gateway(self, f"gateway: {{ upstream: http://127.0.0.1:{free_port()} }}")
        statuses = [gateway.get(headers=THREE).status for _ in range(5)]
        self.assertEqual(statuses[3:], [429, 429])
        self.assertLessEqual(set(statuses[:3]), {502, 503})
        self.assertLessEqual({gateway.get().status for _ in range(20)}, {502, 503})


def direct(upstream, path) -> str:
    """Asks an upstream itself."""
    return get(upstream.port, path).body
