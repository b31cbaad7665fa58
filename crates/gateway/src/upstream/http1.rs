//! One HTTP/1 connection.
//!
//! A connection that sends requests without a body has no task of its own: the request that holds it reads and writes for it, so that
//! a response takes no way from task to task.
//!
//! ```text
//!  inline ──request with a body, or an upgrade──► task
//!    │                                              │
//!    └──closed──► over                              └──► (ends by itself)
//! ```
//!
//! A body needs a task, because it is sent on while nobody takes the response.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;
use http::{Request, Response};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::task::{AbortHandle, spawn_local, unconstrained};
use tokio::time::Instant;

use super::connect::OpenedStream;
use super::outgoing::OutgoingBody;
use super::stream::ReadState;
use super::timer::now;

/// One HTTP/1 connection.
pub(super) struct Http1Connection {
    sender: SendRequest<OutgoingBody>,
    driver: Driver,
    waker: DriverWaker,
    reads: Arc<ReadState>,
    pub(super) address: SocketAddr,
    /// The version of the target's addresses that has this one.
    pub(super) list_version: u64,
    pub(super) idle_since: Instant,
}

/// The part that reads and writes.
enum Driver {
    /// It is polled by the request that holds the connection.
    Inline(ConnectionFuture),
    /// It has a task of its own.
    Task(AbortHandle),
    /// The connection is closed.
    Over,
}

type ConnectionFuture = Pin<Box<dyn Future<Output = hyper::Result<()>>>>;

/// The waker of a driver that is polled inline, whichever task polls it.
struct DriverWaker {
    relay: Arc<WakerRelay>,
    waker: Waker,
}

/// Passes wake-ups on to the task that waits for the connection, unless that task polls the connection just now and looks itself.
#[derive(Default)]
struct WakerRelay {
    task: AtomicWaker,
    /// True if the task looks itself.
    is_held: AtomicBool,
    /// True if something happened since the driver was polled.
    was_woken: AtomicBool,
}

// === impl Http1Connection ===

impl Http1Connection {
    pub(super) async fn start(
        mut opened: OpenedStream,
        list_version: u64,
    ) -> io::Result<Box<Self>> {
        let waker = DriverWaker::new();
        let reads = opened.stream.wake_by(waker.waker.clone());
        let (sender, connection) = Builder::new()
            .handshake(TokioIo::new(opened.stream))
            .await
            .map_err(io::Error::other)?;
        let mut started = Self {
            sender,
            driver: Driver::Inline(Box::pin(connection.with_upgrades())),
            waker,
            reads,
            address: opened.address,
            list_version,
            idle_since: now(),
        };
        // hyper takes requests once it was polled.
        started.drive();
        Ok(Box::new(started))
    }

    /// Sends a request. On failure, one of which nothing was written comes back.
    pub(super) async fn send(
        &mut self,
        request: Box<Request<OutgoingBody>>,
    ) -> Result<Response<Incoming>, TrySendError<Request<OutgoingBody>>> {
        self.reads.begin();
        if !request.body().is_end_stream() {
            self.give_task();
        }
        // Its waker may be without effect, so it must not wait for its turn among other work.
        let mut sending = pin!(unconstrained(self.sender.try_send_request(*request)));
        poll_fn(|context| self.poll(context, |context| sending.as_mut().poll(context))).await
    }

    /// Polls a part of an exchange on this connection, and reads and writes for it.
    pub(super) fn poll<T>(
        &mut self,
        context: &mut Context<'_>,
        mut part: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        if !matches!(self.driver, Driver::Inline(_)) {
            return part(context);
        }
        // Only the driver can make the part ready, and the part is polled after it. So it needs no waker, which would wake this very
        // task. In the same way the part may wake the driver, which is polled as soon as the part is pending.
        let mut without_waker = Context::from_waker(Waker::noop());
        self.waker.relay.is_held.store(true, Ordering::Relaxed);
        let mut polled = part(&mut without_waker);
        if polled.is_pending() {
            self.waker.relay.task.register(context.waker());
            self.drive();
            polled = part(&mut without_waker);
        }
        self.waker.relay.is_held.store(false, Ordering::Relaxed);
        if polled.is_pending() && self.waker.relay.was_woken.load(Ordering::Relaxed) {
            context.waker().wake_by_ref();
        }
        polled
    }

    /// True if something was read since the last request was sent.
    pub(super) fn was_read(&self) -> bool {
        self.reads.was_read()
    }

    /// True if it waits for a request. One that is not in use notices only here that the target has closed it.
    pub(super) fn is_ready(&mut self) -> bool {
        if self.waker.relay.was_woken.load(Ordering::Relaxed) {
            self.drive();
        }
        self.sender.is_ready()
    }

    /// Notes the end of an exchange.
    pub(super) fn rest(&mut self) {
        self.idle_since = now();
        self.waker.relay.task.take();
    }

    /// Leaves reading and writing to a task of its own.
    pub(super) fn give_task(&mut self) {
        match std::mem::replace(&mut self.driver, Driver::Over) {
            // Its errors reach the request, or nobody if there is none.
            Driver::Inline(driver) => {
                self.reads.leave_waker();
                self.driver = Driver::Task(spawn_local(driver).abort_handle());
            }
            other => self.driver = other,
        }
    }

    /// Closes it at once. To drop it would not do: hyper keeps a connection whose request is still being written (hyper#4176).
    pub(super) fn abort(self) {
        if let Driver::Task(task) = self.driver {
            task.abort();
        }
    }

    /// Reads and writes what can be, if that is not the work of a task.
    fn drive(&mut self) {
        if let Driver::Inline(driver) = &mut self.driver
            && self.waker.poll(driver.as_mut()).is_ready()
        {
            // Its errors reach the request, or nobody if there is none. The stream of an upgrade goes to others.
            self.reads.leave_waker();
            self.driver = Driver::Over;
        }
    }
}

// === impl DriverWaker ===

impl DriverWaker {
    fn new() -> Self {
        let relay = Arc::<WakerRelay>::default();
        let waker = Waker::from(Arc::clone(&relay));
        Self { relay, waker }
    }

    fn poll<F: Future + ?Sized>(&self, driver: Pin<&mut F>) -> Poll<F::Output> {
        self.relay.was_woken.store(false, Ordering::Relaxed);
        driver.poll(&mut Context::from_waker(&self.waker))
    }
}

// === impl WakerRelay ===

// All wakers of a connection are called by its own thread, so no order between the flags is needed.
impl Wake for WakerRelay {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.was_woken.store(true, Ordering::Relaxed);
        if !self.is_held.load(Ordering::Relaxed) {
            self.task.wake();
        }
    }
}

impl std::fmt::Debug for Http1Connection {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Http1Connection")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
