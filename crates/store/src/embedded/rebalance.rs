//! Moving memory between the table and the arena, as demand changes.
//!
//! A side that finds no room takes layers from the other one, down to that one's guaranteed part, unless that one
//! lately was in need itself. It is done by the requests that find no room, a little at a time, so that
//! none waits long:
//!
//! ```text
//!            no room for a block                             no room for a slot
//!  table ────────────────────────► shards are made    arena ────────────────────► the lowest layers are
//!                                  smaller, one by                                cleared: no allocation there,
//!                                  one                                            the hand moves blocks away
//!                 ▲                     │                        ▲                       │
//!                 └─ all are: layers ───┤                        └─ no block is left: ───┤
//!                    released           │                           layers released      │
//!                                       ▼                                                ▼
//!                                  keys do not fit:                               a block finds no room:
//!                                  given up                                       given up
//! ```
//! Live counters that nobody requested lately are evicted for it, those in use are moved.

mod arena_side;
mod table_side;

use std::sync::TryLockError;

use tidegate_algorithms::Time;

use self::table_side::ShrinkProgress;
use super::core::Core;
use super::sync::{AtomicU64, Mutex, MutexGuard, Ordering};
use super::tag::EvictionRank;

/// Nanoseconds between two steps. A step takes some tens of microseconds, so all of them together a tenth of a
/// processor at most.
const STEP_PAUSE: u64 = 1_000_000;

/// Nanoseconds until it is tried again after it was given up.
const RETRY_PAUSE: u64 = 10_000_000_000;

/// Nanoseconds for which a side that was in need keeps its layers.
const NEED: u64 = 10_000_000_000;

/// The table is in need when more than one in this many of the counters that it evicts were requested lately.
const IDLE_PER_WARM: u64 = 16;

/// The excess of counters requested lately, in [`IDLE_PER_WARM`]s, from which the table is in need; it grows to twice
/// as much.
const EXCESS: u64 = 16 * IDLE_PER_WARM;

/// A side gives back about this part of its layers at a time.
const PART: u32 = 8;

/// The state of moving memory.
#[derive(Debug)]
pub(super) struct Rebalance {
    /// The work on the table, while it is made smaller.
    under_way: Mutex<Option<ShrinkProgress>>,
    /// Nanoseconds before which nothing is done.
    not_before: AtomicU64,
    /// How many more of the evicted counters were requested lately than a table without need evicts.
    table_excess: AtomicU64,
    /// When the table was last in need, in nanoseconds.
    table_needed_at: AtomicU64,
    /// When a block last found no room, in nanoseconds.
    arena_needed_at: AtomicU64,
}

// === impl Rebalance ===

impl Rebalance {
    pub(super) fn new() -> Self {
        Self {
            under_way: Mutex::new(None),
            not_before: AtomicU64::new(0),
            table_excess: AtomicU64::new(0),
            table_needed_at: AtomicU64::new(0),
            arena_needed_at: AtomicU64::new(0),
        }
    }

    /// The right to make a step at `now`, which one thread has at a time.
    fn begin_step(&self, now: Time) -> Option<MutexGuard<'_, Option<ShrinkProgress>>> {
        if now.nanos() < self.not_before.load(Ordering::Relaxed) {
            return None;
        }
        let under_way = match self.under_way.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        self.pause(now, STEP_PAUSE);
        Some(under_way)
    }

    /// Notes that the table evicted a counter of that rank.
    fn note_eviction(&self, evicted: EvictionRank, now: Time) {
        // Relaxed, and not in one step: a note that is lost does no harm.
        let excess = self.table_excess.load(Ordering::Relaxed);
        let excess = match evicted {
            EvictionRank::Idle => excess.saturating_sub(1),
            _ => (excess + IDLE_PER_WARM).min(2 * EXCESS),
        };
        self.table_excess.store(excess, Ordering::Relaxed);
        if excess >= EXCESS {
            self.table_needed_at.store(now.nanos(), Ordering::Relaxed);
        }
    }

    fn pause(&self, now: Time, nanos: u64) {
        let until = now.nanos().saturating_add(nanos);
        self.not_before.store(until, Ordering::Relaxed);
    }
}

// === impl Core ===

impl Core {
    /// Takes a step towards more room for blocks. The caller found none, and may hold sets.
    pub(super) fn take_from_table(&self, now: Time) {
        let needed_at = &self.rebalance.arena_needed_at;
        needed_at.store(now.nanos(), Ordering::Relaxed);
        if let Some(mut under_way) = self.rebalance.begin_step(now) {
            if is_recent(&self.rebalance.table_needed_at, now) {
                self.stop_shrinking(&mut under_way);
            } else {
                self.shrink_table(&mut under_way, now);
            }
        }
    }

    /// Takes a step towards more room for slots. The caller evicted a counter of that rank, and may hold sets.
    pub(super) fn take_from_arena(&self, evicted: EvictionRank, now: Time) {
        self.rebalance.note_eviction(evicted, now);
        if !is_recent(&self.rebalance.arena_needed_at, now)
            && let Some(mut under_way) = self.rebalance.begin_step(now)
        {
            self.stop_shrinking(&mut under_way);
            self.clear_arena(now);
        }
    }
}

fn is_recent(at: &AtomicU64, now: Time) -> bool {
    let at = at.load(Ordering::Relaxed);
    at > 0 && now.nanos().saturating_sub(at) < NEED
}

#[cfg(all(test, not(loom)))]
mod tests;
