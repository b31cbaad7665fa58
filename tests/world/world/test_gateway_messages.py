"""WebSocket messages limited by the gateway, between a client and a server of other people."""

import json
import threading

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.sync.server import serve

from .gateway import Gateway
from .process import PATIENCE_SECONDS, World

YEAR = "365d"
LARGE = 10 * 1024 * 1024


class Chat:
    """A WebSocket server that sends every message back, and records what became of its connections."""

    def __init__(self, test: World, handler=None):
        self.messages = []
        self.closes = []
        self.closed = threading.Semaphore(0)
        self.handler = handler or self.echo
        self.server = serve(self.handle, "127.0.0.1", 0, max_size=None)
        self.port = self.server.socket.getsockname()[1]
        thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        thread.start()
        test.addCleanup(thread.join, PATIENCE_SECONDS)
        test.addCleanup(self.server.shutdown)

    def handle(self, connection):
        try:
            self.handler(connection)
        except ConnectionClosed:
            pass
        connection.wait_closed(PATIENCE_SECONDS)
        self.closes.append((connection.close_code, connection.close_reason))
        self.closed.release()

    def echo(self, connection):
        for message in connection:
            self.messages.append(message)
            connection.send(message)

    def wait_closed(self):
        """The code and the reason that the next connection was closed with."""
        assert self.closed.acquire(timeout=PATIENCE_SECONDS), "it was not closed"
        return self.closes.pop(0)


class Messages(World):
    def start_gateway(self, limits: dict, handler=None) -> Chat:
        chat = Chat(self, handler)
        settings = {
            "gateway": {
                "upstreams": {"chat": f"http://127.0.0.1:{chat.port}"},
                "routes": [{"path": "/chat", "upstream": "chat", "websocket": limits}],
            }
        }
        # JSON is YAML too.
        self.gateway = Gateway(self, json.dumps(settings))
        return chat

    def connect(self, user="42", **options):
        url = f"ws://127.0.0.1:{self.gateway.port}/chat"
        headers = {"x-user": user}
        return self.enterContext(connect(url, additional_headers=headers, max_size=None, proxy=None, **options))

    def assert_closed(self, client, chat: Chat, code: int, reason: str):
        with self.assertRaises(ConnectionClosed) as closed:
            client.recv(timeout=PATIENCE_SECONDS)
        self.assertEqual((closed.exception.rcvd.code, closed.exception.rcvd.reason), (code, reason))
        self.assertEqual(chat.wait_closed(), (code, reason))

    def test_messages_of_a_connection_are_limited(self):
        chat = self.start_gateway({"messages": {"limit": 3, "window": YEAR}})
        client = self.connect()
        self.assertIn("permessage-deflate", client.response.headers["Sec-WebSocket-Extensions"])
        # A message in fragments is one message, and one that is compressed counts as it is.
        for message in ("one", ["in ", "three ", "parts"], b"\0" * 100_000):
            client.send(message)
        received = [client.recv(timeout=PATIENCE_SECONDS) for _ in range(3)]
        self.assertEqual(received, ["one", "in three parts", b"\0" * 100_000])
        client.send("four")
        self.assert_closed(client, chat, 1008, "message limit reached")
        self.assertEqual(chat.messages, received)
        # The next connection begins anew.
        other = self.connect(compression=None)
        other.send("five")
        self.assertEqual(other.recv(timeout=PATIENCE_SECONDS), "five")
        other.close()
        self.assertEqual(chat.wait_closed(), (1000, ""))

    def test_rules_limit_the_messages_of_a_user(self):
        by_user = [{"chat_user": "header:x-user", "message": "constant:1"}]
        chat = self.start_gateway({"descriptors": by_user})
        first, second, other = self.connect(), self.connect(), self.connect(user="43")
        for client in (first, second, first, second, first):
            client.send("message")
            self.assertEqual(client.recv(timeout=PATIENCE_SECONDS), "message")
        second.send("one too many")
        self.assert_closed(second, chat, 1008, "message limit reached")
        other.send("message")
        self.assertEqual(other.recv(timeout=PATIENCE_SECONDS), "message")

    def test_a_flood_of_pings_is_closed(self):
        received = []
        limits = {"control_frames": {"limit": 20, "window": YEAR}}
        chat = self.start_gateway(limits, lambda connection: received.extend(connection))
        client = self.connect(ping_interval=None)
        with self.assertRaises(ConnectionClosed):
            for number in range(100_000):
                client.ping()
                client.send(f"message {number}")
        self.assert_closed(client, chat, 1008, "control frame limit reached")
        self.assertEqual(received, [f"message {number}" for number in range(20)])

    def test_a_pause_holds_messages_and_not_replies(self):
        pause = {"messages": {"limit": 2, "window": "1s"}, "when_over": "pause", "max_pause": "20s"}
        chat = self.start_gateway(pause)
        client = self.connect()
        messages = [f"message {number}" for number in range(7)]
        for message in messages:
            client.send(message)
        received = [client.recv(timeout=PATIENCE_SECONDS) for _ in messages]
        self.assertEqual(received, messages)
        client.close()
        self.assertEqual(chat.wait_closed(), (1000, ""))

    def test_a_pause_ends_in_a_close(self):
        pause = {"messages": {"limit": 1, "window": YEAR}, "when_over": "pause", "max_pause": "100ms"}
        replies = [f"reply {number}" for number in range(100)]

        def answer(connection):
            connection.recv(timeout=PATIENCE_SECONDS)
            for reply in replies:
                connection.send(reply)
            connection.recv(timeout=PATIENCE_SECONDS)

        chat = self.start_gateway(pause, answer)
        client = self.connect()
        client.send("one")
        client.send("two")
        self.assertEqual([client.recv(timeout=PATIENCE_SECONDS) for _ in replies], replies)
        self.assert_closed(client, chat, 1008, "message limit reached")

    def test_a_large_frame_in_flight_is_whole_or_cut(self):
        def send_large(connection):
            connection.recv(timeout=PATIENCE_SECONDS)
            connection.send(b"\7" * LARGE)
            connection.recv(timeout=PATIENCE_SECONDS)

        self.start_gateway({"messages": {"limit": 1, "window": YEAR}}, send_large)
        client = self.connect(compression=None)
        client.send("begin")
        client.send("one too many")
        received = []
        with self.assertRaises(ConnectionClosed) as closed:
            while True:
                received.append(client.recv(timeout=PATIENCE_SECONDS))
        if closed.exception.rcvd is not None:
            self.assertEqual(closed.exception.rcvd.code, 1008)
            self.assertIn(received, ([], [b"\7" * LARGE]))
        else:
            self.assertEqual(received, [], "it was cut inside the frame")
