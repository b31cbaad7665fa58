//! The way of one runtime to one server: a connection, made when first needed, and the calls on it.
//!
//! Whoever calls writes its command into a buffer and wakes the driver, a task of the same runtime; by the
//! time that runs, all who called at that moment have done the same, and everything goes out as one write.
//! No call crosses threads, and none has a timer of its own.

mod blame;
mod driver;
mod joint;
mod slots;
mod watch;

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use tidegate_store::StoreError;
use tidegate_store::report::ServerReport;
use tokio::runtime::Handle;

use super::script::{Joinable, Script};
use super::server::Server;
use super::stats::Stats;
use super::time::Span;
use super::unclaimed::Unclaimed;
use super::wire::Command;

use blame::Blame;
use joint::Joint;
pub(crate) use joint::Question;
use slots::{Slots, Ticket};

/// The calls of one runtime to one server. Other threads may hold it, but have no reason to.
#[derive(Debug)]
pub(crate) struct Link {
    server: Arc<Server>,
    state: Mutex<State>,
    pub(crate) stats: Stats,
}

/// A call whose reply is to come. Dropped, it leaves its reply unclaimed.
#[derive(Debug)]
pub(crate) struct Call {
    link: Arc<Link>,
    ticket: Option<Ticket>,
}

/// What goes before a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Preface<'a> {
    /// Nothing.
    None,
    /// The script that it names, unless this connection has had it.
    Script(&'a Script),
}

/// Whether a call follows the order of a Cluster that moves a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asking {
    Yes,
    No,
}

#[derive(Debug, Default)]
struct State {
    /// Commands that were not written yet.
    out: Vec<u8>,
    /// Room to put a command together in.
    body: Vec<u8>,
    /// The last calls, while others may join them: they are not in `out` yet.
    joint: Joint,
    slots: Slots,
    blame: Blame,
    /// The driver, while it has nothing to do.
    driver: Option<Waker>,
    /// The scripts that this connection has sent to the server.
    scripts: Vec<Script>,
    /// How many the server has accepted, on this connection and those before.
    scripts_accepted: u64,
    is_closed: bool,
    is_connected: bool,
    was_connected: bool,
    /// Counts up when the connection is to be made anew.
    renewals: u64,
}

/// The most calls that wait on one link. At 100,000 calls a second that is 160 ms, long past any deadline.
const MOST_CALLS: usize = 16 * 1024;

/// The most bytes that wait to be written to one link.
const MOST_BYTES: usize = 16 * 1024 * 1024;

// === impl Link ===

impl Link {
    /// A link whose driver runs on the current runtime.
    pub(crate) fn start(server: Arc<Server>, runtime: &Handle) -> Arc<Self> {
        let link = Arc::new(Self {
            server,
            state: Mutex::new(State::default()),
            stats: Stats::default(),
        });
        runtime.spawn(driver::drive(Arc::clone(&link)));
        link
    }

    /// Whether its driver has ended, with its runtime or because nobody needs it.
    pub(crate) fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    /// Adds what there is to tell of it to a report.
    pub(crate) fn add_to(&self, report: &mut ServerReport) {
        self.stats.add_to(report);
        let state = self.state();
        report.connections += u64::from(state.is_connected);
        let waiting = u64::try_from(state.slots.in_flight());
        report.waiting += waiting.unwrap_or(u64::MAX);
    }

    /// Whether the server has accepted scripts on it, now or before.
    pub(crate) fn runs_scripts(&self) -> bool {
        self.state().scripts_accepted > 0
    }

    /// Whether no call waits on it.
    pub(crate) fn is_idle(&self) -> bool {
        self.state().slots.in_flight() == 0
    }

    /// Ends it, and all calls on it.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.wake_driver();
    }

    /// Has the connection made anew, for it leads to the wrong server.
    pub(crate) fn renew(&self) {
        let mut state = self.state();
        state.renewals += 1;
        state.wake_driver();
    }

    /// Puts a command on its way.
    pub(crate) fn send(
        self: &Arc<Self>,
        preface: Preface<'_>,
        asking: Asking,
        span: Span,
        unclaimed: Option<&Unclaimed>,
        write: impl FnOnce(&mut Command<'_>),
    ) -> Result<Call, StoreError> {
        let mut state = self.open()?;
        state.part();
        if let Preface::Script(script) = preface {
            state.load(script, span);
        }
        if asking == Asking::Yes {
            state.skip(span, |command| {
                command.arg("ASKING");
            });
        }
        state.write(write);
        Ok(self.expect(state, span, unclaimed))
    }

    /// Puts a call of a script on its way, as one command with those of the same script right before it that
    /// were not written yet.
    pub(crate) fn join(
        self: &Arc<Self>,
        script: &Joinable,
        span: Span,
        question: Question<'_>,
    ) -> Result<Call, StoreError> {
        let mut state = self.open()?;
        if !state.joint.takes(script) {
            state.part();
            state.load(script.alone(), span);
            state.load(script.joined(), span);
        }
        state.joint.add(script, question);
        Ok(self.expect(state, span, None))
    }

    /// The state, if one more call may wait.
    fn open(&self) -> Result<MutexGuard<'_, State>, StoreError> {
        let state = self.state();
        if state.is_closed {
            return Err(unavailable("the runtime that talked to Redis has ended"));
        }
        if state.slots.in_flight() >= MOST_CALLS || state.out.len() >= MOST_BYTES {
            drop(state);
            self.stats.overload.add(1);
            return Err(unavailable("too many calls wait for Redis"));
        }
        Ok(state)
    }

    /// Has the reply to the last command come to a call.
    fn expect(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, State>,
        span: Span,
        unclaimed: Option<&Unclaimed>,
    ) -> Call {
        let ticket = state.slots.expect(span, unclaimed.cloned());
        state.wake_driver();
        drop(state);
        self.stats.calls.add(1);
        Call {
            link: Arc::clone(self),
            ticket: Some(ticket),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No panic of ours happens while it is held; one of a caller's closure leaves half a command at
        // the most in `body`, which the next one clears.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl State ===

impl State {
    fn write(&mut self, write: impl FnOnce(&mut Command<'_>)) {
        Command::encode(&mut self.out, &mut self.body, write);
    }

    /// Writes down the calls that were joined: nobody joins them any more.
    fn part(&mut self) {
        let calls = self.joint.write(&mut self.out);
        self.slots.join(calls);
    }

    /// Whether there is nothing to be written.
    fn is_written(&self) -> bool {
        self.out.is_empty() && self.joint.is_empty()
    }

    /// Writes a command whose reply nobody wants.
    fn skip(&mut self, span: Span, write: impl FnOnce(&mut Command<'_>)) {
        self.write(write);
        self.slots.expect_nothing(span);
    }

    /// Sends a script ahead of the first call of it on this connection, so that none has to come back
    /// for it.
    fn load(&mut self, script: &Script, span: Span) {
        if !self.scripts.iter().any(|loaded| loaded == script) {
            self.scripts.push(script.clone());
            self.skip(span, |command| {
                command.arg("SCRIPT").arg("LOAD").arg(script.body());
            });
        }
    }

    fn wake_driver(&mut self) {
        if let Some(driver) = self.driver.take() {
            driver.wake();
        }
    }
}

// === impl Call ===

impl Future for Call {
    type Output = Result<Bytes, StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(ticket) = self.ticket else {
            return Poll::Pending;
        };
        let outcome = self.link.state().slots.poll(ticket, cx.waker());
        if outcome.is_ready() {
            self.ticket = None;
        }
        outcome
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.link.state().slots.abandon(ticket);
        }
    }
}

pub(crate) fn unavailable(reason: &str) -> StoreError {
    StoreError::Unavailable {
        reason: reason.into(),
    }
}

/// The error of who asks where nothing can run.
pub(crate) fn no_runtime() -> StoreError {
    unavailable("Redis was asked outside of a tokio runtime")
}
