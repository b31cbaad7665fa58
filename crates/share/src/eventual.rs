//! `eventual`: nodes tell each other their running totals now and then, and decide from memory.
//!
//! Each node has a mirror of every counter that it is asked about. What it admits it charges there at
//! once; what the others have admitted since it heard of them last it charges when it hears of it, by
//! force: what does not fit is debt, paid before anything more is admitted. A node that has admitted
//! its [`budget`] without word that everybody was told holds back, from which [`overshoot_bound`]
//! follows. When somebody cannot be told at all, a node goes by its share of the limit.
//!
//! [`decide`] is one request, [`sync`] the telling and hearing, [`hear`] what becomes of what was heard.

mod budget;
mod decide;
mod entry;
mod hear;
mod mirror;
mod sync;
mod table;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tidegate_algorithms::{Algorithm, Percent, Quota, Time};
use tidegate_store::report::EventualReport;
use tidegate_store::{
    Clock, Digester, EmbeddedStore, Monotonic, NodeId, StoreConfig, SystemClock, Teller,
};

pub use self::budget::overshoot_bound;
use self::mirror::Mirror;
use self::table::Table;
use crate::membership::{KnownMembers, Membership};
use crate::reckoning::StoreClock;
use crate::saved::{self, RestoreResult, SavedCounters};

/// How a node shares limits eventually.
#[derive(Clone, Debug)]
pub struct EventualConfig {
    /// How often totals are told and heard. A node that has run out of its budget tells them up to ten
    /// times as often.
    pub sync_interval: Duration,
    /// Of what is left of a limit, how much all nodes together may admit without telling.
    pub slack: Percent,
    /// The most counters that are shared; more of them go by this node's share.
    pub max_counters: usize,
    /// How much memory the counters' states may take.
    pub memory: StoreConfig,
    /// How many more stores are told of this node's totals than the one that it hears from: those of
    /// the other regions.
    pub other_regions: usize,
    /// The number of members before the first exchange of totals.
    pub members: KnownMembers,
}

/// The limits that this node shares eventually.
#[derive(Debug)]
pub struct Eventual<C = Monotonic> {
    config: EventualConfig,
    teller: Teller,
    clock: StoreClock<C>,
    digester: Digester,
    table: Table,
    mirror: Mirror<C>,
    /// This node's shares of limits, for while somebody cannot be told.
    shares: Mirror<C>,
    /// The own region first.
    regions: Box<[Region]>,
    membership: Membership,
    tallies: Tallies,
    /// Which part of the table is looked over for what is idle next.
    next_part: AtomicU64,
}

/// How telling one region goes.
#[derive(Debug, Default)]
struct Region {
    /// Whether the last time failed.
    is_cut: AtomicBool,
    /// Whether a counter waits for word that the region was told.
    is_awaited: AtomicBool,
}

/// What has been seen.
#[derive(Debug, Default)]
struct Tallies {
    syncs: AtomicU64,
    failures: AtomicU64,
    overshoot: AtomicU64,
    worst_overshoot: AtomicU64,
    alone: AtomicU64,
    /// By the node's own clock, one more than its nanoseconds; 0 before the first.
    synced_at: AtomicU64,
}

// === impl EventualConfig ===

impl EventualConfig {
    /// Of how many intervals a window is at the least, to be shared eventually.
    const SHORTEST_WINDOW: u32 = 4;

    /// How often in an interval totals are told at the most.
    const BEATS: u32 = 10;

    /// Whether a limit can be shared eventually. One whose window is over before the others have heard
    /// of it cannot, nor can one that has requests wait in one queue; they are strict instead.
    pub fn suits(&self, quota: &Quota) -> bool {
        let is_queue = matches!(quota.algorithm(), Algorithm::LeakyBucket { .. });
        !is_queue && quota.window() >= self.sync_interval.saturating_mul(Self::SHORTEST_WINDOW)
    }

    /// How long a node is believed to be there without a word from it.
    fn life(&self) -> Duration {
        let intervals = self.sync_interval.saturating_mul(10);
        intervals.max(Duration::from_secs(3))
    }

    /// How many beats a node that has nothing to tell lets pass before it says that it is there: a third of
    /// what the others believe it.
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
            // Nodes that tell their totals in turn never admit too much up to 1/e: what all of them
            // take in one interval is then less than what is left after it.
            slack: Percent(25),
            max_counters: 100_000,
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
    pub fn new(config: EventualConfig) -> Self {
        Self::with_clock(config, Monotonic::new())
    }
}

impl<C: Clock> Eventual<C> {
    /// The same with another clock to measure spans by.
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
        let half = StoreConfig {
            max_memory: config.memory.max_memory / 2,
        };
        let (shares, restored) = saved::open(half, clock.clone(), saved);
        let regions = 1 + config.other_regions;
        let settling = config.life() + config.life() * 2 / 3;
        let membership = Membership::new(config.members, settling, clock.own());
        let eventual = Self {
            teller: Teller {
                node: NodeId::random(),
                life: config.life(),
            },
            digester: Digester::new(),
            table: Table::new(config.max_counters, regions),
            mirror: Mirror::new(EmbeddedStore::with_clock(half, clock.clone())),
            shares: Mirror::new(shares),
            clock,
            regions: std::iter::repeat_with(Region::default)
                .take(regions)
                .collect(),
            membership,
            tallies: Tallies::default(),
            next_part: AtomicU64::new(0),
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

    /// Whether a region could not be told the last time.
    fn is_cut_off(&self) -> bool {
        // Relaxed, as all that stands for itself here.
        let is_cut = |region: &Region| region.is_cut.load(Ordering::Relaxed);
        self.regions.iter().any(is_cut)
    }

    /// Has the regions told soon.
    fn hurry(&self) {
        for region in &self.regions {
            region.is_awaited.store(true, Ordering::Relaxed);
        }
    }

    /// What has been seen so far.
    pub fn report(&self) -> EventualReport {
        let (mut counters, mut pending) = (0, 0);
        for part in self.table.each() {
            counters += u64::try_from(part.entries.len()).unwrap_or(u64::MAX);
            pending += part
                .entries
                .values()
                .map(entry::Entry::pending)
                .sum::<u64>();
        }
        let seen = |tally: &AtomicU64| tally.load(Ordering::Relaxed);
        let synced_at = seen(&self.tallies.synced_at).checked_sub(1);
        EventualReport {
            counters,
            syncs: seen(&self.tallies.syncs),
            failures: seen(&self.tallies.failures),
            pending,
            overshoot: seen(&self.tallies.overshoot),
            worst_overshoot: seen(&self.tallies.worst_overshoot),
            alone: seen(&self.tallies.alone),
            age: synced_at.map(|nanos| self.clock.own().since(Time::from_nanos(nanos))),
        }
    }
}
