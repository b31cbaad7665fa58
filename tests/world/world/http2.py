"""HTTP/2 frame by frame, also those that no library would send."""

import socket
import struct

import hpack
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    Frame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from .process import PATIENCE_SECONDS

# The largest frame that may be sent without being asked for.
MAX_FRAME_BYTES = 1 << 14

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

NO_ERROR, PROTOCOL_ERROR, FLOW_CONTROL_ERROR = 0x0, 0x1, 0x3
REFUSED_STREAM, ENHANCE_YOUR_CALM = 0x7, 0xB


class Http2:
    """A client's connection on which any frame can be sent."""

    def __init__(self, test, port: int, settings=None):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS)
        test.addCleanup(self.socket.close)
        self.decoder = hpack.Decoder()
        self.buffer = b""
        self.is_open = True
        self.statuses, self.bodies, self.resets, self.ended, self.goaway = {}, {}, {}, set(), None
        self.send(PREFACE, SettingsFrame(settings=settings or {}))

    # === sending ===

    def send(self, *frames):
        """Sends frames or bytes; to a connection that the server has closed, nothing."""
        whole = b"".join(it if isinstance(it, bytes) else it.serialize() for it in frames)
        try:
            self.socket.sendall(whole)
        except (BrokenPipeError, ConnectionResetError):
            self.is_open = False

    def request(self, stream: int, *extra, method="GET", path="/", end=True, authority="world.example"):
        head = [(":method", method), (":scheme", "http"), (":path", path), (":authority", authority)]
        whole = headers(stream, head + list(extra), end)
        if len(whole.data) <= MAX_FRAME_BYTES:
            self.send(whole)
            return
        pieces = [whole.data[at : at + MAX_FRAME_BYTES] for at in range(0, len(whole.data), MAX_FRAME_BYTES)]
        whole.data = pieces[0]
        whole.flags.discard("END_HEADERS")
        *middle, last = [continuation(stream, piece) for piece in pieces[1:]]
        last.flags.add("END_HEADERS")
        self.send(whole, *middle, last)

    # === receiving ===

    def receive(self):
        """Takes in what has come, waiting for at least a byte of it."""
        try:
            received = self.socket.recv(1 << 16)
        except ConnectionResetError:
            received = b""
        if not received:
            self.is_open = False
        self.buffer += received
        while len(self.buffer) >= 9:
            frame, length = Frame.parse_frame_header(memoryview(self.buffer[:9]))
            if len(self.buffer) < 9 + length:
                break
            frame.parse_body(memoryview(self.buffer[9 : 9 + length]))
            self.buffer = self.buffer[9 + length :]
            self.take(frame)

    def take(self, frame):
        stream = frame.stream_id
        if isinstance(frame, HeadersFrame):
            fields = dict(self.decoder.decode(frame.data))
            if ":status" in fields:
                self.statuses[stream] = int(fields[":status"])
        elif isinstance(frame, DataFrame):
            self.bodies[stream] = self.bodies.get(stream, b"") + frame.data
        elif isinstance(frame, RstStreamFrame):
            self.resets[stream] = frame.error_code
        elif isinstance(frame, GoAwayFrame):
            self.goaway = frame.error_code
        elif isinstance(frame, SettingsFrame) and "ACK" not in frame.flags:
            self.send(SettingsFrame(flags=["ACK"]))
        elif isinstance(frame, PingFrame) and "ACK" not in frame.flags:
            self.send(PingFrame(opaque_data=frame.opaque_data, flags=["ACK"]))
        if "END_STREAM" in frame.flags:
            self.ended.add(stream)

    def is_done(self, stream: int) -> bool:
        return stream in self.ended or stream in self.resets

    def until_done(self, *streams: int):
        """Receives until these streams or the connection are at an end."""
        while self.is_open and not all(self.is_done(stream) for stream in streams):
            self.receive()

    def until_closed(self):
        while self.is_open:
            self.receive()


def headers(stream: int, fields, end=True, end_headers=True) -> HeadersFrame:
    """A head without any check. Fields are never indexed, so that each can be decoded alone."""
    encoder = hpack.Encoder()
    encoder.header_table_size = 0
    block = encoder.encode([hpack.NeverIndexedHeaderTuple(*field) for field in fields], huffman=False)
    flags = (["END_STREAM"] if end else []) + (["END_HEADERS"] if end_headers else [])
    return HeadersFrame(stream, block, flags=flags)


def data(stream: int, payload=b"", end=False) -> DataFrame:
    return DataFrame(stream, payload, flags=["END_STREAM"] if end else [])


def continuation(stream: int, block: bytes) -> ContinuationFrame:
    return ContinuationFrame(stream, block)


def raw(kind: int, stream: int, payload=b"", flags=0) -> bytes:
    """A frame whose fields may say anything."""
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def window_update(stream: int, increment: int) -> bytes:
    return raw(WindowUpdateFrame.type, stream, struct.pack(">I", increment))


def reset(stream: int, code=0x8) -> RstStreamFrame:
    return RstStreamFrame(stream, code)
