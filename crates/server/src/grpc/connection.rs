//! One connection: calls in, answers out, and an end.

use std::cell::RefCell;
use std::future::poll_fn;
use std::mem;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::BytesMut;
use h2::Reason;
use h2::server::{self, Builder};
use tidegate_gateway::ConnectionActivity;
use tidegate_limiter::Store;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use super::GrpcConfig;
use super::call::Office;
use super::keepalive::Keepalive;
use super::life::{Life, Order};
use super::memory::{AnswerBytes, CallMemory, ConnectionMemory};
use super::worker::Worker;
use crate::core_context::SharedCoreContext;
use crate::drain::Drain;
use crate::peer::Peer;
use crate::write_timeout::WriteTimeoutStream;

/// HTTP/2 over a stream that gives up on a peer who does not read.
pub(super) type H2<I> = server::Connection<WriteTimeoutStream<I>, AnswerBytes>;

/// One connection.
pub(super) struct Connection<S, I> {
    h2: H2<I>,
    office: Rc<Office<S>>,
    worker: Worker,
    life: Life,
    keepalive: Keepalive,
    is_told_to_go: bool,
    /// Pieces of answers that were taken when it was last looked at answers that wait; `None` if none waited then.
    taken_before: Option<u64>,
    activity: Arc<ConnectionActivity>,
    /// True if calls wait, watches aside, as the activity has noted it.
    is_active: bool,
}

/// Bytes that a call, and all calls of a connection together, may have on their way to us. Each message is
/// taken as it comes, so this bounds what a peer may send ahead, which lies in h2 beside the budget.
const WINDOW: u32 = 256 << 10;

/// Calls that a peer may take back before they were looked at. h2's own measure is 20, which an Envoy whose
/// calls time out all at once would pass; looking at a call costs a microsecond.
const MAX_RESET_UNSEEN: usize = 256;

/// Agrees on HTTP/2 with a peer, or `None` if it does not, or not in time.
pub(super) async fn handshake<I>(
    io: I,
    config: &GrpcConfig,
    activity: Arc<ConnectionActivity>,
) -> Option<H2<I>>
where
    I: AsyncRead + AsyncWrite + Unpin,
{
    let io = WriteTimeoutStream::new(io, config.write_timeout, activity).unvectored();
    let handshake = builder(config).handshake(io);
    timeout(config.handshake_timeout, handshake)
        .await
        .ok()?
        .ok()
}

fn builder(config: &GrpcConfig) -> Builder {
    let mut builder = Builder::new();
    builder
        .max_concurrent_streams(config.max_concurrent_calls)
        .max_header_list_size(config.max_header_bytes)
        .initial_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_pending_accept_reset_streams(MAX_RESET_UNSEEN);
    builder
}

// === impl Connection ===

impl<S, I> Connection<S, I>
where
    S: Store + 'static,
    I: AsyncRead + AsyncWrite + Unpin,
{
    pub(super) fn new(
        mut h2: H2<I>,
        peer: Peer,
        core: SharedCoreContext<S>,
        config: GrpcConfig,
        memory: Arc<CallMemory>,
        activity: Arc<ConnectionActivity>,
        drain: Drain,
    ) -> Self {
        let office = Rc::new(Office {
            core,
            config,
            drain: drain.clone(),
            memory: Rc::new(ConnectionMemory::new(memory)),
            calls: RefCell::default(),
            out: RefCell::new(BytesMut::new()),
        });
        let keepalive = Keepalive::new(h2.ping_pong(), config.keepalive_interval);
        Self {
            h2,
            keepalive,
            worker: Worker::new(Rc::clone(&office)),
            office,
            life: Life::new(&config, peer, drain),
            is_told_to_go: false,
            taken_before: None,
            activity,
            is_active: false,
        }
    }

    /// Serves the connection until it is closed.
    pub(super) async fn run(mut self) {
        poll_fn(|context| self.poll(context)).await;
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.obey(context);
        if self.keepalive.poll(context).is_ready() {
            return Poll::Ready(());
        }
        loop {
            if self.take_in(context).is_ready() {
                return Poll::Ready(());
            }
            if !self.is_write_stuck() {
                self.office.memory.note_flushed();
            }
            if self.office.memory.must_close() {
                return Poll::Ready(());
            }
            let n_calls = self.office.calls.borrow().len();
            if n_calls == 0 {
                break;
            }
            self.life.saw_calls();
            self.answer(context);
            self.office.memory.note_calls(n_calls, self.n_waiting());
            self.activity.touch();
            // Whatever was answered has woken this task: h2 does so when there is something to write. Other connections come first, unless
            // each of them would answer as many calls before the first is closed.
            if !self.office.memory.is_exhausted() {
                break;
            }
        }
        self.note_activity();
        Poll::Pending
    }

    /// Does what the time of life asks for.
    fn obey(&mut self, context: &mut Context<'_>) {
        while let Poll::Ready(order) = self.life.poll(context) {
            match order {
                Order::CloseIfStuck if self.is_stuck() => self.close(),
                Order::CloseIfStuck if self.has_calls() || !self.office.memory.must_leave() => {}
                Order::CloseIfIdle if self.n_waiting() > 0 => {}
                // All that is left are answers which the peer gives no room for.
                Order::CloseIfIdle if self.h2.has_streams() => self.close(),
                // It has not heard it.
                Order::CloseIfStuck | Order::CloseIfIdle if self.is_told_to_go => self.close(),
                Order::CloseIfStuck | Order::CloseIfIdle | Order::Finish => {
                    self.is_told_to_go = true;
                    self.h2.graceful_shutdown();
                }
                Order::Close => self.close(),
            }
        }
    }

    /// True if answers wait for the peer, as they did when this was last called, and it has taken nothing since.
    fn is_stuck(&mut self) -> bool {
        let memory = &self.office.memory;
        let taken = memory.has_unsent().then(|| memory.n_taken());
        let before = mem::replace(&mut self.taken_before, taken);
        taken.is_some() && taken == before
    }

    fn has_calls(&self) -> bool {
        self.n_waiting() > 0 || self.h2.has_streams()
    }

    /// True if the socket has not taken all that h2 had to write.
    fn is_write_stuck(&self) -> bool {
        self.activity.n_active() > u32::from(self.is_active)
    }

    /// Tells the listener if calls wait. A watch is none: it may last for hours.
    fn note_activity(&mut self) {
        let is_active = self.n_waiting() > self.office.memory.n_watches();
        if is_active && !self.is_active {
            self.activity.begin();
        } else if !is_active && self.is_active {
            self.activity.end();
        }
        self.is_active = is_active;
    }

    fn close(&mut self) {
        self.h2.abrupt_shutdown(Reason::NO_ERROR);
    }

    /// Calls that have become tasks. Each holds on to the office; so do the connection and its worker.
    fn n_waiting(&self) -> usize {
        Rc::strong_count(&self.office) - 2
    }

    /// Takes in all calls that have arrived, before one of them is answered: each time h2 is asked for the
    /// next call it also writes what is to be written, and answers that leave together cost one write.
    /// Ready when the connection is closed.
    fn take_in(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while let Poll::Ready(accepted) = self.h2.poll_accept(context) {
            match accepted {
                Some(Ok(call)) => self.office.calls.borrow_mut().push_back(call),
                Some(Err(_)) | None => return Poll::Ready(()),
            }
        }
        Poll::Pending
    }

    fn answer(&mut self, context: &mut Context<'_>) {
        while self.worker.poll(context).is_pending() {
            let next = Worker::new(Rc::clone(&self.office));
            mem::replace(&mut self.worker, next).leave();
        }
    }
}
