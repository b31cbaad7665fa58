//! The task that owns a link's connection: writes what waits, hands out replies, ends calls whose time is
//! up, and makes the connection anew when it is needed again.

use std::future::poll_fn;
use std::mem;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tidegate_store::StoreError;
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::time::Instant;

use super::slots::Arrived;
use super::watch::Watch;
use super::{Link, State};
use crate::client::fault::ServerFault;
use crate::client::session::{Session, SessionError};
use crate::client::stream::Stream;
use crate::client::time::{Timer, now};
use crate::client::timeout::LatencySamples;
use crate::client::wire::{JointReply, Scanner};

/// A connection in use.
struct Wire<'a> {
    link: &'a Link,
    stream: Stream,
    /// What is being written, and how much of it has been.
    writing: Vec<u8>,
    written: usize,
    is_flushed: bool,
    /// What has been read and not handed out.
    reading: BytesMut,
    scanner: Scanner,
    timer: Timer,
    watch: Watch,
    samples: LatencySamples,
    /// When the server was last heard of.
    heard: Instant,
    renewals: u64,
}

/// What the replies that came at one moment were.
#[derive(Default)]
struct Tally {
    answered: u64,
    /// By a server that cannot serve, and the last reason it gave.
    refused: usize,
    refusal: Option<ServerFault>,
}

/// Ends a link when its driver does: when the runtime that it ran on has ended, too.
struct End<'a>(&'a Link);

/// Room for the replies to a full pipeline of decisions.
const READ_AHEAD: usize = 16 * 1024;

/// A buffer that has grown beyond this, by a burst or a large command or reply, is not kept.
const KEPT_BUFFER: usize = 256 * 1024;

/// A server that says nothing for this long after a reply was due is taken for stalled, and its connection
/// for dead: replies come in order, so whatever is asked on it would wait just as long.
const STALLED: Duration = Duration::from_millis(100);

/// Connecting may take longer than a call; only from here on is the server to blame.
const SLOW_CONNECT: Duration = Duration::from_millis(100);

/// Drives a link until it is closed.
pub(super) async fn drive(link: Arc<Link>) {
    let link = &*link;
    let _end = End(link);
    while link.is_wanted().await {
        let renewals = link.state().renewals;
        let error = match link.connect().await {
            Ok(session) => {
                link.state().is_connected = true;
                let mut wire = Wire::new(link, session.into_stream(), renewals);
                poll_fn(|cx| wire.poll(cx)).await
            }
            Err(error) => error,
        };
        link.lost(&error);
    }
}

// === impl Link ===

impl Link {
    /// Waits until there is something to send; `false` once nothing ever will be.
    async fn is_wanted(&self) -> bool {
        poll_fn(|cx| {
            let mut state = self.state();
            if state.is_closed {
                return Poll::Ready(false);
            }
            if !state.is_written() {
                return Poll::Ready(true);
            }
            state.call_back(cx);
            Poll::Pending
        })
        .await
    }

    /// Connects, while calls that wait for that come to their time.
    async fn connect(&self) -> Result<Session, SessionError> {
        let began = now();
        let mut timer = Timer::default();
        let mut connecting = pin!(self.server.connect());
        let session = poll_fn(|cx| {
            if let Poll::Ready(session) = connecting.as_mut().poll(cx) {
                return Poll::Ready(session);
            }
            self.wait_for_connection(cx, &mut timer, began);
            Poll::Pending
        })
        .await?;
        let connected = now();
        let took = connected.duration_since(began);
        self.server.timeout().add(took, connected);
        if mem::replace(&mut self.state().was_connected, true) {
            self.stats.reconnects.add(1);
        }
        Ok(session)
    }

    fn wait_for_connection(&self, cx: &mut Context<'_>, timer: &mut Timer, began: Instant) {
        loop {
            let due = {
                let mut state = self.state();
                state.call_back(cx);
                state.slots.due()
            };
            if timer.poll(cx, due).is_pending() {
                return;
            }
            let now = now();
            if now.duration_since(began) < SLOW_CONNECT {
                self.give_up_late(now);
            } else {
                self.sweep(now);
            }
            self.state().forget_unwanted();
        }
    }
}

// === impl State ===

impl State {
    /// Drops commands that wait for a connection when nobody waits for them any more: to send them now
    /// would charge callers who were told otherwise.
    fn forget_unwanted(&mut self) {
        if !self.slots.is_awaited() {
            self.fail(&StoreError::Open);
        }
    }

    /// Has the driver woken by the next call.
    fn call_back(&mut self, cx: &Context<'_>) {
        match &mut self.driver {
            Some(driver) => driver.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
    }

    pub(super) fn fail(&mut self, error: &StoreError) -> usize {
        self.is_connected = false;
        self.joint.clear();
        self.out.clear();
        self.out.shrink_to(KEPT_BUFFER);
        self.scripts.clear();
        self.slots.fail(error)
    }
}

// === impl Wire ===

impl<'a> Wire<'a> {
    fn new(link: &'a Link, stream: Stream, renewals: u64) -> Self {
        Self {
            link,
            stream,
            writing: Vec::new(),
            written: 0,
            is_flushed: true,
            reading: BytesMut::new(),
            scanner: Scanner::default(),
            timer: Timer::default(),
            watch: Watch::default(),
            samples: LatencySamples::new(now()),
            heard: now(),
            renewals,
        }
    }

    /// Does all that can be done now; ready when the connection is of no more use.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<SessionError> {
        let done = self
            .write(cx)
            .and_then(|()| self.read(cx))
            .and_then(|()| self.watch(cx));
        match done {
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(error),
        }
    }

    /// Writes all that waits, in one write if the connection takes it.
    fn write(&mut self, cx: &mut Context<'_>) -> Result<(), SessionError> {
        loop {
            if self.written == self.writing.len() && !self.next_batch(cx)? {
                return self.flush(cx);
            }
            let rest = &self.writing[self.written..];
            match Pin::new(&mut self.stream).poll_write(cx, rest)? {
                Poll::Pending => {
                    // Whoever calls now is not written yet, but has a deadline to be watched.
                    self.link.state().call_back(cx);
                    return Ok(());
                }
                Poll::Ready(0) => return Err(SessionError::Closed),
                Poll::Ready(written) => {
                    self.written += written;
                    self.is_flushed = false;
                    self.link.stats.writes.add(1);
                }
            }
        }
    }

    /// Takes over what callers have written since; `false` if there is nothing.
    fn next_batch(&mut self, cx: &mut Context<'_>) -> Result<bool, SessionError> {
        self.writing.clear();
        self.writing.shrink_to(KEPT_BUFFER);
        self.written = 0;
        let mut state = self.link.state();
        if state.is_closed || state.renewals != self.renewals {
            return Err(SessionError::Renewed);
        }
        // Before it looks at what is there, so that nothing comes in between unseen.
        state.call_back(cx);
        state.part();
        mem::swap(&mut state.out, &mut self.writing);
        state.body.clear();
        state.body.shrink_to(KEPT_BUFFER);
        Ok(!self.writing.is_empty())
    }

    fn flush(&mut self, cx: &mut Context<'_>) -> Result<(), SessionError> {
        if !self.is_flushed {
            self.is_flushed = Pin::new(&mut self.stream).poll_flush(cx)?.is_ready();
        }
        Ok(())
    }

    /// Hands out all replies that are there.
    fn read(&mut self, cx: &mut Context<'_>) -> Result<(), SessionError> {
        while let Poll::Ready(read) = self.poll_read(cx) {
            let read = read?;
            if read == 0 {
                return Err(SessionError::Closed);
            }
            self.heard = now();
            self.hand_out()?;
        }
        Ok(())
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<std::io::Result<usize>> {
        if self.reading.is_empty() && self.reading.capacity() > KEPT_BUFFER {
            self.reading = BytesMut::new();
        }
        // Gets back the room of replies that were fetched, if it can.
        self.reading.reserve(READ_AHEAD);
        let read = ready!(pin!(self.stream.read_buf(&mut self.reading)).poll(cx));
        Poll::Ready(read)
    }

    fn hand_out(&mut self) -> Result<(), SessionError> {
        let mut tally = Tally::default();
        let mut state = self.link.state();
        while let Some(length) = self.scanner.scan(&self.reading)? {
            let frame = self.reading.split_to(length).freeze();
            match state.slots.next_joined() {
                1 => self.hand_over(&mut state, frame, &mut tally)?,
                calls => {
                    for frame in JointReply::new(frame, calls)? {
                        self.hand_over(&mut state, frame, &mut tally)?;
                    }
                }
            }
        }
        state.blame.end_silence();
        if tally.answered > 0 {
            state.blame.answered();
        }
        let has_all = state.slots.in_flight() == 0;
        drop(state);
        let server = &self.link.server;
        self.samples.add_to(server.timeout(), self.heard);
        if tally.answered > 0 {
            server.succeeded(tally.answered);
        }
        match tally.refusal {
            None if has_all => server.caught_up(self.heard),
            None => {}
            Some(fault) => {
                self.link.refused(tally.refused, self.heard, &fault);
                return fault.verdict();
            }
        }
        Ok(())
    }

    /// Hands the next call its reply.
    fn hand_over(
        &mut self,
        state: &mut State,
        frame: Bytes,
        tally: &mut Tally,
    ) -> Result<(), SessionError> {
        let stats = &self.link.stats;
        let fault = ServerFault::of_frame(&frame).map(|fault| self.link.server.judged(fault));
        if fault.as_ref().is_some_and(ServerFault::is_no_script) {
            // Somebody made Redis forget them: they are sent again.
            state.scripts.clear();
        }
        match state.slots.arrived(frame) {
            Arrived::Unasked => return Err(SessionError::Unasked),
            Arrived::Skipped { since } => {
                self.samples.push(self.heard.duration_since(since));
                // Nearly always the reply to a script that was sent ahead.
                let is_accepted = fault.is_none() && !state.scripts.is_empty();
                state.scripts_accepted += u64::from(is_accepted);
            }
            Arrived::Awaited { since } => {
                let took = self.heard.duration_since(since);
                self.samples.push(took);
                stats.took(took);
                match fault {
                    Some(fault) if fault.is_of_server() => {
                        tally.refused += 1;
                        tally.refusal = Some(fault);
                    }
                    Some(fault) if fault.is_of_call() => stats.refused.add(1),
                    Some(fault) if fault.redirection().is_some() => stats.redirected.add(1),
                    _ => tally.answered += 1,
                }
            }
        }
        Ok(())
    }

    /// Ends the calls whose time is up, and the connection if the server has stalled.
    fn watch(&mut self, cx: &mut Context<'_>) -> Result<(), SessionError> {
        loop {
            let (due, stalls) = {
                let state = self.link.state();
                let deadline = state.slots.next_deadline();
                let stalls = deadline.map(|deadline| self.heard.max(deadline) + STALLED);
                let due = [state.slots.due(), state.blame.silence_limit(), stalls];
                (due.into_iter().flatten().min(), stalls)
            };
            let Some(due) = due.map(|due| self.watch.with_grace(due)) else {
                return Ok(());
            };
            if self.timer.poll(cx, Some(due)).is_pending() {
                self.watch.rest();
                return Ok(());
            }
            if self.watch.look_again(cx).is_pending() {
                return Ok(());
            }
            let now = now();
            if self.watch.is_excused(due, now) {
                continue;
            }
            self.link.sweep(now);
            if stalls.is_some_and(|stalls| stalls <= now) {
                return Err(SessionError::Stalled);
            }
        }
    }
}

// === impl End ===

impl Drop for End<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.is_closed = true;
        state.fail(&super::unavailable(
            "the runtime that talked to Redis has ended",
        ));
    }
}
