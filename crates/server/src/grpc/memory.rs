//! The memory that calls hold while they wait for their clients: one budget for all connections.
//!
//! A call whose message has arrived with its headers and whose answer leaves at once needs none of it. What is charged, and the effect
//! of an exhausted budget:
//!
//! ```text
//!  a message that has not ended, and its task   the call is denied
//!  an answer that its client has not taken      a connection with more than its floor of them is closed
//!  the streams that a connection had at once    a connection that has no call is told to go: h2 keeps their memory until it closes
//! ```
//!
//! A part of the budget is reserved: each connection has a floor, which no other connection can take. Health watches, which last for
//! hours, are counted instead of charged.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};

use bytes::{Buf, Bytes};

use super::status::{Code, Status};

/// The budget of all connections.
#[derive(Debug)]
pub(crate) struct CallMemory {
    /// Below zero while answers hold more than there is.
    bytes_left: AtomicIsize,
    /// What each connection may hold of its own.
    floor_bytes: usize,
    /// The most that the messages of one connection may hold.
    connection_bytes: usize,
    watches_left: AtomicUsize,
}

/// The part of the budget that one connection holds.
#[derive(Debug)]
pub(super) struct ConnectionMemory {
    shared: Arc<CallMemory>,
    used_bytes: Cell<usize>,
    /// The part of the budget that is taken for what is used beyond the floor.
    drawn_bytes: Cell<usize>,
    message_bytes: Cell<usize>,
    answers: AnswerMemory,
    /// The most streams that there were at once.
    n_streams: Cell<usize>,
    n_watches: Cell<usize>,
}

/// The answers of one connection that lie in h2.
#[derive(Debug, Default)]
struct AnswerMemory {
    n_unsent: Cell<usize>,
    unsent_bytes: Cell<usize>,
    /// Calls that were answered since the last time that all was written for which the client had room.
    n_unflushed: Cell<usize>,
    /// Answers that the client has taken, modulo 2^64.
    n_taken: Cell<u64>,
}

/// The memory of one call, released when dropped.
#[derive(Debug)]
pub(super) struct HeldMemory<'a> {
    memory: &'a ConnectionMemory,
    bytes: usize,
}

/// A piece of an answer, charged until h2 has written it or the client has reset its stream.
#[derive(Debug)]
pub(super) struct AnswerBytes {
    bytes: Bytes,
    n_charged: usize,
    memory: Rc<ConnectionMemory>,
}

/// The place of a health watch, until dropped.
#[derive(Debug)]
pub(super) struct WatchPermit<'a> {
    memory: &'a ConnectionMemory,
    is_shared: bool,
}

/// The floor of a connection: one call with a small message that waits, or the answers to six calls.
const FLOOR_BYTES: usize = 16 * 1024;

/// The most that the messages of one connection may hold: a thousand calls of 64 KiB each.
const CONNECTION_BYTES: usize = 64 * 1024 * 1024;

/// The task and the HTTP/2 stream of a call that waits: 7.7 KB were measured for a health watch.
pub(super) const CALL_BYTES: usize = 8 * 1024;

/// The HTTP/2 stream of a call with the frames of its answer, besides the message: 2.5 KB were measured for each of 1,000 calls whose
/// answers are not taken.
const STREAM_BYTES: usize = 2_560;

/// What a connection takes of the budget at a time, so that it seldom touches what all cores have in common.
const DRAW_BYTES: usize = 16 * 1024;

/// Health watches of one connection at once. A client needs one for each service.
const MAX_WATCHES: usize = 16;

/// The part of the budget that watches may hold besides the first of each connection.
const WATCH_PART: usize = 8;

// === impl CallMemory ===

impl CallMemory {
    /// A budget of `bytes` for at most `n_connections`. At most half of it is reserved for floors.
    pub(crate) fn new(bytes: usize, n_connections: usize) -> Self {
        let n_connections = n_connections.max(1);
        let floor_bytes = FLOOR_BYTES.min(bytes / 2 / n_connections);
        let shared = bytes - floor_bytes * n_connections;
        Self {
            bytes_left: AtomicIsize::new(isize::try_from(shared).unwrap_or(isize::MAX)),
            floor_bytes,
            connection_bytes: CONNECTION_BYTES.min(bytes / 4),
            watches_left: AtomicUsize::new(bytes / WATCH_PART / CALL_BYTES),
        }
    }

    fn try_take(&self, bytes: usize) -> Option<()> {
        let bytes = isize::try_from(bytes).ok()?;
        let take = |left: isize| left.checked_sub(bytes).filter(|left| *left >= 0);
        let taken = self
            .bytes_left
            .try_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken.ok().map(drop)
    }

    /// Takes what is needed, whether it is there or not.
    fn take(&self, bytes: usize) {
        self.bytes_left
            .fetch_sub(bytes.cast_signed(), Ordering::Relaxed);
    }

    fn give_back(&self, bytes: usize) {
        self.bytes_left
            .fetch_add(bytes.cast_signed(), Ordering::Relaxed);
    }
}

// === impl ConnectionMemory ===

impl ConnectionMemory {
    pub(super) fn new(shared: Arc<CallMemory>) -> Self {
        Self {
            shared,
            used_bytes: Cell::new(0),
            drawn_bytes: Cell::new(0),
            message_bytes: Cell::new(0),
            answers: AnswerMemory::default(),
            n_streams: Cell::new(0),
            n_watches: Cell::new(0),
        }
    }

    /// The memory of a call, which holds none yet.
    pub(super) const fn of_call(&self) -> HeldMemory<'_> {
        HeldMemory {
            memory: self,
            bytes: 0,
        }
    }

    /// The place of a health watch.
    pub(super) fn watch(&self) -> Result<WatchPermit<'_>, Status> {
        let n_watches = self.n_watches.get();
        if n_watches >= MAX_WATCHES {
            let message = "too many health watches on this connection";
            return Err(Status::new(Code::ResourceExhausted, message));
        }
        let is_shared = n_watches > 0;
        if is_shared {
            let left = &self.shared.watches_left;
            let take = |left: usize| left.checked_sub(1);
            left.try_update(Ordering::Relaxed, Ordering::Relaxed, take)
                .map_err(|_| {
                    let message = "too many health watches on all connections";
                    Status::new(Code::ResourceExhausted, message)
                })?;
        }
        self.n_watches.set(n_watches + 1);
        Ok(WatchPermit {
            memory: self,
            is_shared,
        })
    }

    /// Health watches under way.
    pub(super) const fn n_watches(&self) -> usize {
        self.n_watches.get()
    }

    /// A piece of an answer as h2 takes it. It is sent even if the budget is exhausted: a call without an answer is a request that Envoy
    /// lets pass.
    pub(super) fn answer(self: &Rc<Self>, bytes: Bytes) -> AnswerBytes {
        let n_charged = bytes.len();
        let answers = &self.answers;
        answers.n_unsent.set(answers.n_unsent.get() + 1);
        let unsent_bytes = answers.unsent_bytes.get() + n_charged;
        answers.unsent_bytes.set(unsent_bytes);
        self.grow(n_charged);
        AnswerBytes {
            bytes,
            n_charged,
            memory: Rc::clone(self),
        }
    }

    /// Notes that calls were answered, and that others wait.
    pub(super) fn note_calls(&self, n_answered: usize, n_waiting: usize) {
        let answers = &self.answers;
        let n_unflushed = answers.n_unflushed.get() + n_answered;
        answers.n_unflushed.set(n_unflushed);
        let n_streams = n_waiting + n_unflushed.max(answers.n_unsent.get());
        if let Some(more) = n_streams.checked_sub(self.n_streams.get()) {
            self.n_streams.set(n_streams);
            self.grow(more * STREAM_BYTES);
        }
    }

    /// Notes that all was written for which the client had room.
    pub(super) fn note_flushed(&self) {
        self.answers.n_unflushed.set(0);
    }

    /// True if answers wait for the client.
    pub(super) const fn has_unsent(&self) -> bool {
        self.answers.n_unsent.get() > 0
    }

    /// A number that changes whenever the client takes something of an answer.
    pub(super) const fn n_taken(&self) -> u64 {
        self.answers.n_taken.get()
    }

    /// True if all connections hold more than there is, and this one has more unsent answers than its floor. Ask after all was written for
    /// which the client had room.
    pub(super) fn must_close(&self) -> bool {
        let answers = &self.answers;
        let n_streams = answers.n_unflushed.get().max(answers.n_unsent.get());
        let unsent_bytes = answers.unsent_bytes.get() + n_streams * STREAM_BYTES;
        unsent_bytes > self.shared.floor_bytes && self.is_exhausted()
    }

    /// True if all connections hold more than there is, and this one holds more than its floor for streams that it once had.
    pub(super) fn must_leave(&self) -> bool {
        self.n_streams.get() * STREAM_BYTES > self.shared.floor_bytes && self.is_exhausted()
    }

    /// True if all connections hold as much as there is.
    pub(super) fn is_exhausted(&self) -> bool {
        self.shared.bytes_left.load(Ordering::Relaxed) <= 0
    }

    /// What must be drawn for `used` bytes.
    fn to_draw(&self, used_bytes: usize) -> usize {
        let beyond = used_bytes.saturating_sub(self.shared.floor_bytes);
        beyond.next_multiple_of(DRAW_BYTES)
    }

    fn try_grow(&self, bytes: usize) -> Result<(), Status> {
        let message_bytes = self.message_bytes.get() + bytes;
        if message_bytes > self.shared.connection_bytes {
            let message = "the calls under way on this connection hold too much memory";
            return Err(Status::new(Code::ResourceExhausted, message));
        }
        let used_bytes = self.used_bytes.get() + bytes;
        let drawn_bytes = self.to_draw(used_bytes).max(self.drawn_bytes.get());
        let more = drawn_bytes - self.drawn_bytes.get();
        if more > 0 && self.shared.try_take(more).is_none() {
            let message = "the calls under way on all connections hold too much memory";
            return Err(Status::new(Code::ResourceExhausted, message));
        }
        self.message_bytes.set(message_bytes);
        self.used_bytes.set(used_bytes);
        self.drawn_bytes.set(drawn_bytes);
        Ok(())
    }

    fn grow(&self, bytes: usize) {
        let used_bytes = self.used_bytes.get() + bytes;
        let drawn_bytes = self.to_draw(used_bytes);
        if let Some(more) = drawn_bytes.checked_sub(self.drawn_bytes.get())
            && more > 0
        {
            self.shared.take(more);
            self.drawn_bytes.set(drawn_bytes);
        }
        self.used_bytes.set(used_bytes);
    }

    fn shrink(&self, bytes: usize) {
        let used_bytes = self.used_bytes.get() - bytes;
        self.used_bytes.set(used_bytes);
        let (needed, drawn) = (self.to_draw(used_bytes), self.drawn_bytes.get());
        // One step more is kept, unless none is needed: a connection that goes up and down by a call need not tell all cores.
        if drawn > needed + DRAW_BYTES || (needed == 0 && drawn > 0) {
            self.shared.give_back(drawn - needed);
            self.drawn_bytes.set(needed);
        }
    }
}

impl Drop for ConnectionMemory {
    fn drop(&mut self) {
        self.shared.give_back(self.drawn_bytes.get());
    }
}

// === impl HeldMemory ===

impl HeldMemory<'_> {
    /// Takes `bytes` more.
    pub(super) fn grow(&mut self, bytes: usize) -> Result<(), Status> {
        self.memory.try_grow(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Releases all of it.
    pub(super) fn clear(&mut self) {
        let memory = self.memory;
        memory
            .message_bytes
            .set(memory.message_bytes.get() - self.bytes);
        memory.shrink(self.bytes);
        self.bytes = 0;
    }
}

impl Drop for HeldMemory<'_> {
    fn drop(&mut self) {
        self.clear();
    }
}

// === impl AnswerBytes ===

impl Buf for AnswerBytes {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, n_bytes: usize) {
        self.bytes.advance(n_bytes);
        let answers = &self.memory.answers;
        answers.n_taken.set(answers.n_taken.get().wrapping_add(1));
    }
}

impl Drop for AnswerBytes {
    fn drop(&mut self) {
        let answers = &self.memory.answers;
        answers.n_unsent.set(answers.n_unsent.get() - 1);
        let unsent_bytes = answers.unsent_bytes.get() - self.n_charged;
        answers.unsent_bytes.set(unsent_bytes);
        self.memory.shrink(self.n_charged);
    }
}

// === impl WatchPermit ===

impl Drop for WatchPermit<'_> {
    fn drop(&mut self) {
        let memory = self.memory;
        memory.n_watches.set(memory.n_watches.get() - 1);
        if self.is_shared {
            memory.shared.watches_left.fetch_add(1, Ordering::Relaxed);
        }
    }
}
