"""Clients that break the rules of HTTP/2. The gateway ends what they do, and serves everybody else meanwhile."""

import contextlib
import json
import struct

from hyperframe.frame import PingFrame, SettingsFrame

from .gateway import THREE, Gateway, Uvicorn, to_upstream
from .http2 import (
    ENHANCE_YOUR_CALM,
    FLOW_CONTROL_ERROR,
    NO_ERROR,
    PREFACE,
    PROTOCOL_ERROR,
    REFUSED_STREAM,
    Http2,
    continuation,
    data,
    headers,
    raw,
    reset,
    window_update,
)
from .load import Load
from .process import World, eventually, get

HEAD = [(":method", "GET"), (":scheme", "http"), (":path", "/malformed"), (":authority", "world.example")]

# Heads that must not reach an upstream.
MALFORMED = {
    "transfer-encoding": HEAD + [("transfer-encoding", "chunked")],
    "connection": HEAD + [("connection", "close")],
    "a header that connection would name": HEAD + [("connection", "x-forwarded-for")],
    "keep-alive": HEAD + [("keep-alive", "timeout=5")],
    "proxy-connection": HEAD + [("proxy-connection", "keep-alive")],
    "upgrade": HEAD + [("upgrade", "websocket")],
    "line feed in a value": HEAD + [("x-own", "a\nx-injected: b")],
    "carriage return in a value": HEAD + [("x-own", "a\r\nx-injected: b")],
    "NUL in a value": HEAD + [("x-own", "a\x00b")],
    "line feed in a name": HEAD + [("x-own\nx-injected", "a")],
    "space in a name": HEAD + [("x own", "a")],
    "colon in a name": HEAD + [("x-own:", "a")],
    "capitals in a name": HEAD + [("X-Own", "a")],
    "empty name": HEAD + [("", "a")],
    "line feed in the path": [HEAD[0], HEAD[1], (":path", "/malformed\r\nx-injected: b"), HEAD[3]],
    "space in the path": [HEAD[0], HEAD[1], (":path", "/malformed HTTP/1.1"), HEAD[3]],
    "no path": [HEAD[0], HEAD[1], HEAD[3]],
    "empty path": [HEAD[0], HEAD[1], (":path", ""), HEAD[3]],
    "no method": HEAD[1:],
    "line feed in the method": [(":method", "GET /malformed HTTP/1.1\r\n"), *HEAD[1:]],
    "no scheme": [HEAD[0], *HEAD[2:]],
    "two paths": HEAD + [(":path", "/malformed")],
    "two methods": HEAD + [(":method", "POST")],
    "unknown pseudo-header": HEAD + [(":own", "a")],
    "pseudo-header after others": [*HEAD[:3], ("x-own", "a"), HEAD[3]],
    "status in a request": HEAD + [(":status", "200")],
    "another host": HEAD + [("host", "other.example")],
    "authority with a user": [*HEAD[:3], (":authority", "user@world.example")],
    "authority with a line feed": [*HEAD[:3], (":authority", "world.example\r\nx-injected: b")],
    "length without a body": HEAD + [("content-length", "5")],
    "two lengths": HEAD + [("content-length", "0"), ("content-length", "5")],
    "length that is none": HEAD + [("content-length", "-1")],
    "connect": [(":method", "CONNECT"), (":authority", "127.0.0.1:22")],
    "extended connect": [(":method", "CONNECT"), *HEAD[1:], (":protocol", "websocket")],
}


class HostileHttp2(World):
    def setUp(self):
        super().setUp()
        self.api = Uvicorn(self)
        self.gateway = Gateway(self, to_upstream(self.api))

    def connect(self, **options) -> Http2:
        return Http2(self, self.gateway.port, **options)

    @contextlib.contextmanager
    def harmless(self):
        """Others are served while the block runs and after it, and memory stays flat."""
        others = Load(self, self.gateway.port, n_clients=2)
        others.until_more(10)
        with self.gateway.flat_memory():
            yield
            others.until_more(20)
        self.assertEqual(set(others.stop()), {200})

    def flood(self, client: Http2, frames):
        """Sends pieces until the server closes, or takes no more of them, or there are no more."""
        client.socket.settimeout(1)
        for piece in frames:
            try:
                client.socket.sendall(piece)
            except (TimeoutError, BrokenPipeError, ConnectionResetError):
                return
        client.socket.settimeout(20)

    def assert_ended(self, client: Http2):
        """The stream or the connection. The last frame of a connection that is closed with bytes unread may be lost."""
        self.assertNotIn(200, client.statuses.values())
        self.assertTrue(client.goaway or client.resets or not client.is_open)

    def complete(self) -> list:
        return json.loads(get(self.api.port, "/complete").body)

    # === heads and bodies ===

    def test_malformed_heads_reach_nobody(self):
        for name, head in MALFORMED.items():
            with self.subTest(name):
                client = self.connect()
                client.send(headers(1, head))
                client.until_done(1)
                self.assertNotIn(client.statuses.get(1, 400) // 100, (2, 3), client.bodies)
                self.assertNotIn(client.statuses.get(1), (429, 500, 502, 503))
        self.assertEqual([it for it in self.complete() if "malformed" in it], [])
        self.assertEqual(self.gateway.get().status, 200)

    def test_a_body_has_the_length_that_its_head_says(self):
        for length, pieces in ((5, [b"abc"]), (3, [b"abc", b"de"]), (3, [b"abcde"]), (0, [b"a"])):
            with self.subTest(length=length, pieces=pieces):
                client = self.connect()
                head = [(":method", "POST"), (":scheme", "http"), (":path", f"/length/{length}")]
                head += [(":authority", "world.example"), ("content-length", str(length))]
                *first, last = pieces
                # At once: a request that is whole by its head may be answered before its surplus comes.
                body = [*[data(1, piece) for piece in first], data(1, last, end=True)]
                client.send(headers(1, head, False), *body)
                client.until_done(1)
                self.assertNotEqual(client.statuses.get(1), 200)
        # What was too long may have arrived before that was known, but no byte more than the head says.
        arrived = {it for it in self.complete() if "/length/" in it}
        self.assertLessEqual(arrived, {"POST /length/3 3", "POST /length/0 0"})
        self.assertEqual(self.gateway.get().status, 200)

    def test_cookies_in_pieces_arrive_in_one_line(self):
        """As browsers send them. HTTP/1.1 has one line of cookies (RFC 9113, section 8.2.3)."""
        client = self.connect()
        client.request(1, ("cookie", "a=1"), ("x-own", "b"), ("cookie", "c=2"), path="/request")
        client.until_done(1)
        lines = json.loads(client.bodies[1])["lines"]
        self.assertEqual([it for it in lines if it[0] == "cookie"], [["cookie", "a=1; c=2"]])

    def test_a_denied_upload_is_answered_and_ended_without_an_error(self):
        for _ in range(3):
            self.gateway.get(headers=THREE)
        client = self.connect()
        client.request(1, *THREE.items(), ("content-length", "1000000"), method="POST", end=False)
        client.send(data(1, b"x" * 10_000))
        while 1 not in client.resets:
            client.receive()
        self.assertEqual((client.statuses[1], client.resets[1]), (429, NO_ERROR))
        self.assertIn(1, client.ended)
        # The connection is as good as before.
        client.request(3)
        client.until_done(3)
        self.assertEqual((client.statuses[3], client.bodies[3]), (200, b"the api\n"))

    def test_heads_are_bounded_in_bytes_and_lines(self):
        client = self.connect()
        client.request(1, *[(f"x-own-{number}", "x" * 1000) for number in range(20)])
        client.request(3, *[(f"x-own-{number}", "x" * 1000) for number in range(40)])
        client.request(5, *[(f"x-own-{number}", "x") for number in range(90)])
        client.request(7, *[(f"x-own-{number}", "x") for number in range(110)])
        client.until_done(1, 3, 5, 7)
        self.assertEqual([client.statuses.get(it) for it in (1, 3, 5, 7)], [200, 431, 200, 431])

    # === floods ===

    def test_a_head_without_end(self):
        block = headers(1, HEAD, end_headers=False)
        piece = continuation(1, b"\x00\x05x-own\x7f\x81\x06" + b"x" * 900).serialize()
        with self.harmless():
            client = self.connect()
            client.send(block)
            self.flood(client, (piece * 16 for _ in range(4000)))
            client.until_closed()
        empty = continuation(1, b"").serialize()
        with self.harmless():
            client = self.connect()
            client.send(block)
            self.flood(client, (empty * 1000 for _ in range(500)))
            client.until_closed()

    def test_a_small_head_that_unpacks_to_a_large_one(self):
        """A field of 4 KB in the table, and then 16,000 references to it: 64 MB of headers in one frame."""
        field = b"\x40\x05x-own\x7f\x81\x1e" + b"x" * 4000
        block = headers(1, HEAD).data + field + b"\xbe" * 16_000
        with self.harmless():
            for _ in range(20):
                client = self.connect()
                client.send(raw(1, 1, block[:16_000], flags=0x1), raw(9, 1, block[16_000:], flags=0x4))
                client.until_done(1)
                self.assertNotEqual(client.statuses.get(1), 200)

    def test_streams_that_are_reset_at_once(self):
        head = headers(1, HEAD).data

        def pieces():
            for first in range(1, 100_000, 200):
                streams = range(first, first + 200, 2)
                yield b"".join(raw(1, it, head, flags=0x5) + reset(it).serialize() for it in streams)

        with self.harmless():
            client = self.connect()
            self.flood(client, pieces())
            client.until_closed()
        self.assertEqual(client.goaway, ENHANCE_YOUR_CALM)

    def test_settings_and_pings_whose_answers_nobody_reads(self):
        settings = SettingsFrame(settings={4: 1000}).serialize()
        ping = PingFrame(opaque_data=b"12345678").serialize()
        for frame in (settings, ping):
            with self.harmless():
                client = self.connect()
                self.flood(client, (frame * 1000 for _ in range(500)))

    def test_empty_data_without_end(self):
        with self.harmless():
            client = self.connect()
            client.request(1, method="POST", end=False)
            self.flood(client, (data(1).serialize() * 1000 for _ in range(500)))

    def test_data_one_byte_at_a_time(self):
        with self.harmless():
            client = self.connect()
            client.request(1, method="POST", path="/request", end=False)
            for _ in range(40):
                client.send(data(1, b"x").serialize() * 1000)
            client.send(data(1, end=True))
            client.until_done(1)
        # Either all of it was taken, or the connection was ended; never a part of it.
        if client.statuses.get(1) == 200:
            self.assertEqual(json.loads(client.bodies[1])["n_bytes"], 40_000)
        else:
            self.assertEqual(client.goaway, ENHANCE_YOUR_CALM)

    def test_answers_that_nobody_reads(self):
        with self.harmless():
            clients = []
            for _ in range(2):
                client = self.connect(settings={4: 0})
                clients.append(client)
                for stream in range(1, 200, 2):
                    client.request(stream, path="/bytes/2000000")
            for client in clients:
                while len(client.statuses) < 100:
                    client.receive()
        self.assertEqual({status for it in clients for status in it.statuses.values()}, {200})

    def test_a_stream_that_is_not_read_holds_up_no_other(self):
        client = self.connect()
        client.send(window_update(0, 10_000_000))
        client.request(1, path="/bytes/2000000")
        streams = range(3, 200, 2)
        for stream in streams:
            client.request(stream)
        client.until_done(*streams)
        self.assertEqual([client.statuses.get(it) for it in streams], [200] * len(streams))
        self.assertFalse(client.is_done(1))

    def test_a_thousand_streams_at_once(self):
        client = self.connect()
        streams = range(1, 2001, 2)
        for stream in streams:
            client.request(stream, path="/hold")
        while len(client.resets) < 1000 - 128:
            client.receive()
        self.assertEqual(set(client.resets.values()), {REFUSED_STREAM})
        self.assertEqual(self.gateway.get().status, 200)
        eventually("the others arrive", lambda: get(self.api.port, "/held").body == "128")
        get(self.api.port, "/release")
        client.until_done(*streams)
        self.assertEqual(list(client.statuses.values()), [200] * 128)

    # === flow control and frames ===

    def test_windows_that_overflow(self):
        largest = (1 << 31) - 1
        client = self.connect()
        client.send(window_update(0, largest))
        client.until_closed()
        self.assertEqual(client.goaway, FLOW_CONTROL_ERROR)
        client = self.connect()
        client.request(1, method="POST", end=False)
        client.send(window_update(1, largest))
        client.until_done(1)
        self.assertIn(FLOW_CONTROL_ERROR, (client.resets.get(1), client.goaway))
        client = self.connect()
        client.send(window_update(0, 0))
        client.until_closed()
        self.assertEqual(client.goaway, PROTOCOL_ERROR)
        client = self.connect()
        client.send(SettingsFrame(settings={4: 1 << 31}))
        client.until_closed()
        self.assertIn(client.goaway, (FLOW_CONTROL_ERROR, PROTOCOL_ERROR))
        self.assertEqual(self.gateway.get().status, 200)

    def test_more_data_than_the_window_allows(self):
        client = self.connect()
        client.request(1, method="POST", path="/hold", end=False)
        for _ in range(1000):
            client.send(data(1, b"x" * 16_000))
        client.until_done(1)
        self.assert_ended(client)
        self.assertEqual(self.gateway.get().status, 200)

    def test_frames_where_they_do_not_belong(self):
        head = headers(1, HEAD).data
        cases = {
            "data on stream 0": raw(0, 0, b"x"),
            "head on stream 0": raw(1, 0, head, flags=0x5),
            "head on an even stream": raw(1, 2, head, flags=0x5),
            "data on an idle stream": raw(0, 5, b"x"),
            "reset of an idle stream": raw(3, 5, struct.pack(">I", 8)),
            "continuation of nothing": raw(9, 1, head, flags=0x4),
            "something else within a head": raw(1, 1, head[:5]) + raw(6, 0, b"12345678"),
            "padding longer than the frame": raw(0, 1, b"\xffx", flags=0x8),
            "settings with an odd length": raw(4, 0, b"12345"),
            "settings on a stream": raw(4, 1, b""),
            "acknowledgement with a payload": raw(4, 0, b"123456", flags=0x1),
            "ping with an odd length": raw(6, 0, b"123"),
            "promise of a client": raw(5, 1, struct.pack(">I", 2) + head, flags=0x4),
            "a frame that is too large": raw(0, 1, b"x" * 17_000),
            "a head that cannot be unpacked": raw(1, 1, b"\xff\xff\xff\xff\xff\xff", flags=0x5),
            "a stream that depends on itself": raw(1, 1, struct.pack(">IB", 1, 0) + head, flags=0x25),
        }
        for name, frames in cases.items():
            with self.subTest(name):
                client = self.connect()
                client.send(frames)
                client.until_done(1)
                self.assert_ended(client)
        self.assertEqual(self.gateway.get().status, 200)

    def test_garbage_instead_of_frames(self):
        zeros, request = b"\x00" * 1000, b"GET / HTTP/1.1\r\n\r\n" * 100
        for garbage in (PREFACE + zeros, PREFACE + request, PREFACE[:20] + zeros):
            with self.subTest(garbage[:40]):
                client = self.connect_raw(garbage)
                client.until_closed()
                self.assertNotIn(200, client.statuses.values())
        self.assertEqual(self.gateway.get().status, 200)

    def connect_raw(self, bytes_) -> Http2:
        return RawClient(self, self.gateway.port, bytes_)


class RawClient(Http2):
    """A connection that begins with other bytes."""

    def __init__(self, test, port, beginning):
        self.beginning = beginning
        super().__init__(test, port)

    def send(self, *frames):
        super().send(self.beginning) if self.beginning else super().send(*frames)
        self.beginning = b""
