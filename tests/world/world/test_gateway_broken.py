"""Upstreams that break the rules of HTTP/1.1: clients get 502, and no client gets what was meant for another."""

import http.client
import itertools
import socketserver
import threading

from .gateway import Gateway
from .load import Load
from .process import World

OK = b"HTTP/1.1 200 OK\r\n"
FINE = OK + b"content-length: 2\r\n\r\nok"

# What the upstream sends for a path, before it closes.
BROKEN = {
    "/nothing": [],
    "/garbage": [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20],
    "/other-protocol": [b"SSH-2.0-OpenSSH_9.2\r\n"],
    "/no-status": [b"HTTP/1.1\r\ncontent-length: 2\r\n\r\nok"],
    "/half-a-head": [OK + b"content-length: 2\r\nx-own"],
    "/two-lengths": [OK + b"content-length: 2\r\ncontent-length: 3\r\n\r\nok"],
    "/bad-length": [OK + b"content-length: -2\r\n\r\nok"],
    "/NUL-in-a-value": [OK + b"x-own: a\x00b\r\ncontent-length: 2\r\n\r\nok"],
    "/space-in-a-name": [OK + b"x own: a\r\ncontent-length: 2\r\n\r\nok"],
    "/many-lines": [OK, *[b"x-own-%d: a\r\n" % number for number in range(1000)], b"content-length: 2\r\n\r\nok"],
    "/unasked-upgrade": [b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: own\r\n\r\nbytes"],
    "/head-without-end": itertools.repeat(b"x-own: " + b"x" * 1000 + b"\r\n", 20_000),
    "/hints-without-end": itertools.repeat(b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" * 10, 20_000),
}

# Responses that are broken after their head.
CUT_OFF = {
    "/too-short": [OK + b"content-length: 10\r\n\r\nshort"],
    "/chunk-without-size": [OK + b"transfer-encoding: chunked\r\n\r\nxyz\r\nshort\r\n0\r\n\r\n"],
    "/chunk-too-large": [OK + b"transfer-encoding: chunked\r\n\r\nffffffffffffffff\r\nshort"],
    "/no-last-chunk": [OK + b"transfer-encoding: chunked\r\n\r\n5\r\nshort\r\n"],
}


class BrokenUpstream(socketserver.ThreadingTCPServer):
    """Reads heads and answers them with bytes."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, test: World):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()
        test.addCleanup(self.server_close)
        test.addCleanup(self.shutdown)

    def handle_error(self, *_):
        """The gateway hangs up on it."""


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        while line := self.rfile.readline():
            path = line.split()[1].decode()
            while self.rfile.readline() not in (b"\r\n", b""):
                pass
            if path.startswith("/twice/"):
                self.answer_twice(path)
            elif path in ("/", "/fine"):
                self.wfile.write(FINE)
            elif path == "/204":
                self.wfile.write(b"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nbad")
            else:
                for piece in BROKEN.get(path) or CUT_OFF.get(path, []):
                    self.wfile.write(piece)
                return

    def answer_twice(self, path):
        body = path.encode()
        answer = OK + b"content-length: %d\r\n\r\n" % len(body) + body
        self.wfile.write(answer + answer.replace(b"twice", b"wrong"))


class BrokenUpstreams(World):
    def setUp(self):
        super().setUp()
        upstream = BrokenUpstream(self)
        self.gateway = Gateway(self, f"gateway: {{ upstream: {upstream.url} }}")

    def test_a_response_that_is_none_is_502(self):
        for path in BROKEN:
            with self.subTest(path), self.gateway.flat_memory():
                self.assertEqual(self.gateway.get(path).status, 502)
                self.assertEqual(self.gateway.get("/fine").body, "ok")

    def test_a_response_that_breaks_off_is_broken_off(self):
        for path in CUT_OFF:
            with self.subTest(path):
                with self.assertRaises((http.client.IncompleteRead, ConnectionResetError)):
                    self.gateway.get(path)
                self.assertEqual(self.gateway.get("/fine").body, "ok")

    def test_a_second_response_is_for_nobody(self):
        connections = [self.gateway.connect() for _ in range(4)]
        for number in range(400):
            connection = connections[number % 4]
            connection.request("GET", f"/twice/{number}")
            with connection.getresponse() as response:
                self.assertEqual((response.status, response.read()), (200, b"/twice/%d" % number))

    def test_bytes_after_a_response_without_a_body_are_for_nobody(self):
        connection = self.gateway.connect()
        for path, expected in [("/204", (204, b"")), ("/fine", (200, b"ok"))] * 50:
            connection.request("GET", path)
            with connection.getresponse() as response:
                self.assertEqual((response.status, response.read()), expected)

    def test_others_are_served_meanwhile(self):
        others = Load(self, self.gateway.port, n_clients=2)
        others.until_more(20)
        for path in ("/head-without-end", "/hints-without-end"):
            self.gateway.get(path)
        others.until_more(20)
        self.assertEqual(set(others.stop()), {200})
