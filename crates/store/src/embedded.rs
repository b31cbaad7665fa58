//! The embedded store: all counters in one table in memory, a cache line and no allocation for a
//! decision, bounded by a hard cap whatever arrives.
//!
//! A request's way through it: [`claim`] fingerprints the keys and finds their slots, [`table`] locks
//! the sets they lie in, [`ledger`] reads the states, [`account`] lets the limits decide, [`charge`]
//! weighs the decisions and has the ledger write them back. [`room`] and [`grow`] make place for new
//! keys, and [`rebalance`] moves memory between slots and blocks.

mod account;
mod arena;
mod block_counts;
mod block_log;
mod border;
mod charge;
mod claim;
mod core;
mod fingerprint;
mod fold;
mod grow;
mod layout;
mod ledger;
#[cfg(feature = "test-util")]
mod lend;
mod locks;
#[cfg(all(loom, test))]
mod loom_tests;
mod quick;
mod rebalance;
mod recycle;
mod refund;
mod room;
mod shared;
mod sip;
mod snapshot;
mod state;
mod sweep;
mod sync;
mod table;
mod tag;
mod unnumbered;

use std::future::{Future, ready};
use std::time::Duration;

use tidegate_algorithms::{Decision, Quota, RefundTo, Time};

use self::core::Core;
pub use self::fingerprint::Digester;
use self::fingerprint::Fingerprinter;
pub use self::recycle::LimitReservation;
pub use self::snapshot::{Restored, SnapshotError, Written};
use self::unnumbered::counted;
use crate::report::{StoreHealth, StoreReport};
use crate::{
    Charge, Charging, Clock, Consistency, Counter, CounterKey, Cursor, Decisions, MemoryRefused,
    OldCounters, Page, Receipt, Store, StoreError, SystemClock,
};

/// Bytes in a mebibyte.
const MIB: usize = 1 << 20;

/// How much the embedded store may remember.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreConfig {
    /// The most bytes of counters, at least a mebibyte.
    pub max_memory: usize,
}

/// Counters in memory.
#[derive(Debug)]
pub struct EmbeddedStore<C = SystemClock> {
    core: Core,
    fingerprinter: Fingerprinter,
    clock: C,
    #[cfg(feature = "test-util")]
    notes: lend::Notes,
}

/// What the embedded store has been through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Bytes of the cap that are in use. They are never given back, only used again.
    pub used_bytes: u64,
    /// The cap.
    pub max_bytes: u64,
    /// Live counters that made way for new ones at the cap.
    pub evicted: u64,
    /// Charges that found no room for their counter and were decided by `on_full`.
    pub untracked: u64,
    /// Evicted counters that were not added to their shared counter, because another request held it.
    pub unfolded: u64,
    /// Whether `on_full` decided on a charge in the last minute.
    pub is_full: bool,
}

// === impl StoreConfig ===

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            max_memory: 256 * MIB,
        }
    }
}

// === impl EmbeddedStore ===

impl EmbeddedStore {
    /// An empty store on the machine's clock.
    ///
    /// # Panics
    ///
    /// If the system does not give out the memory; [`try_new`](Self::try_new) says so instead.
    pub fn new(config: StoreConfig) -> Self {
        Self::with_clock(config, SystemClock::new())
    }

    /// An empty store on the machine's clock, if the system gives out the memory.
    pub fn try_new(config: StoreConfig) -> Result<Self, MemoryRefused> {
        Self::try_with_clock(config, SystemClock::new())
    }
}

impl<C: Clock> EmbeddedStore<C> {
    /// An empty store on another clock.
    ///
    /// # Panics
    ///
    /// If the system does not give out the memory; [`try_with_clock`](Self::try_with_clock) says so
    /// instead.
    pub fn with_clock(config: StoreConfig, clock: C) -> Self {
        Self::try_with_clock(config, clock).unwrap_or_else(|refused| panic!("{refused}"))
    }

    /// An empty store on another clock, if the system gives out the memory.
    pub fn try_with_clock(config: StoreConfig, clock: C) -> Result<Self, MemoryRefused> {
        Ok(Self {
            core: try_core(config)?,
            fingerprinter: Fingerprinter::random(),
            clock,
            #[cfg(feature = "test-util")]
            notes: lend::Notes::default(),
        })
    }

    /// The clock.
    pub fn clock(&self) -> &C {
        &self.clock
    }

    /// What the store has been through so far.
    pub fn stats(&self) -> StoreStats {
        self.core.stats(&self.clock)
    }

    /// Whether `on_full` decided on a charge in the last minute.
    pub fn is_full(&self) -> bool {
        self.core.was_full_at(self.clock.now())
    }

    /// Recognises the counters in the `part`th of `parts` of the table that nobody requested lately, if one found no
    /// room in the last minute. To be called for all parts once a second, so that new callers find room soon after
    /// a flood that kept all counters in use.
    pub fn recognise_idle(&self, part: u32, parts: u32) {
        let now = self.clock.now();
        if self.core.lacked_room_at(now) {
            self.core.age_marks(part, parts, now);
        }
    }

    /// [`Store::charge`] without a future: this store never waits for anything outside.
    pub fn charge_now(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        self.core.charge(
            &self.fingerprinter,
            &self.clock,
            charges,
            charging,
            decisions,
        )
    }

    /// [`Store::peek`] without a future.
    pub fn peek_now(&self, charge: &Charge<'_>) -> Result<Decision, StoreError> {
        counted(charge.quota, |quota| {
            let look = Charge {
                cost: 0,
                quota,
                ..*charge
            };
            self.core.look(&self.fingerprinter, &self.clock, &look)
        })
    }

    /// [`Store::refund`] without a future.
    pub fn refund_now(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
        to: RefundTo,
    ) -> Result<(), StoreError> {
        let (core, clock) = (&self.core, &self.clock);
        counted(quota, |quota| {
            core.refund(&self.fingerprinter, clock, key, quota, cost, to)
        })
    }

    /// [`Store::reset`] without a future.
    pub fn reset_now(&self, key: CounterKey<'_>, quota: &Quota) -> Result<bool, StoreError> {
        let (core, clock) = (&self.core, &self.clock);
        counted(quota, |quota| {
            core.reset(&self.fingerprinter, clock, key, quota)
        })
    }

    /// Reserves room for limits with these quotas: a number for each different pair of algorithm and window. For
    /// [`Store::reserve`] of several stores, of which either all take the room or none.
    ///
    /// # Errors
    ///
    /// If they do not fit; then nothing is changed.
    pub fn reserve_limits<'q>(
        &self,
        quotas: impl Iterator<Item = &'q Quota>,
        old: OldCounters,
    ) -> Result<LimitReservation<'_>, StoreError> {
        self.core.reserve(quotas, old, self.clock.now())
    }

    /// [`Store::list`] without a future.
    pub fn list_now(&self, cursor: Cursor, most: usize) -> Page {
        self.core.list(&self.clock, cursor, most)
    }
}

impl<C: Clock> Store for EmbeddedStore<C> {
    fn charge(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> impl Future<Output = Result<Receipt, StoreError>> + Send {
        ready(self.charge_now(charges, charging, decisions))
    }

    fn peek(
        &self,
        charge: &Charge<'_>,
    ) -> impl Future<Output = Result<Decision, StoreError>> + Send {
        ready(self.peek_now(charge))
    }

    fn refund(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
        to: RefundTo,
        _: Consistency,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        ready(self.refund_now(key, quota, cost, to))
    }

    fn reset(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        _: Consistency,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send {
        ready(self.reset_now(key, quota))
    }

    fn reserve(
        &self,
        limits: &mut dyn Iterator<Item = (&Quota, Consistency)>,
        old: OldCounters,
    ) -> Result<(), StoreError> {
        self.reserve_limits(limits.map(|(quota, _)| quota), old)
            .map(LimitReservation::commit)
    }

    fn now(&self) -> impl Future<Output = Result<Time, StoreError>> + Send {
        ready(Ok(self.clock.now()))
    }

    fn list(
        &self,
        cursor: Cursor,
        most: usize,
    ) -> impl Future<Output = Result<Page, StoreError>> + Send {
        ready(Ok(self.list_now(cursor, most)))
    }

    fn health(&self) -> StoreHealth {
        StoreHealth::Whole.or_full(self.is_full())
    }

    fn report(&self) -> StoreReport {
        StoreReport {
            memory: self.stats(),
            ..StoreReport::default()
        }
    }
}

fn try_core(config: StoreConfig) -> Result<Core, MemoryRefused> {
    let max_memory = config.max_memory.max(MIB);
    Core::with_shared(max_memory).ok_or(MemoryRefused { max_memory })
}

// === impl Core ===

impl Core {
    fn list(&self, clock: &impl Clock, cursor: Cursor, most: usize) -> Page {
        let mut page = Page::default();
        let now = clock.now();
        let first = u32::try_from(cursor.0).unwrap_or(u32::MAX);
        for shard in first..self.table.shards() {
            if page.counters.len() >= most {
                page.next = Some(Cursor(u64::from(shard)));
                break;
            }
            self.visit(shard, |tag, expires_at| {
                let layout = self.layouts.get(tag.layout());
                if let Some(layout) = layout.filter(|_| now < expires_at) {
                    page.counters.push(Counter {
                        fingerprint: (u64::from(shard) << tag::FINGERPRINT_BITS)
                            | tag.fingerprint(),
                        window: Duration::from_nanos(layout.window),
                        expires_after: expires_at.since(now),
                        refused: None,
                    });
                }
            });
        }
        page
    }
}
