//! One server as the client sees it: where it is, how it fares, and who is connected to it.

mod probe;
mod watch;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate_store::StoreError;
use tidegate_store::report::{ServerInfo, ServerReport};
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout};
use tracing::{debug, info, warn};

use super::Address;
use super::breaker::{Breaker, OpenCause, Tripped};
use super::change_log::ChangeLog;
use super::config::{Changes, Credentials};
use super::fault::ServerFault;
use super::lanes;
use super::link::{Link, no_runtime, unavailable};
use super::sentinel::Sentinels;
use super::session::{Session, SessionError};
use super::stats::Count;
use super::time::now;
use super::timeout::{AdaptiveTimeout, TimeoutBounds};
use super::tls::Tls;

/// A server, or whoever is the master now.
#[derive(Debug)]
pub(crate) struct Server {
    id: u64,
    place: Place,
    manners: Arc<Manners>,
    breaker: Breaker,
    timeout: AdaptiveTimeout,
    is_probed: AtomicBool,
    is_watched: AtomicBool,
    is_closed: AtomicBool,
    /// The log has a line that the breaker opened, and none that it closed.
    is_logged: AtomicBool,
    spared: Count,
    links: Mutex<Links>,
}

/// How to find a server.
#[derive(Debug)]
pub(crate) enum Place {
    /// It is always there, and has all keys.
    Alone(Address),
    /// It is always there, and has the keys of some slots of a Cluster.
    InCluster(Address),
    /// It is the master that Sentinels tell of.
    Sentinels(Sentinels),
}

/// How every server is greeted.
#[derive(Debug)]
pub(crate) struct Manners {
    pub(crate) credentials: Option<Credentials>,
    pub(crate) database: u32,
    pub(crate) tls: Option<Tls>,
    pub(crate) timeouts: TimeoutBounds,
    pub(crate) connect_timeout: Duration,
    pub(crate) changes: Changes,
    pub(crate) change_log: ChangeLog,
}

#[derive(Debug, Default)]
struct Links {
    alive: Vec<Arc<Link>>,
    /// The counts of those that are no more.
    past: ServerReport,
    /// What the server said of itself last.
    info: Option<ServerInfo>,
}

// === impl Server ===

impl Server {
    pub(crate) fn new(place: Place, manners: Arc<Manners>) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Arc::new(Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            place,
            timeout: AdaptiveTimeout::new(manners.timeouts, now()),
            manners,
            breaker: Breaker::new(now()),
            is_probed: AtomicBool::new(false),
            is_watched: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            is_logged: AtomicBool::new(false),
            spared: Count::default(),
            links: Mutex::default(),
        })
    }

    /// Where it is, as far as that is known.
    pub(crate) fn address(&self) -> Option<Address> {
        match &self.place {
            Place::Alone(address) | Place::InCluster(address) => Some(address.clone()),
            Place::Sentinels(sentinels) => sentinels.found(),
        }
    }

    /// Whether it is asked: its breaker is closed.
    pub(crate) fn is_asked(&self) -> bool {
        !self.breaker.is_open()
    }

    /// Whether no call waits for it.
    pub(crate) fn is_idle(&self) -> bool {
        self.links().alive.iter().all(|link| link.is_idle())
    }

    /// Whether it has accepted scripts.
    fn runs_scripts(&self) -> bool {
        self.links().alive.iter().any(|link| link.runs_scripts())
    }

    /// Whether it is not needed any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// The link of the current runtime, unless the breaker is open.
    pub(crate) fn link(self: &Arc<Self>) -> Result<Arc<Link>, StoreError> {
        let runtime = Handle::try_current().map_err(|_| no_runtime())?;
        if self.breaker.is_open() {
            self.spared.add(1);
            self.probe(&runtime);
            return Err(StoreError::Open);
        }
        if self.is_closed() {
            // A link that is started now would never end.
            return Err(unavailable("the server is none of the Cluster's any more"));
        }
        let start = || self.start_link(&runtime);
        Ok(lanes::link(self.id, runtime.id(), start))
    }

    /// Connects and greets, in bounded time.
    pub(crate) async fn connect(&self) -> Result<Session, SessionError> {
        match timeout(self.manners.connect_timeout, self.greet()).await {
            Ok(session) => session,
            Err(_) if self.manners.tls.is_some() => Err(SessionError::LateOverTls),
            Err(_) => Err(SessionError::Late),
        }
    }

    /// Connects and asks for a sign of life, and whether it has all keys, in bounded time.
    pub(crate) async fn ping(&self) -> Result<(), SessionError> {
        let mut session = self.connect().await?;
        let asking = async {
            session.ask(&["PING"]).await?;
            session.require_no_cluster().await
        };
        match timeout(self.manners.connect_timeout, asking).await {
            Ok(answer) => answer,
            Err(_) => Err(SessionError::Late),
        }
    }

    /// What to make of a fault that it told. One that was taken to have all keys and sends calls elsewhere
    /// would do so to others: it is the URL that is wrong.
    pub(crate) fn judged(&self, fault: ServerFault) -> ServerFault {
        match self.place {
            Place::Alone(_) | Place::Sentinels(_) if fault.is_of_cluster() => {
                ServerFault::unfit(&SessionError::InCluster)
            }
            _ => fault,
        }
    }

    /// The timeout of calls to it, which adapts to the time that its replies take.
    pub(crate) fn timeout(&self) -> &AdaptiveTimeout {
        &self.timeout
    }

    /// Counts calls that were answered in time.
    pub(crate) fn succeeded(&self, calls: u64) {
        self.breaker.succeeded(calls);
    }

    /// The calls that were answered in time, on all connections.
    pub(crate) fn answered(&self) -> u64 {
        self.breaker.answered()
    }

    /// Counts calls that failed in a way that the next would too.
    pub(crate) fn failed(
        self: &Arc<Self>,
        calls: usize,
        now: Instant,
        reason: &(dyn fmt::Display + Send + Sync),
    ) {
        let tripped = self.breaker.failed(calls, now, reason);
        self.tripped(tripped, reason);
    }

    /// Opens the breaker.
    pub(crate) fn open_breaker(
        self: &Arc<Self>,
        now: Instant,
        cause: OpenCause,
        reason: &(dyn fmt::Display + Send + Sync),
    ) {
        let tripped = self.breaker.trip(now, cause, reason);
        self.tripped(tripped, reason);
    }

    fn tripped(self: &Arc<Self>, tripped: Tripped, reason: &(dyn fmt::Display + Send + Sync)) {
        if tripped == Tripped::Not {
            return;
        }
        self.log_open(reason);
        self.probe_soon();
    }

    /// Logs that the breaker is open, unless the log has that already, or too many such lines.
    fn log_open(&self, reason: &dyn fmt::Display) {
        if self.is_logged.load(Ordering::Relaxed) {
            return;
        }
        if self.manners.admits_change() {
            self.is_logged.store(true, Ordering::Relaxed);
            warn!(server = %self, %reason, "Redis is failing; circuit breaker opened");
        } else {
            debug!(server = %self, %reason, "circuit breaker is open");
        }
    }

    /// Returns true if the log has a line that the breaker opened, and forgets it.
    pub(crate) fn take_logged(&self) -> bool {
        self.is_logged.swap(false, Ordering::Relaxed)
    }

    /// Counts a call that it sent on, and that no other server answered.
    pub(crate) fn misdirected(
        self: &Arc<Self>,
        now: Instant,
        reason: &(dyn fmt::Display + Send + Sync),
    ) {
        let tripped = self.breaker.misdirected(now, reason);
        self.tripped(tripped, reason);
    }

    /// Takes note that another server answered a call that it sent on.
    pub(crate) fn directed(&self) {
        self.breaker.directed();
    }

    /// A connection got all replies that it waited for. If the server was silent before, it is back.
    pub(crate) fn caught_up(&self, now: Instant) {
        if self.breaker.is_open()
            && let Some(open_for) = self.breaker.close_after_silence(now)
        {
            self.log_closed(open_for);
        }
    }

    fn log_closed(&self, open_for: Duration) {
        if self.take_logged() {
            info!(server = %self, ?open_for, "Redis answers again; circuit breaker closed");
        } else {
            debug!(server = %self, ?open_for, "circuit breaker closed");
        }
    }

    /// Opens the breaker without a line in the log: the caller has its own.
    pub(crate) fn give_up(self: &Arc<Self>, reason: &dyn fmt::Display) {
        self.is_logged
            .store(self.manners.changes == Changes::Logged, Ordering::Relaxed);
        self.breaker.trip(now(), OpenCause::Failure, reason);
        self.probe_soon();
    }

    fn probe_soon(self: &Arc<Self>) {
        if let Ok(runtime) = Handle::try_current() {
            self.probe(&runtime);
        }
    }

    /// How it fares.
    pub(crate) fn report(&self) -> ServerReport {
        let links = self.links();
        let mut report = links.past.clone();
        for link in &links.alive {
            link.add_to(&mut report);
        }
        report.address = self.to_string().into();
        report.spared = self.spared.get();
        report.timeout = self.timeout.get();
        report.info = links.info;
        self.breaker.add_to(&mut report);
        report
    }

    /// It said how it is.
    pub(crate) fn told(&self, info: ServerInfo) {
        self.links().info = Some(info);
    }

    /// Ends all connections.
    pub(crate) fn close(&self) {
        let mut links = self.links();
        // Under the lock, so that no link is started unseen.
        self.is_closed.store(true, Ordering::Relaxed);
        for link in links.alive.drain(..) {
            link.close();
        }
    }

    async fn greet(&self) -> Result<Session, SessionError> {
        match &self.place {
            Place::Alone(address) | Place::InCluster(address) => self.manners.open(address).await,
            Place::Sentinels(sentinels) => sentinels.connect(&self.manners).await,
        }
    }

    fn start_link(self: &Arc<Self>, runtime: &Handle) -> Arc<Link> {
        self.watch(runtime);
        let link = Link::start(Arc::clone(self), runtime);
        let mut links = self.links();
        let Links { alive, past, .. } = &mut *links;
        alive.retain(|link| {
            let is_closed = link.is_closed();
            if is_closed {
                link.stats.add_to(past);
            }
            !is_closed
        });
        if self.is_closed() {
            link.close();
        } else {
            alive.push(Arc::clone(&link));
        }
        link
    }

    fn links(&self) -> MutexGuard<'_, Links> {
        // No panic can happen while it is held.
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Alone(address) | Place::InCluster(address) => address.fmt(f),
            Place::Sentinels(sentinels) => match sentinels.found() {
                Some(address) => write!(f, "{} at {address}", sentinels.master()),
                None => f.write_str(sentinels.master()),
            },
        }
    }
}

// === impl Manners ===

impl Manners {
    /// Returns true if a change of a server is to be logged now.
    pub(crate) fn admits_change(&self) -> bool {
        self.changes == Changes::Logged && self.change_log.admits(now())
    }

    /// Connects to an address and greets.
    pub(crate) async fn open(&self, address: &Address) -> Result<Session, SessionError> {
        let credentials = self.credentials.as_ref();
        let mut session = Session::open(address, self.tls.as_ref(), credentials).await?;
        if self.database != 0 {
            let database = self.database.to_string();
            session.ask(&["SELECT", &database]).await?;
        }
        Ok(session)
    }
}
