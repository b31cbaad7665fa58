//! A few nodes, the stores of their regions, and the time.

use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tidegate_algorithms::{Decision, Headroom, Percent, Quota, Time};
use tidegate_store::conformance::totals::ModelTotals;
use tidegate_store::{
    Charge, Charging, Clock, Consistency, CounterKey, CounterSums, CounterUpdate, ExchangeReply,
    LimitId, ManualClock, Mode, OnFull, SlotTotal, StoreConfig, StoreError, Totals, TotalsSender,
};

use crate::eventual::{Eventual, EventualConfig};
use crate::memory::{FromMemory, Took};

pub(super) const START: Time = Time::from_nanos(1_000_000_000_000_000_000);

/// What becomes of one exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Done,
    /// The store never hears of it.
    RequestLost,
    /// The node never hears of it.
    ReplyLost,
    /// The store hears of it twice.
    Twice,
    /// The store hears of it much later, the node never.
    Late,
    /// The reply is on its way until somebody polls again.
    Slow,
}

/// A clock of a node: the world's, a bit off.
#[derive(Clone, Debug)]
pub(super) struct NodeClock {
    world: Arc<ManualClock>,
    ahead: Duration,
}

/// The way from the nodes to one store.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) store: ModelTotals,
    fate: Mutex<Fate>,
    late: Mutex<Vec<Message>>,
    pub(super) is_cut: AtomicBool,
    /// All nodes, though some may not have told anything for long.
    members: u32,
}

/// A message that is on its way for long.
#[derive(Debug)]
struct Message {
    sender: TotalsSender,
    updates: Vec<LateUpdate>,
}

/// An update that owns its totals.
#[derive(Debug)]
struct LateUpdate {
    update: CounterUpdate<'static>,
    totals: Vec<SlotTotal>,
}

pub(super) struct World {
    pub(super) clock: Arc<ManualClock>,
    pub(super) links: Vec<Arc<Link>>,
    pub(super) nodes: Vec<Node>,
    pub(super) quota: Quota,
    pub(super) config: EventualConfig,
    pub(super) on_full: OnFull,
    /// When something was admitted, by the node's own reckoning, and how much.
    pub(super) admitted: Vec<(Time, u64)>,
}

pub(super) struct Node {
    pub(super) eventual: Arc<Eventual<NodeClock>>,
    pub(super) region: usize,
}

/// A sync under way.
pub(super) type Sync = Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send>>;

pub(super) const KEY: CounterKey<'static> = CounterKey {
    limit: LimitId(7),
    values: &["caller"],
};

// === impl Link ===

impl Link {
    fn new(members: usize) -> Self {
        Self {
            members: u32::try_from(members).unwrap(),
            store: ModelTotals::at(START),
            fate: Mutex::new(Fate::Done),
            late: Mutex::default(),
            is_cut: AtomicBool::new(false),
        }
    }

    pub(super) fn set_fate(&self, fate: Fate) {
        *self.fate.lock().unwrap() = fate;
    }

    /// Delivers what was on its way.
    pub(super) fn deliver_late(&self) {
        // The newest first: the order is none that anybody may rely on.
        while let Some(message) = self.late.lock().unwrap().pop() {
            let updates = message.updates.iter().map(|late| CounterUpdate {
                totals: &late.totals,
                ..late.update
            });
            let updates: Vec<CounterUpdate<'_>> = updates.collect();
            self.write(message.sender, &updates);
        }
    }

    fn write(&self, sender: TotalsSender, updates: &[CounterUpdate<'_>]) {
        self.store.exchange_now(sender, updates, &mut Vec::new());
    }
}

impl Totals for Link {
    async fn exchange(
        &self,
        sender: TotalsSender,
        updates: &[CounterUpdate<'_>],
        replies: &mut Vec<CounterSums>,
    ) -> Result<ExchangeReply, StoreError> {
        let fate = *self.fate.lock().unwrap();
        if self.is_cut.load(Ordering::Relaxed) || fate == Fate::RequestLost {
            return Err(lost());
        }
        if fate == Fate::Late {
            let updates = updates.iter().map(LateUpdate::new).collect();
            let message = Message { sender, updates };
            self.late.lock().unwrap().push(message);
            return Err(lost());
        }
        let exchanged = self.store.exchange_now(sender, updates, replies);
        match fate {
            Fate::Twice => self.write(sender, updates),
            Fate::ReplyLost => return Err(lost()),
            Fate::Slow => pending_once().await,
            _ => {}
        }
        Ok(ExchangeReply {
            members: exchanged.members.max(self.members),
            ..exchanged
        })
    }
}

// === impl LateUpdate ===

impl LateUpdate {
    fn new(update: &CounterUpdate<'_>) -> Self {
        Self {
            totals: update.totals.to_vec(),
            update: CounterUpdate {
                totals: &[],
                ..*update
            },
        }
    }
}

// === impl NodeClock ===

impl Clock for NodeClock {
    fn now(&self) -> Time {
        self.world.now().plus(self.ahead)
    }
}

// === impl World ===

impl World {
    /// Nodes by the region that each is in. They know of each other.
    pub(super) fn new(regions: &[usize], quota: Quota) -> Self {
        let distinct: HashSet<usize> = regions.iter().copied().collect();
        let mut world = Self {
            clock: Arc::new(ManualClock::at(START)),
            links: distinct
                .iter()
                .map(|_| Arc::new(Link::new(regions.len())))
                .collect(),
            nodes: Vec::new(),
            quota,
            config: EventualConfig {
                slack: Percent(25),
                other_regions: distinct.len() - 1,
                memory: StoreConfig {
                    max_memory: 1 << 20,
                },
                ..EventualConfig::default()
            },
            on_full: OnFull::Allow,
            admitted: Vec::new(),
        };
        for &region in regions {
            world.start(region);
        }
        world.sync_all();
        world.sync_all();
        world
    }

    /// Starts a node, which knows of nobody.
    pub(super) fn start(&mut self, region: usize) {
        let node = self.node(region, self.nodes.len());
        self.nodes.push(node);
    }

    /// Lets a node die, and another begin in its place.
    pub(super) fn restart(&mut self, node: usize) {
        self.nodes[node] = self.node(self.nodes[node].region, node + 5);
    }

    fn node(&self, region: usize, number: usize) -> Node {
        let clock = NodeClock {
            world: Arc::clone(&self.clock),
            // Far apart: what they show does not matter.
            ahead: Duration::from_hours(u64::try_from(number).unwrap()),
        };
        Node {
            eventual: Arc::new(Eventual::with_clock(self.config.clone(), clock)),
            region,
        }
    }

    pub(super) fn advance(&self, by: Duration) {
        self.clock.advance(by);
        for link in &self.links {
            link.store.set_time(self.clock.now());
        }
    }

    pub(super) fn take(&mut self, node: usize, cost: u64) -> Decision {
        self.request(node, cost).decision
    }

    /// A request, which may be put back.
    pub(super) fn request(&mut self, node: usize, cost: u64) -> Took {
        let eventual = &self.nodes[node].eventual;
        let charge = self.charge(cost);
        let took = eventual.take(&charge, Charging::AllOrNone);
        let took = took.unwrap().unwrap();
        if took.decision.is_allowed() && cost > 0 {
            self.admitted.push((eventual.clock.now(), cost));
        }
        took
    }

    /// Puts a request back.
    pub(super) fn put_back(&self, node: usize, cost: u64, took: &Took) {
        self.nodes[node].eventual.put_back(&self.charge(cost), took);
    }

    /// Asks until a node refuses, and says how often it did not.
    pub(super) fn exhaust(&mut self, node: usize) -> u64 {
        let mut admitted = 0;
        while self.take(node, 1).is_allowed() {
            admitted += 1;
        }
        admitted
    }

    pub(super) fn charge(&self, cost: u64) -> Charge<'_> {
        Charge {
            key: KEY,
            quota: &self.quota,
            cost,
            mode: Mode::Enforce,
            headroom: Headroom::Absent,
            on_full: self.on_full,
            consistency: Consistency::Eventual,
        }
    }

    /// The sync of a node with one of the stores: its own region's first, then the others'.
    pub(super) fn sync(&self, node: usize, nth: usize) -> Sync {
        let region = self.nodes[node].region;
        let others = (0..self.links.len()).filter(|&other| other != region);
        let link = std::iter::once(region).chain(others).nth(nth).unwrap();
        let link = Arc::clone(&self.links[link]);
        let eventual = Arc::clone(&self.nodes[node].eventual);
        Box::pin(async move {
            match nth.checked_sub(1) {
                None => eventual.sync_now(&*link).await,
                Some(other) => eventual.tell_now(other, &*link).await,
            }
        })
    }

    /// Syncs a node with all stores that can be reached.
    pub(super) fn sync_node(&self, node: usize) {
        for nth in 0..self.links.len() {
            let _ = poll(&mut self.sync(node, nth));
        }
    }

    pub(super) fn sync_all(&self) {
        for node in 0..self.nodes.len() {
            self.sync_node(node);
        }
    }

    /// Asks each node without spending, so that it tells and hears.
    pub(super) fn look_all(&mut self) {
        for node in 0..self.nodes.len() {
            self.look(node);
        }
    }

    pub(super) fn look(&mut self, node: usize) {
        self.take(node, 0);
        self.sync_node(node);
    }

    pub(super) fn total(&self) -> u64 {
        self.admitted.iter().map(|(_, cost)| cost).sum()
    }
}

/// Goes on with a sync, and says what came of it if it is over.
pub(super) fn poll(sync: &mut Sync) -> Option<Result<(), StoreError>> {
    match sync.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => Some(result),
        Poll::Pending => None,
    }
}

async fn pending_once() {
    let mut is_over = false;
    std::future::poll_fn(|_| {
        if std::mem::replace(&mut is_over, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

fn lost() -> StoreError {
    StoreError::Unavailable {
        reason: "lost on the way".into(),
    }
}
