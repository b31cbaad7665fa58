"""The memory of gRPC clients that push all that they may and take nothing: resident memory stays within the documented bound."""

import contextlib
import pathlib
import resource
import threading

import hpack
from hyperframe.frame import HeadersFrame, SettingsFrame, WindowUpdateFrame

from .http2 import Http2, data
from .process import World
from .tidegate import Tidegate

N_CONNECTIONS = 100
MIB = 1 << 20
# docs/grpc.md, "Memory": the budget, and the buffers of a connection.
GRPC_MEMORY = 16 * MIB
CONNECTION_MEMORY = 256 << 10

PATH = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
HEAD = [(":method", "POST"), (":scheme", "http"), (":path", PATH), (":authority", "world"), ("content-type", "application/grpc")]


def field(number: int, value: bytes) -> bytes:
    assert len(value) < 128
    return bytes([number << 3 | 2, len(value)]) + value


def question(user: str) -> bytes:
    message = field(1, b"world") + field(2, field(1, field(1, b"user") + field(2, user.encode())))
    return bytes([0, 0, 0, 0, len(message)]) + message


def calls(n_calls: int, *extra, body=None, end=True) -> list[bytes]:
    """The calls of one connection. From the second on its headers are indexes of the first's."""
    encoder = hpack.Encoder()
    blocks = [encoder.encode(HEAD + list(extra)) for _ in range(2)]
    whole = []
    for index in range(n_calls):
        stream = 2 * index + 1
        frames = HeadersFrame(stream, blocks[min(index, 1)], flags=["END_HEADERS"]).serialize()
        whole.append(frames + (data(stream, body(index), end=end).serialize() if body else b""))
    return whole


class Client(Http2):
    """A client that sends what the server's window has room for, and gives the server no room for answers."""

    def __init__(self, test, port):
        super().__init__(test, port, settings={SettingsFrame.INITIAL_WINDOW_SIZE: 0})
        self.socket.settimeout(3)
        self.room = 65_535

    def take(self, frame):
        super().take(frame)
        if isinstance(frame, WindowUpdateFrame) and frame.stream_id == 0:
            self.room += frame.window_increment

    def push(self, calls: list[bytes], reads: bool):
        """Sends calls for as long as the server takes them."""
        # A server that closes the connection or takes no more of it is right.
        with contextlib.suppress(OSError):
            for call in calls:
                while reads and self.is_open and self.room < len(call):
                    self.receive()
                self.socket.sendall(call)
                self.room -= len(call)


class GrpcMemory(World):
    def setUp(self):
        super().setUp()
        self.n_served = 0
        settings = {"GRPC_MEMORY": "16MiB", "CONNECTIONS": "250", "WRITE_TIMEOUT": "60s", "BODY_TIMEOUT": "60s"}
        env = {f"TIDEGATE_LIMITS_{name}": value for name, value in settings.items()}
        # The tasks of a debug build have several times the size.
        self.tidegate = Tidegate(self, env=env, build="RELEASE_TIDEGATE")

    def resident(self) -> int:
        pages = pathlib.Path(f"/proc/{self.tidegate.program.pid}/statm").read_text().split()[1]
        return int(pages) * resource.getpagesize()

    def check(self, calls, reads=True):
        """All clients push the calls, and others are served meanwhile."""
        before = most = self.resident()
        clients = [Client(self, self.tidegate.grpc) for _ in range(N_CONNECTIONS)]
        threads = [threading.Thread(target=client.push, args=(calls, reads)) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(0.05)
                most = max(most, self.resident())
        # What was sent may still lie in sockets: whoever comes now is served after most of it.
        for _ in range(10):
            self.assert_served()
            most = max(most, self.resident())
        grown = (most - before) / MIB
        self.assertLess(grown, (GRPC_MEMORY + N_CONNECTIONS * CONNECTION_MEMORY) / MIB)

    def assert_served(self):
        other = Http2(self, self.tidegate.grpc)
        self.n_served += 1
        other.send(calls(1, body=lambda _: question(f"other{self.n_served}"))[0])
        other.until_done(1)
        # OK, not OVER_LIMIT.
        self.assertEqual(other.bodies[1][5:7], bytes([1 << 3, 1]))

    def test_bodies_that_never_end(self):
        # 4 MiB are announced on each of many streams.
        begun = bytes([0, 0, 0x40, 0, 0]) + bytes(16_000)
        self.check(calls(200, body=lambda _: begun, end=False))

    def test_answers_that_are_never_taken(self):
        self.check(calls(300, body=lambda index: question(str(index))))

    def test_answers_that_are_never_read(self):
        self.check(calls(300, body=lambda index: question(str(index))), reads=False)

    def test_headers_without_a_message(self):
        # Of one byte each on the wire: 64 KiB as HTTP/2 counts them.
        self.check(calls(30, *[("a", "b")] * 1_800))
