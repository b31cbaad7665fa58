//! A client that writes its frames by hand.

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{JoinHandle, spawn_local};

use crate::client::{SHOULD_RATE_LIMIT, Server};

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
pub(crate) const ACK: u8 = 1;

pub(crate) const PROTOCOL_ERROR: u32 = 1;
pub(crate) const FRAME_SIZE_ERROR: u32 = 6;
pub(crate) const COMPRESSION_ERROR: u32 = 9;
pub(crate) const ENHANCE_YOUR_CALM: u32 = 11;

/// A connection of bare frames.
pub(crate) struct Raw {
    writer: WriteHalf<DuplexStream>,
    frames: UnboundedReceiver<Frame>,
    /// Kept by a client that does not read, so that the pipe stays open.
    _unread: Option<ReadHalf<DuplexStream>>,
    end: JoinHandle<()>,
}

/// A frame of the server.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) payload: Vec<u8>,
}

// === impl Raw ===

impl Raw {
    /// A client that reads whatever comes.
    pub(crate) fn open(server: &Server) -> Self {
        let (io, end) = server.pipe();
        let (reader, writer) = tokio::io::split(io);
        let (sender, frames) = unbounded_channel();
        spawn_local(read(reader, sender));
        Self {
            writer,
            frames,
            _unread: None,
            end,
        }
    }

    /// A client that does not read.
    pub(crate) fn deaf(server: &Server) -> Self {
        let (io, end) = server.pipe();
        let (reader, writer) = tokio::io::split(io);
        Self {
            writer,
            frames: unbounded_channel().1,
            _unread: Some(reader),
            end,
        }
    }

    /// Says the first words of HTTP/2, with these settings.
    pub(crate) async fn greet(&mut self, settings: &[u8]) {
        self.send(PREFACE).await;
        self.send(&frame(SETTINGS, 0, 0, settings)).await;
    }

    /// Sends bytes, as far as the server takes them.
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        let _ = self.writer.write_all(bytes).await;
    }

    /// The next frame of that kind; what comes before it is passed over. `None` at the end.
    pub(crate) async fn next(&mut self, kind: u8) -> Option<Frame> {
        loop {
            let frame = self.frames.recv().await?;
            if frame.kind == kind {
                return Some(frame);
            }
        }
    }

    /// All frames of that kind until the end.
    pub(crate) async fn frames_of(&mut self, kind: u8) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next(kind).await {
            frames.push(frame);
        }
        frames
    }

    /// Waits until the server is done with the connection.
    pub(crate) async fn closed(&mut self) {
        (&mut self.end).await.unwrap();
    }

    /// True if the server is done with the connection.
    pub(crate) fn is_closed(&self) -> bool {
        self.end.is_finished()
    }

    /// Why the server sends the client away; it must.
    pub(crate) async fn reason(&mut self) -> u32 {
        let frame = self.next(GOAWAY).await.expect("the server says why");
        u32::from_be_bytes(frame.payload[4..8].try_into().unwrap())
    }
}

async fn read(mut reader: ReadHalf<DuplexStream>, frames: UnboundedSender<Frame>) {
    let mut head = [0; 9];
    while reader.read_exact(&mut head).await.is_ok() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        if reader.read_exact(&mut payload).await.is_err() {
            return;
        }
        let (kind, flags) = (head[3], head[4]);
        let _ = frames.send(Frame {
            kind,
            flags,
            payload,
        });
    }
}

/// A frame.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// The compressed headers of a call, in the plainest form.
pub(crate) fn call_headers() -> Vec<u8> {
    headers_of(SHOULD_RATE_LIMIT)
}

/// The same for another method.
pub(crate) fn headers_of(path: &str) -> Vec<u8> {
    let headers = [
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", "tidegate"),
        (":path", path),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    let mut block = Vec::new();
    for (name, value) in headers {
        block.extend(header(name, value));
    }
    block
}

/// A header that is written out, and kept by nobody.
pub(crate) fn header(name: &str, value: &str) -> Vec<u8> {
    let mut header = vec![0];
    for text in [name, value] {
        // A number of seven bits, and what is above them in bytes of seven more.
        let mut rest = text.len();
        if rest < 0x7f {
            header.push(u8::try_from(rest).unwrap());
        } else {
            header.push(0x7f);
            rest -= 0x7f;
            while rest >= 0x80 {
                header.push(u8::try_from(rest % 0x80).unwrap() | 0x80);
                rest /= 0x80;
            }
            header.push(u8::try_from(rest).unwrap());
        }
        header.extend(text.as_bytes());
    }
    header
}
