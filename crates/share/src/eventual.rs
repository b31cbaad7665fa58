//! `eventual`: nodes exchange their totals now and then, and decide from memory.
//!
//! Each node keeps, for every counter that it is asked about, what all nodes admitted, slot by slot: a
//! [`history`]. Its own admissions are there at once, those of the others with the next exchange, in the
//! slot in which they were admitted, however late that is. How much of a limit is in use follows from the
//! history alone ([`usage`]); what was admitted above the limit is debt, paid off before anything more is
//! admitted. A node that has admitted its [`budget`] without a reply that every region knows of it holds
//! back, from which [`overshoot_bound`] follows. When some region cannot be reached, a node goes by its
//! share of the limit.
//!
//! [`decide`] is one request, [`sync`] the exchange, [`entry`] one counter, [`slots`] how time is cut up.

mod budget;
mod decide;
mod entry;
mod history;
mod name;
mod packed;
mod refund;
mod shares;
mod slots;
mod sync;
mod table;
#[cfg(test)]
mod tests;
mod usage;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use tidegate_algorithms::{Algorithm, Percent, Quota, Time};
use tidegate_store::report::EventualReport;
use tidegate_store::{
    Clock, Digester, EmbeddedStore, Monotonic, NodeId, StoreConfig, SystemClock, TotalsSender,
};

pub use self::budget::overshoot_bound;
use self::history::History;
use self::shares::ShareStore;
use self::table::Table;
use crate::membership::{KnownMembers, Membership};
use crate::reckoning::StoreClock;
use crate::saved::{self, RestoreResult, SavedCounters};

/// How a node shares limits eventually.
#[derive(Clone, Debug)]
pub struct EventualConfig {
    /// How often totals are exchanged. A node that has run out of its budget does so up to ten times as
    /// often.
    pub sync_interval: Duration,
    /// Of what is left of a limit, how much all nodes together may admit before they exchange totals.
    pub slack: Percent,
    /// How much memory the counters may take. Beyond that, counters are evicted that every region knows all
    /// about; if there is none, a new counter goes by its rule's `on_full`.
    pub memory: StoreConfig,
    /// How many more stores get this node's totals than the one that it reads: those of the other
    /// regions. At most 63.
    pub other_regions: usize,
    /// The number of members before the first exchange of totals.
    pub members: KnownMembers,
}

/// The limits that this node shares eventually.
#[derive(Debug)]
pub struct Eventual<C = Monotonic> {
    config: EventualConfig,
    sender: TotalsSender,
    clock: StoreClock<C>,
    digester: Digester,
    table: Table,
    /// This node's shares of limits, for while some region cannot be reached.
    shares: ShareStore<C>,
    /// The own region first.
    regions: Box<[Region]>,
    membership: Membership,
    tallies: Tallies,
    /// Which part of the table is looked over for what is idle next.
    next_part: AtomicU64,
    /// Counts the lives of counters.
    lives: AtomicU32,
}

/// The exchange with one region.
#[derive(Debug, Default)]
struct Region {
    /// Whether the last exchange failed.
    is_cut: AtomicBool,
    /// Whether a counter waits for the next one.
    is_awaited: AtomicBool,
    /// How often the number of counters in one exchange is halved.
    halvings: AtomicU32,
}

/// Numbers for the metrics.
#[derive(Debug, Default)]
struct Tallies {
    syncs: AtomicU64,
    failures: AtomicU64,
    overshoot: AtomicU64,
    worst_overshoot: AtomicU64,
    alone: AtomicU64,
    evicted: AtomicU64,
    untracked: AtomicU64,
    /// The last time that `on_full` decided, by the node's own clock: one more than its nanoseconds; 0 before the
    /// first.
    full_at: AtomicU64,
    /// The last exchange in the own region, in the same way.
    synced_at: AtomicU64,
}

/// The time for which the table counts as full after `on_full` decided.
const FULL_FOR: Duration = Duration::from_mins(1);

// === impl EventualConfig ===

impl EventualConfig {
    /// Intervals in the shortest window that is shared eventually.
    const SHORTEST_WINDOW: u32 = 4;

    /// The most exchanges in an interval.
    const BEATS: u32 = 10;

    /// Whether a limit can be shared eventually. One whose window is over before the other nodes know
    /// about it cannot, nor can one that has requests wait in one queue, nor one of more than 2^45; they
    /// are strict instead.
    pub fn suits(&self, quota: &Quota) -> bool {
        let is_queue = matches!(quota.algorithm(), Algorithm::LeakyBucket { .. });
        let is_small = usage::most(quota) <= History::LARGEST_LIMIT;
        let shortest = self.sync_interval.saturating_mul(Self::SHORTEST_WINDOW);
        !is_queue && is_small && quota.window() >= shortest
    }

    /// How long a node counts as a member without an exchange.
    fn life(&self) -> Duration {
        let intervals = self.sync_interval.saturating_mul(10);
        intervals.max(Duration::from_secs(3))
    }

    /// Beats after which an idle node renews its membership: a third of its life.
    fn beats_of_life(&self) -> u32 {
        let beats = self.life().as_nanos() / 3 / self.beat().as_nanos().max(1);
        u32::try_from(beats).unwrap_or(u32::MAX)
    }

    fn beat(&self) -> Duration {
        (self.sync_interval / Self::BEATS).max(Duration::from_millis(1))
    }
}

impl Default for EventualConfig {
    fn default() -> Self {
        Self {
            sync_interval: Duration::from_millis(100),
            // Nodes that exchange their totals in turn never admit too much up to 1/e: what all of them
            // take in one interval is then less than what is left after it.
            slack: Percent(25),
            memory: StoreConfig {
                max_memory: 64 << 20,
            },
            other_regions: 0,
            members: KnownMembers::default(),
        }
    }
}

// === impl Eventual ===

impl Eventual {
    /// The limits of a node that has started just now.
    ///
    /// # Panics
    ///
    /// If there are more than 64 regions.
    pub fn new(config: EventualConfig) -> Self {
        Self::with_clock(config, Monotonic::new())
    }
}

impl<C: Clock> Eventual<C> {
    /// The most regions: each has a bit in every counter.
    const MOST_REGIONS: usize = 64;

    /// The same with another clock to measure spans by.
    ///
    /// # Panics
    ///
    /// If there are more than 64 regions.
    pub fn with_clock(config: EventualConfig, clock: C) -> Self {
        Self::with_shares(config, clock, None).0
    }

    /// The same with the shares that an earlier process saved.
    pub(crate) fn with_shares(
        config: EventualConfig,
        clock: C,
        saved: Option<SavedCounters>,
    ) -> (Self, Option<RestoreResult>) {
        let clock = StoreClock::new(clock, SystemClock::new().now());
        // Shares take up to a quarter of it: a counter of one is smaller than an entry.
        let for_shares = StoreConfig {
            max_memory: config.memory.max_memory / 4,
        };
        let for_entries = config.memory.max_memory - for_shares.max_memory;
        let (shares, restored) = saved::open(for_shares, clock.clone(), saved);
        let regions = 1 + config.other_regions;
        assert!(regions <= Self::MOST_REGIONS, "more than 64 regions");
        let settling = config.life() + config.life() * 2 / 3;
        let membership = Membership::new(config.members, settling, clock.own());
        let eventual = Self {
            sender: TotalsSender {
                node: NodeId::random(),
                life: config.life(),
            },
            digester: Digester::new(),
            table: Table::new(for_entries, regions),
            shares: ShareStore::new(shares),
            clock,
            regions: std::iter::repeat_with(Region::default)
                .take(regions)
                .collect(),
            membership,
            tallies: Tallies::default(),
            next_part: AtomicU64::new(0),
            lives: AtomicU32::new(0),
            config,
        };
        (eventual, restored)
    }

    /// The counters of this node's shares.
    pub(crate) const fn shares(&self) -> &EmbeddedStore<StoreClock<C>> {
        self.shares.store()
    }

    /// Whether a limit is shared here: see [`EventualConfig::suits`].
    pub(crate) fn suits(&self, quota: &Quota) -> bool {
        self.config.suits(quota)
    }

    /// How many nodes share, this one included, as far as it knows.
    pub fn members(&self) -> u32 {
        self.membership.members()
    }

    /// The nodes that exchange totals.
    pub const fn membership(&self) -> &Membership {
        &self.membership
    }

    /// Whether the last exchange with some region failed.
    fn is_cut_off(&self) -> bool {
        // Relaxed, as all that stands for itself here.
        let is_cut = |region: &Region| region.is_cut.load(Ordering::Relaxed);
        self.regions.iter().any(is_cut)
    }

    /// Asks for an exchange with each region soon.
    fn hurry(&self) {
        for region in &self.regions {
            region.is_awaited.store(true, Ordering::Relaxed);
        }
    }

    /// Counts hits that are decided by `on_full`.
    fn note_full(&self, cost: u64) {
        self.tallies.untracked.fetch_add(cost, Ordering::Relaxed);
        let own = self.clock.own().nanos().saturating_add(1);
        self.tallies.full_at.store(own, Ordering::Relaxed);
    }

    /// Whether `on_full` decided in the last minute, because there was no room for a counter or for a share.
    pub(crate) fn is_full(&self) -> bool {
        let age = self.age(&self.tallies.full_at);
        age.is_some_and(|age| age < FULL_FOR) || self.shares().is_full()
    }

    /// The time since a moment that is kept as one more than its nanoseconds; `None` before the first.
    fn age(&self, moment: &AtomicU64) -> Option<Duration> {
        let nanos = moment.load(Ordering::Relaxed).checked_sub(1)?;
        Some(self.clock.own().since(Time::from_nanos(nanos)))
    }

    fn next_life(&self) -> u32 {
        self.lives.fetch_add(1, Ordering::Relaxed)
    }

    /// Numbers for the metrics.
    pub fn report(&self) -> EventualReport {
        let (mut counters, mut bytes, mut pending) = (0, 0, 0);
        for part in self.table.each() {
            counters += u64::try_from(part.len()).unwrap_or(u64::MAX);
            bytes += u64::try_from(part.bytes()).unwrap_or(u64::MAX);
            pending += part.entries().map(entry::Entry::pending).sum::<u64>();
        }
        let seen = |tally: &AtomicU64| tally.load(Ordering::Relaxed);
        EventualReport {
            counters,
            bytes,
            syncs: seen(&self.tallies.syncs),
            failures: seen(&self.tallies.failures),
            pending,
            overshoot: seen(&self.tallies.overshoot),
            worst_overshoot: seen(&self.tallies.worst_overshoot),
            alone: seen(&self.tallies.alone),
            evicted: seen(&self.tallies.evicted),
            untracked: seen(&self.tallies.untracked),
            is_full: self.is_full(),
            age: self.age(&self.tallies.synced_at),
        }
    }
}

/// Whole seconds of the node's own clock.
fn seconds(own: Time) -> u32 {
    u32::try_from(own.nanos() / 1_000_000_000).unwrap_or(u32::MAX)
}
