//! The messages of a call: each with its length before it, in frames that know nothing of that.

use std::future::poll_fn;
use std::mem;
use std::task::Poll;

use super::memory::{CALL_BYTES, ConnectionMemory, HeldMemory};
use super::status::{Code, Status};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use h2::RecvStream;

/// Reads the messages of one call.
#[derive(Debug)]
pub(super) struct Messages<'a> {
    body: RecvStream,
    max_bytes: u32,
    /// The memory of the call itself, once it waits.
    call: Option<HeldMemory<'a>>,
    message: HeldMemory<'a>,
    memory: &'a ConnectionMemory,
    /// What has arrived and was not read.
    rest: Bytes,
}

/// Whether the message is compressed, and how long it is.
const PREFIX_BYTES: usize = 5;

// === impl Messages ===

impl<'a> Messages<'a> {
    /// The messages of a call.
    pub(super) const fn new(
        body: RecvStream,
        max_bytes: u32,
        memory: &'a ConnectionMemory,
    ) -> Self {
        Self {
            body,
            max_bytes,
            call: None,
            message: memory.of_call(),
            memory,
            rest: Bytes::new(),
        }
    }

    /// Charges the call for the memory that it holds while it waits, once.
    pub(super) fn charge_call(&mut self) -> Result<(), Status> {
        if self.call.is_none() {
            let mut call = self.memory.of_call();
            call.grow(CALL_BYTES)?;
            self.call = Some(call);
        }
        Ok(())
    }

    /// Releases the memory of the messages that were read, but for what has arrived of the next one.
    pub(super) fn release(&mut self) {
        if self.rest.is_empty() {
            self.message.clear();
        }
    }

    /// The only message of a call that has one.
    pub(super) async fn only(&mut self) -> Result<Bytes, Status> {
        let Some(message) = self.next().await? else {
            let message = "the call broke off before its message";
            return Err(Status::new(Code::Unimplemented, message));
        };
        let message = self.kept(message)?;
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
            let polled = poll_fn(|context| Poll::Ready(self.body.poll_data(context))).await;
            let data = match polled {
                Poll::Ready(data) => data,
                Poll::Pending => {
                    self.charge_call()?;
                    poll_fn(|context| self.body.poll_data(context)).await
                }
            };
            let Some(data) = data else {
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
        // Grows with what arrives, and not with what was announced. The first piece is copied too: it is part of a larger buffer.
        let mut whole = Vec::new();
        let first = mem::take(&mut self.rest);
        self.extend(&mut whole, &first, length)?;
        drop(first);
        while whole.len() < length {
            let data = self.data().await?.ok_or_else(broken)?;
            self.extend(&mut whole, &data, length)?;
        }
        self.rest = whole.into();
        Ok(())
    }

    /// Adds `data` to a message of `length` bytes, and charges the call for the memory that this takes.
    fn extend(&mut self, whole: &mut Vec<u8>, data: &[u8], length: usize) -> Result<(), Status> {
        let needed = whole.len() + data.len();
        if needed > whole.capacity() {
            let capacity = (2 * whole.capacity()).min(length).max(needed);
            self.message.grow(capacity - whole.capacity())?;
            whole.reserve_exact(capacity - whole.len());
        }
        whole.extend_from_slice(data);
        Ok(())
    }

    /// The message as a call keeps it that waits for its end: by itself, not as a part of a larger buffer.
    fn kept(&mut self, message: Bytes) -> Result<Bytes, Status> {
        if self.body.is_end_stream() || self.call.is_some() {
            return Ok(message);
        }
        self.message.grow(message.len())?;
        Ok(Bytes::copy_from_slice(&message))
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
