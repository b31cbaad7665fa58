//! The messages of a call: each with its length before it, in frames that know nothing of that.

use std::cell::Cell;
use std::future::poll_fn;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use h2::RecvStream;

use super::status::{Code, Status};

/// Reads the messages of one call.
#[derive(Debug)]
pub(super) struct Messages<'a> {
    body: RecvStream,
    max_bytes: u32,
    room: &'a Room,
    /// What was taken of the room, until the call ends.
    taken: usize,
    /// What has arrived and was not read.
    rest: Bytes,
}

/// The bytes that the calls of a connection may still hold in messages of several frames: a peer that
/// begins many large ones and ends none has no more than this.
#[derive(Debug)]
pub(super) struct Room(Cell<usize>);

/// All the room: a thousand calls of 64 KiB each.
const ROOM_BYTES: usize = 64 * 1024 * 1024;

/// Whether the message is compressed, and how long it is.
const PREFIX_BYTES: usize = 5;

// === impl Messages ===

impl<'a> Messages<'a> {
    pub(super) fn new(body: RecvStream, max_bytes: u32, room: &'a Room) -> Self {
        Self {
            body,
            max_bytes,
            room,
            taken: 0,
            rest: Bytes::new(),
        }
    }

    /// The only message of a call that has one.
    pub(super) async fn only(&mut self) -> Result<Bytes, Status> {
        let Some(message) = self.next().await? else {
            let message = "the call broke off before its message";
            return Err(Status::new(Code::Unimplemented, message));
        };
        match self.next().await? {
            None => Ok(message),
            Some(_) => Err(Status::new(
                Code::Unimplemented,
                "more than one message in a call that takes one",
            )),
        }
    }

    /// The next message, or `None` when the client has no more.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Status> {
        if self.rest.is_empty() {
            let Some(data) = self.data().await? else {
                return Ok(None);
            };
            self.rest = data;
        }
        self.fill_to(PREFIX_BYTES).await?;
        let length = self.read_prefix()?;
        self.fill_to(length).await?;
        Ok(Some(self.rest.split_to(length)))
    }

    /// What comes next, if anything does.
    async fn data(&mut self) -> Result<Option<Bytes>, Status> {
        while !self.body.is_end_stream() {
            let Some(data) = poll_fn(|context| self.body.poll_data(context)).await else {
                break;
            };
            let data = data.map_err(|_| broken())?;
            // What a message may hold is bounded, so the window need not be.
            let _ = self.body.flow_control().release_capacity(data.len());
            if !data.is_empty() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// Sees to it that so much has arrived. What came in one frame is not copied.
    async fn fill_to(&mut self, length: usize) -> Result<(), Status> {
        if self.rest.len() >= length {
            return Ok(());
        }
        // Grows with what arrives, and not with what was announced.
        let mut whole = BytesMut::from(&self.rest[..]);
        while whole.len() < length {
            let data = self.data().await?.ok_or_else(broken)?;
            self.room.take(data.len())?;
            self.taken += data.len();
            whole.extend_from_slice(&data);
        }
        self.rest = whole.freeze();
        Ok(())
    }

    fn read_prefix(&mut self) -> Result<usize, Status> {
        match self.rest.get_u8() {
            0 => {}
            1 => {
                let message = "a compressed message, and no compression was named";
                return Err(Status::new(Code::Internal, message));
            }
            _ => {
                let message = "a message is marked neither plain nor compressed";
                return Err(Status::new(Code::Internal, message));
            }
        }
        let length = self.rest.get_u32();
        if length > self.max_bytes {
            let message = format!("a message of {length} bytes; {} are taken", self.max_bytes);
            return Err(Status::told(Code::ResourceExhausted, message));
        }
        usize::try_from(length).map_err(|_| broken())
    }
}

impl Drop for Messages<'_> {
    fn drop(&mut self) {
        self.room.give_back(self.taken);
    }
}

// === impl Room ===

impl Room {
    fn take(&self, bytes: usize) -> Result<(), Status> {
        let left = self.0.get().checked_sub(bytes).ok_or_else(|| {
            let message = "the messages under way on this connection have too many bytes";
            Status::new(Code::ResourceExhausted, message)
        })?;
        self.0.set(left);
        Ok(())
    }

    fn give_back(&self, bytes: usize) {
        self.0.set(self.0.get() + bytes);
    }
}

impl Default for Room {
    fn default() -> Self {
        Self(Cell::new(ROOM_BYTES))
    }
}

/// Writes a message with its length before it at the end of `out`, and takes it from there.
pub(super) fn framed(out: &mut BytesMut, write: impl FnOnce(&mut BytesMut)) -> Bytes {
    out.put_bytes(0, PREFIX_BYTES);
    write(out);
    let length = out.len() - PREFIX_BYTES;
    // No answer comes near to 4 GiB.
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    out[1..PREFIX_BYTES].copy_from_slice(&length.to_be_bytes());
    out.split().freeze()
}

fn broken() -> Status {
    Status::new(Code::Internal, "the message breaks off")
}
