//! A Redis Cluster: which server has which slot, learnt from any of them and again when told otherwise.

mod map;

use std::collections::HashMap;
use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use tidegate_store::StoreError;
use tidegate_store::report::{Breaker, ServerReport};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use tracing::{info, warn};

use super::Address;
use super::config::Changes;
use super::link::unavailable;
use super::server::{Manners, Place, Server};
use super::session::SessionError;
use super::time::{now, pause};

use map::{Map, Range};

/// The servers of a Cluster, and what is known of its slots.
#[derive(Debug)]
pub(crate) struct Cluster {
    seeds: Vec<Address>,
    manners: Arc<Manners>,
    map: ArcSwap<Map>,
    /// Every server that was told of, by its address.
    servers: Mutex<HashMap<Address, Arc<Server>>>,
    /// Somebody learns the slots at this moment.
    is_learning: AtomicBool,
    /// Why nobody could tell when asked last, if nobody could.
    lost: ArcSwapOption<String>,
    /// The log has a line that nobody could tell, and none that somebody can.
    is_loss_logged: AtomicBool,
    is_closed: AtomicBool,
    learnt: Notify,
    began: Instant,
    /// When the slots were learnt last, in milliseconds since it began.
    learnt_at: AtomicU64,
}

/// Why the slots should be learnt again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// A server said that a slot has moved.
    Moved,
    /// A server fails, and another may have taken over.
    Failing,
}

/// Lets another task learn if this one ends before its time, with its runtime.
struct Learning(Arc<Cluster>);

/// How long to wait before asking again when nobody could tell.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// The most servers that have no slots and are asked all the same: those that slots are on their way to.
const MOST_STRANGERS: usize = 64;

// === impl Cluster ===

impl Cluster {
    pub(crate) fn new(seeds: Vec<Address>, manners: Arc<Manners>) -> Arc<Self> {
        Arc::new(Self {
            seeds,
            manners,
            map: ArcSwap::default(),
            servers: Mutex::default(),
            is_learning: AtomicBool::new(false),
            lost: ArcSwapOption::empty(),
            is_loss_logged: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            learnt: Notify::new(),
            began: now(),
            learnt_at: AtomicU64::new(0),
        })
    }

    /// The masters that have slots.
    pub(crate) fn servers(&self) -> Vec<Arc<Server>> {
        self.map.load().servers().to_vec()
    }

    /// The server of a slot, if it is known.
    pub(crate) fn server_of(&self, slot: u16) -> Option<Arc<Server>> {
        self.map.load().server_of(slot).map(Arc::clone)
    }

    /// A server that is asked, else any.
    pub(crate) fn any(&self) -> Option<Arc<Server>> {
        let map = self.map.load();
        let servers = map.servers();
        let serving = servers.iter().find(|server| server.is_asked());
        serving.or(servers.first()).map(Arc::clone)
    }

    /// How each server fares; as long as no slots are known, that of the seeds nobody can be asked for them.
    pub(crate) fn report(&self) -> Vec<ServerReport> {
        let map = self.map.load();
        if !map.is_empty() {
            return map.servers().iter().map(|it| it.report()).collect();
        }
        let Some(lost) = self.lost.load_full() else {
            return Vec::new();
        };
        let fault: Arc<str> = lost.as_str().into();
        let unanswered = |seed: &Address| ServerReport {
            address: seed.to_string().into(),
            breaker: Breaker::Open,
            fault: Some(Arc::clone(&fault)),
            ..ServerReport::default()
        };
        self.seeds.iter().map(unanswered).collect()
    }

    /// Whether every server is asked.
    pub(crate) fn is_whole(&self) -> bool {
        let map = self.map.load();
        let is_lost = map.is_empty() && self.lost.load().is_some();
        !is_lost && map.servers().iter().all(|server| server.is_asked())
    }

    /// The server at an address that another server sent us to; `None` if there are too many such.
    pub(crate) fn stranger_at(&self, address: Address) -> Option<Arc<Server>> {
        let n_known = self.map.load().servers().len();
        let mut servers = self.known();
        if servers.len() >= n_known + MOST_STRANGERS && !servers.contains_key(&address) {
            return None;
        }
        Some(self.server_among(&mut servers, address))
    }

    fn server_at(&self, address: Address) -> Arc<Server> {
        self.server_among(&mut self.known(), address)
    }

    fn server_among(
        &self,
        servers: &mut HashMap<Address, Arc<Server>>,
        address: Address,
    ) -> Arc<Server> {
        let server = servers
            .entry(address.clone())
            .or_insert_with(|| Server::new(Place::InCluster(address), Arc::clone(&self.manners)));
        Arc::clone(server)
    }

    /// Waits until the slots are known for the first time.
    pub(crate) async fn learn(self: &Arc<Self>, patience: Duration) -> Result<(), StoreError> {
        let mut learnt = pin!(self.learnt.notified());
        learnt.as_mut().enable();
        if !self.map.load().is_empty() {
            return Ok(());
        }
        self.start_learning();
        // Somebody tries again and again; until that succeeds nobody needs to wait for it.
        if self.lost.load().is_some() {
            return Err(StoreError::Open);
        }
        if timeout(patience, learnt).await.is_err() {
            return Err(StoreError::Timeout { after: patience });
        }
        if self.map.load().is_empty() {
            return Err(unavailable(
                "no server of the Cluster can tell who has which slot",
            ));
        }
        Ok(())
    }

    /// Has the slots learnt again, unless that is under way or was done just now: a slot that moves tells
    /// every call of it, and a server that fails does so many times.
    pub(crate) fn doubt(self: &Arc<Self>, doubt: Doubt) {
        let since = self
            .age()
            .saturating_sub(self.learnt_at.load(Ordering::Relaxed));
        let rest = match doubt {
            Doubt::Moved => 100,
            Doubt::Failing => 500,
        };
        if since >= rest {
            self.start_learning();
        }
    }

    /// Nobody can tell its slots, as somebody found out who says so.
    pub(crate) fn give_up(self: &Arc<Self>, reason: &dyn fmt::Display) {
        if self.map.load().is_empty() {
            self.lost.store(Some(Arc::new(reason.to_string())));
            let is_logged = self.manners.changes == Changes::Logged;
            self.is_loss_logged.store(is_logged, Ordering::Relaxed);
        }
        self.start_learning();
    }

    /// Ends all connections.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        for (_, server) in self.known().drain() {
            server.close();
        }
    }

    fn start_learning(self: &Arc<Self>) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        if !self.is_learning.swap(true, Ordering::AcqRel) {
            runtime.spawn(until_learnt(Learning(Arc::clone(self))));
        }
    }

    /// Asks one server after another, those that work first, then the seeds.
    pub(crate) async fn ask_around(&self) -> Result<(), SessionError> {
        let known = self.map.load_full();
        let (mut places, failing): (Vec<_>, Vec<_>) = known
            .servers()
            .iter()
            .filter_map(|server| Some((server.address()?, server.is_asked())))
            .partition(|(_, is_asked)| *is_asked);
        places.extend(failing);
        let places = places.into_iter().map(|(address, _)| address);
        let mut error = SessionError::Late;
        for address in places.chain(self.seeds.iter().cloned()) {
            match timeout(self.manners.connect_timeout, self.ask(&address)).await {
                Ok(Ok(ranges)) => {
                    self.take_over(ranges);
                    return Ok(());
                }
                Ok(Err(failure)) => error = failure,
                Err(_) => {}
            }
        }
        Err(error)
    }

    async fn ask(&self, address: &Address) -> Result<Vec<Range>, SessionError> {
        let mut session = self.manners.open(address).await?;
        let reply = session.ask(&["CLUSTER", "SLOTS"]).await?;
        let ranges = map::ranges(&reply, address);
        if ranges.is_empty() {
            return Err(SessionError::NoSlots);
        }
        Ok(ranges)
    }

    fn take_over(&self, ranges: Vec<Range>) {
        let map = Map::new(ranges, |address| self.server_at(address));
        let is_used =
            |server: &Arc<Server>| map.servers().iter().any(|used| Arc::ptr_eq(used, server));
        for server in self.map.load().servers() {
            // Its breaker will not close, because nothing is sent to it any more.
            if !server.is_asked() && !is_used(server) && server.take_logged() {
                info!(%server, "server is no longer used: others have its slots");
            }
        }
        self.known().retain(|_, server| {
            // One that a slot moves to has none yet, but calls.
            let stays = is_used(server) || !server.is_idle();
            if !stays {
                server.close();
            }
            stays
        });
        self.map.store(Arc::new(map));
    }

    /// Milliseconds since it began.
    fn age(&self) -> u64 {
        let age = now().duration_since(self.began).as_millis();
        u64::try_from(age).unwrap_or(u64::MAX)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Address, Arc<Server>>> {
        // No panic can happen while it is held.
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn until_learnt(learning: Learning) {
    let cluster = &learning.0;
    let is_logged = &cluster.is_loss_logged;
    let mut wait = FIRST_WAIT;
    while !cluster.is_closed.load(Ordering::Relaxed) {
        match cluster.ask_around().await {
            Ok(()) => {
                cluster.lost.store(None);
                if is_logged.swap(false, Ordering::Relaxed) {
                    info!("the slots of the Redis Cluster are known again");
                }
                break;
            }
            Err(reason) => {
                cluster.lost.store(Some(Arc::new(reason.to_string())));
                if !is_logged.load(Ordering::Relaxed) && cluster.manners.admits_change() {
                    is_logged.store(true, Ordering::Relaxed);
                    warn!(%reason, "no server of the Redis Cluster can tell who has which slot");
                }
            }
        }
        cluster.learnt.notify_waiters();
        pause(wait).await;
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

/// Reads an answer to CLUSTER SLOTS, for [`readers`](super::readers).
#[cfg(feature = "test-util")]
pub(super) fn read_slots(reply: &crate::client::Reply, asked: &Address) {
    let _ = map::ranges(reply, asked);
}

// === impl Learning ===

impl Drop for Learning {
    fn drop(&mut self) {
        let cluster = &self.0;
        cluster.learnt_at.store(cluster.age(), Ordering::Relaxed);
        cluster.is_learning.store(false, Ordering::Release);
        cluster.learnt.notify_waiters();
    }
}
