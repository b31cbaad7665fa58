"""The end of the gateway, and that of the Redis behind it."""

from .gateway import HUNDRED, THREE, Gateway, Uvicorn, to_upstream
from .http2 import Http2
from .load import Load
from .process import PATIENCE_SECONDS, World, eventually, free_port, get, is_listening, tool

N_REQUESTS = 20


class Drain(World):
    def setUp(self):
        super().setUp()
        self.api = Uvicorn(self)
        self.gateway = Gateway(self, to_upstream(self.api))

    def test_requests_in_flight_are_answered_and_new_ones_are_not_taken(self):
        connections = [self.gateway.connect() for _ in range(N_REQUESTS)]
        for connection in connections:
            connection.request("GET", "/hold")
        streams = range(1, 2 * N_REQUESTS, 2)
        http2 = Http2(self, self.gateway.port)
        for stream in streams:
            http2.request(stream, path="/hold")
        idle = self.gateway.connect()
        idle.connect()
        eventually("all are held", lambda: get(self.api.port, "/held").body == str(2 * N_REQUESTS))
        self.gateway.terminate()
        eventually("new connections are refused", lambda: not is_listening(self.gateway.port))
        self.assertEqual(idle.sock.recv(1), b"", "an idle connection is closed")
        self.assertIsNone(self.gateway.program.poll(), "it waits for its requests")
        get(self.api.port, "/release")
        for connection in connections:
            with connection.getresponse() as response:
                self.assertEqual((response.status, response.read()), (200, b"released\n"))
        http2.until_done(*streams)
        self.assertEqual([http2.statuses.get(it) for it in streams], [200] * N_REQUESTS)
        self.assertEqual(self.gateway.program.wait(PATIENCE_SECONDS), 0)

    def test_a_download_in_progress_is_finished(self):
        n_bytes = 30_000_000
        connection = self.gateway.connect()
        connection.request("GET", f"/bytes/{n_bytes}?length=1")
        response = connection.getresponse()
        n_read = len(response.read(100_000))
        self.gateway.terminate()
        eventually("new connections are refused", lambda: not is_listening(self.gateway.port))
        n_read += len(response.read())
        self.assertEqual(n_read, n_bytes)
        self.assertEqual(self.gateway.program.wait(PATIENCE_SECONDS), 0)

    def test_no_request_is_lost_under_load(self):
        """Clients that keep their connections are answered on them until a response says that it is the last one."""
        load = Load(self, self.gateway.port)
        load.until_more(100)
        self.gateway.terminate()
        self.assertEqual(self.gateway.program.wait(PATIENCE_SECONDS), 0)
        # A response that closes its connection is followed by a new one, which is refused in the end.
        self.assertEqual(set(load.stop()), {200, Load.NO_RESPONSE})


class RedisKilled(World):
    def test_no_request_fails_and_limits_go_on(self):
        port = free_port()
        options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self.folder)]
        redis = self.start(tool("redis-server"), *options, port=port, name="redis")
        gateway = Gateway(self, to_upstream(Uvicorn(self)), "--store", f"redis://127.0.0.1:{port}")
        unlimited = Load(self, gateway.port)
        limited = Load(self, gateway.port, headers=HUNDRED, n_clients=2)
        unlimited.until_more(100)
        eventually("the limit is reached", lambda: limited.counts[429] > 0)
        self.assertEqual(gateway.get(headers=THREE).status, 200)
        self.stop(redis)
        unlimited.until_more(200)
        n_allowed = limited.counts[200]
        limited.until_more(100)
        self.assertEqual(set(unlimited.stop()), {200})
        self.assertEqual(set(limited.stop()), {200, 429})
        self.assertGreaterEqual(n_allowed, 100)
        # A node that is alone goes on with what it knows.
        self.assertEqual([gateway.get(headers=THREE).status for _ in range(4)][2:], [429, 429])
        redis = self.start(tool("redis-server"), *options, port=port, name="redis-again")
        eventually("it is back", lambda: "circuit breaker closed" in gateway.log().lower())
        self.assertEqual(gateway.get().status, 200)
