"""WebSocket through the gateway: Python's `websockets` on both sides."""

import os
import threading

from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from websockets.sync.server import serve

from .gateway import THREE, Gateway
from .process import PATIENCE_SECONDS, World, eventually, free_port


class Echo:
    """A server that sends back what it gets, and notes how each connection ended."""

    def __init__(self, test: World):
        self.closed = []
        self.server = serve(self.run, "127.0.0.1", 0, max_size=None, subprotocols=["echo"])
        self.port = self.server.socket.getsockname()[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        test.addCleanup(self.server.shutdown)

    def run(self, connection):
        try:
            for message in connection:
                if message == "close":
                    connection.close(4001, "as asked")
                connection.send(message)
        except ConnectionClosed:
            pass
        self.closed.append((connection.close_code, connection.close_reason))


class WebSocket(World):
    def setUp(self):
        super().setUp()
        self.echo = Echo(self)

    def start_gateway(self, idle="1m", end=""):
        self.gateway = Gateway(
            self,
            f"""
gateway:
  upstreams:
    echo: {{ targets: [http://127.0.0.1:{self.echo.port}], timeouts: {{ idle: {idle} }} }}
  routes:
    - path: /*
      upstream: echo
{end}
""",
        )

    def connect(self, **options):
        timeouts = {"open_timeout": PATIENCE_SECONDS, "close_timeout": PATIENCE_SECONDS}
        url = f"ws://127.0.0.1:{self.gateway.port}/"
        return self.enterContext(connect(url, max_size=None, subprotocols=["echo"], **timeouts, **options))

    def test_messages_of_every_kind_and_size(self):
        self.start_gateway()
        for compression in ("deflate", None):
            connection = self.connect(compression=compression)
            self.assertEqual(connection.subprotocol, "echo")
            for message in ["", "hello", "ümlaut" * 1000, b"\x00\xff", os.urandom(10_000_000)]:
                connection.send(message)
                self.assertEqual(connection.recv(PATIENCE_SECONDS), message)
            # In fragments.
            connection.send(iter(["one ", "two ", "three"]))
            self.assertEqual(connection.recv(PATIENCE_SECONDS), "one two three")
            self.assertTrue(connection.ping().wait(PATIENCE_SECONDS))
            connection.close()

    def test_many_messages_in_flight(self):
        self.start_gateway()
        connection = self.connect()
        sender = threading.Thread(target=lambda: [connection.send(str(it)) for it in range(5000)])
        sender.start()
        self.assertEqual([int(connection.recv(PATIENCE_SECONDS)) for _ in range(5000)], list(range(5000)))
        sender.join()

    def test_either_side_closes(self):
        self.start_gateway()
        connection = self.connect()
        connection.close(4000, "enough")
        eventually("the server knows", lambda: self.echo.closed)
        self.assertEqual(self.echo.closed, [(4000, "enough")])
        self.assertEqual((connection.close_code, connection.close_reason), (4000, "enough"))
        connection = self.connect()
        connection.send("close")
        with self.assertRaises(ConnectionClosed):
            connection.recv(PATIENCE_SECONDS)
        self.assertEqual((connection.close_code, connection.close_reason), (4001, "as asked"))

    def test_a_client_that_is_gone_is_noticed(self):
        self.start_gateway()
        connection = self.connect()
        connection.send("hello")
        connection.recv(PATIENCE_SECONDS)
        connection.socket.close()
        eventually("the server knows", lambda: self.echo.closed)
        self.assertEqual(self.echo.closed[0][0], 1006)

    def test_silence_ends_a_connection_and_pings_keep_it(self):
        self.start_gateway(idle="1s")
        kept = self.connect(ping_interval=0.2)
        silent = self.connect(ping_interval=None)
        with self.assertRaises(ConnectionClosed):
            silent.recv(PATIENCE_SECONDS)
        kept.send("hello")
        self.assertEqual(kept.recv(PATIENCE_SECONDS), "hello")

    def test_both_sides_are_told_when_the_gateway_stops(self):
        self.start_gateway(end="drain: { grace: 1000h }")
        connection = self.connect()
        connection.send("hello")
        self.assertEqual(connection.recv(PATIENCE_SECONDS), "hello")
        self.gateway.terminate()
        with self.assertRaises(ConnectionClosed):
            connection.recv(PATIENCE_SECONDS)
        self.assertEqual((connection.close_code, connection.close_reason), (1001, "going away"))
        eventually("the server knows", lambda: self.echo.closed)
        self.assertEqual(self.echo.closed, [(1001, "going away")])
        self.assertEqual(self.gateway.program.wait(PATIENCE_SECONDS), 0)

    def test_a_handshake_is_charged_and_denied_before_the_upstream_sees_it(self):
        self.start_gateway()
        for _ in range(3):
            self.connect(additional_headers=THREE).close()
        with self.assertRaises(InvalidStatus) as raised:
            self.connect(additional_headers=THREE)
        response = raised.exception.response
        self.assertEqual(response.status_code, 429)
        self.assertGreaterEqual(int(response.headers["retry-after"]), 1)
        eventually("three were open", lambda: len(self.echo.closed) == 3)

    def test_an_upstream_that_refuses_is_heard(self):
        self.start_gateway()
        with self.assertRaises(InvalidStatus) as raised:
            self.connect(additional_headers={"sec-websocket-version": "12"})
        self.assertIn(raised.exception.response.status_code, (400, 426))

    def test_no_upstream_is_no_handshake(self):
        self.echo.port = free_port()
        self.start_gateway()
        with self.assertRaises(InvalidStatus) as raised:
            self.connect()
        self.assertIn(raised.exception.response.status_code, (502, 503))
