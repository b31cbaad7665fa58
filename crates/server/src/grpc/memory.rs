//! The memory that calls hold while they wait for their clients: one budget for all connections.
//!
//! A call whose message has arrived with its headers needs none of it. Only a call that waits is charged, for
//! its task, its headers and what has arrived of its message, so that a peer that begins many calls and ends
//! none is bounded, however many connections it opens.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::HeaderMap;

use super::status::{Code, Status};

/// The budget of all connections.
#[derive(Debug)]
pub(crate) struct CallMemory {
    bytes_left: AtomicUsize,
    /// The most that one connection may hold.
    connection_bytes: usize,
}

/// The part of the budget that one connection may hold.
#[derive(Debug)]
pub(super) struct ConnectionMemory {
    shared: Arc<CallMemory>,
    bytes_left: Cell<usize>,
}

/// The memory of one call, released when dropped.
#[derive(Debug)]
pub(super) struct HeldMemory<'a> {
    memory: &'a ConnectionMemory,
    bytes: usize,
}

/// The most that one connection may hold: a thousand calls of 64 KiB each.
const CONNECTION_BYTES: usize = 64 * 1024 * 1024;

/// The task and the HTTP/2 stream of a call that waits: 7.7 KB were measured for a health watch.
const CALL_BYTES: usize = 8 * 1024;

/// The bytes of a header besides its name and its value, as HTTP/2 counts them.
const HEADER_BYTES: usize = 32;

// === impl CallMemory ===

impl CallMemory {
    /// A budget of `bytes`, of which one connection may hold at most a quarter.
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            bytes_left: AtomicUsize::new(bytes),
            connection_bytes: CONNECTION_BYTES.min(bytes / 4),
        }
    }
}

// === impl ConnectionMemory ===

impl ConnectionMemory {
    pub(super) fn new(shared: Arc<CallMemory>) -> Self {
        let bytes_left = Cell::new(shared.connection_bytes);
        Self { shared, bytes_left }
    }

    /// The memory of a call, which holds none yet.
    pub(super) const fn of_call(&self) -> HeldMemory<'_> {
        HeldMemory {
            memory: self,
            bytes: 0,
        }
    }

    fn take(&self, bytes: usize) -> Result<(), Status> {
        let left = self.bytes_left.get().checked_sub(bytes).ok_or_else(|| {
            let message = "the calls under way on this connection hold too much memory";
            Status::new(Code::ResourceExhausted, message)
        })?;
        let shared = &self.shared.bytes_left;
        shared
            .try_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(bytes)
            })
            .map_err(|_| {
                let message = "the calls under way on all connections hold too much memory";
                Status::new(Code::ResourceExhausted, message)
            })?;
        self.bytes_left.set(left);
        Ok(())
    }
}

// === impl HeldMemory ===

impl HeldMemory<'_> {
    /// Takes `bytes` more.
    pub(super) fn grow(&mut self, bytes: usize) -> Result<(), Status> {
        self.memory.take(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Takes what a call with these headers holds while it waits.
    pub(super) fn grow_by_call(&mut self, headers: &HeaderMap) -> Result<(), Status> {
        let of_header = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
            name.as_str().len() + value.len() + HEADER_BYTES
        };
        self.grow(CALL_BYTES + headers.iter().map(of_header).sum::<usize>())
    }
}

impl Drop for HeldMemory<'_> {
    fn drop(&mut self) {
        let left = &self.memory.bytes_left;
        left.set(left.get() + self.bytes);
        let shared = &self.memory.shared.bytes_left;
        shared.fetch_add(self.bytes, Ordering::Relaxed);
    }
}
