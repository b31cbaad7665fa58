//! The parts of the embedded store, and what a slot means in their light.

use tidegate_algorithms::Time;

use super::arena::{Arena, Block, Handle};
use super::budget::Budget;
use super::layout::Layouts;
use super::state::{EXPIRES, narrow_expires_at};
use super::sync::{AtomicU64, Ordering};
use super::table::{LockedSet, SET_BYTES, STEP_SETS, Table};
use super::tag::{Form, Tag};

/// Bytes that a shard takes from the start and with each step of growth.
pub(super) const STEP_BYTES: u64 = STEP_SETS as u64 * SET_BYTES as u64;

/// Everything the embedded store remembers.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) table: Table,
    pub(super) arena: Arena,
    pub(super) layouts: Layouts,
    /// When layout numbers were last recycled, in nanoseconds; 0 if never.
    pub(super) recycled_at: AtomicU64,
    pub(super) budget: Budget,
    /// Where the search for blocks to take goes on.
    pub(super) hand: AtomicU64,
    pub(super) max_bytes: u64,
    pub(super) evicted: Tally,
    pub(super) untracked: Tally,
}

/// A number that only grows, for the statistics.
#[derive(Debug)]
pub(super) struct Tally(AtomicU64);

// === impl Core ===

impl Core {
    /// Nothing yet, up to `max_bytes`; `None` if the system does not give out so much, twice: table
    /// and arena may each come to need it all, and only what they touch costs memory.
    pub(super) fn try_new(max_bytes: usize) -> Option<Self> {
        let table = Table::try_new(max_bytes)?;
        let taken = u64::from(table.shards()) * STEP_BYTES;
        Some(Self {
            table,
            arena: Arena::try_new(max_bytes)?,
            layouts: Layouts::new(),
            recycled_at: AtomicU64::new(0),
            budget: Budget::new((max_bytes as u64).saturating_sub(taken)),
            hand: AtomicU64::new(0),
            max_bytes: max_bytes as u64,
            evicted: Tally::zero(),
            untracked: Tally::zero(),
        })
    }

    /// The block of a boxed slot.
    pub(super) fn block(&self, state: u64) -> Block<'_> {
        self.arena.block(Handle::from_word(state))
    }

    /// When the state of a slot says no more than none does.
    pub(super) fn expires_at(&self, tag: Tag, state: u64) -> Time {
        match (tag.form(), self.layouts.get(tag.layout())) {
            (Form::Boxed, _) => Time::from_nanos(self.block(state).get(EXPIRES)),
            (Form::Narrow, Some(layout)) => narrow_expires_at(state, layout),
            (Form::Narrow, None) => Time::ZERO,
        }
    }

    /// Whether a slot is empty, or its state has expired at `now`.
    pub(super) fn is_free(&self, set: &LockedSet<'_>, slot: usize, now: Time) -> bool {
        let tag = set.tag(slot);
        tag.is_empty() || self.expires_at(tag, set.state(slot)) <= now
    }

    /// Empties a slot and frees its block.
    pub(super) fn vacate(&self, set: &LockedSet<'_>, slot: usize) {
        self.free_block(set.tag(slot), set.state(slot));
        set.put_tag(slot, Tag::EMPTY);
    }

    /// Frees the block of a slot that has one.
    pub(super) fn free_block(&self, tag: Tag, state: u64) {
        if !tag.is_empty() && tag.form() == Form::Boxed {
            self.arena.free(Handle::from_word(state));
        }
    }
}

// === impl Tally ===

impl Tally {
    fn zero() -> Self {
        Self(AtomicU64::new(0))
    }

    pub(super) fn add_one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
