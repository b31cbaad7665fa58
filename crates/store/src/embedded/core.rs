//! The parts of the embedded store, and what a slot means in their light.

use tidegate_algorithms::Time;

use super::arena::{Arena, ArenaSpace, Block, Handle};
use super::block_log::BlockLog;
use super::border::Border;
use super::layout::{Layouts, Shape};
use super::rebalance::Rebalance;
use super::shared::shared_counters;
use super::state::narrow_expires_at;
use super::sync::{AtomicU32, AtomicU64, Ordering};
use super::table::{LockedSet, Table};
use super::tag::{Form, Pass, Tag};

/// The most passes for which a thread is believed to have waited with a time that it read. Few, because a clock that
/// was set back by less has counters in use look old until it has caught up.
const LATEST: u64 = 4;

/// The divisor of memory that gives the part for shared counters.
const SHARED_PART: usize = 16;

/// Everything the embedded store remembers.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) table: Table,
    space: ArenaSpace,
    pub(super) border: Border,
    pub(super) rebalance: Rebalance,
    pub(super) layouts: Layouts,
    /// When layout numbers were last recycled, in nanoseconds; 0 if never.
    pub(super) recycled_at: AtomicU64,
    /// The number of sets that sweeps for blocks have visited, which gives the next one to visit.
    pub(super) sweep_position: AtomicU64,
    /// The last pass in which a sweep freed nothing.
    pub(super) fruitless_pass: AtomicU64,
    /// Searches for an idle counter in other sets, since the last one that found one.
    pub(super) idle_searches_in_vain: AtomicU32,
    pub(super) max_bytes: u64,
    pub(super) evicted: Tally,
    pub(super) untracked: Tally,
    /// The newest pass in which a counter was marked.
    newest_pass: AtomicU64,
    /// When a counter last found no room, in nanoseconds; 0 if never.
    pub(super) no_room_at: AtomicU64,
    /// When `on_full` decided last, in nanoseconds; 0 if never.
    pub(super) full_at: AtomicU64,
    /// Evicted counters that could not be added to their shared one.
    pub(super) unfolded: Tally,
    /// The shared counters; `None` in the core that holds them.
    pub(super) shared: Option<Box<Core>>,
    /// The number of shared counters of each layout, in the core that holds them.
    pub(super) shared_counters: u64,
    /// Whether shared counters were restored.
    pub(super) has_restored_shared: bool,
    /// Whether marks do not protect counters here, so that there is always room.
    evicts_in_use: bool,
}

/// A number that only grows, for the statistics.
#[derive(Debug)]
pub(super) struct Tally(AtomicU64);

// === impl Core ===

impl Core {
    /// Nothing yet, up to `max_bytes`; `None` if the system does not grant that memory.
    pub(super) fn try_new(max_bytes: usize) -> Option<Self> {
        let table = Table::try_new(max_bytes)?;
        Some(Self {
            space: ArenaSpace::new(table.layers(), table.layer_bytes()),
            border: Border::new(table.layers()),
            rebalance: Rebalance::new(),
            table,
            layouts: Layouts::new(),
            recycled_at: AtomicU64::new(0),
            sweep_position: AtomicU64::new(0),
            fruitless_pass: AtomicU64::new(0),
            idle_searches_in_vain: AtomicU32::new(0),
            max_bytes: max_bytes as u64,
            evicted: Tally::zero(),
            untracked: Tally::zero(),
            newest_pass: AtomicU64::new(0),
            no_room_at: AtomicU64::new(0),
            full_at: AtomicU64::new(0),
            unfolded: Tally::zero(),
            shared: None,
            shared_counters: 0,
            has_restored_shared: false,
            evicts_in_use: false,
        })
    }

    /// The same, with a part of `max_bytes` for shared counters.
    pub(super) fn with_shared(max_bytes: usize) -> Option<Self> {
        let part = max_bytes / SHARED_PART;
        let mut core = Self::try_new(max_bytes - part)?;
        core.share(part)?;
        Some(core)
    }

    /// Gives this core shared counters: a table of its full size from the start, and no blocks.
    pub(super) fn share(&mut self, max_bytes: usize) -> Option<()> {
        let mut shared = Self::try_new(max_bytes)?;
        shared.table.fill();
        shared.space = ArenaSpace::new(0, shared.table.layer_bytes());
        shared.shared_counters = shared_counters(shared.table.max_slots());
        shared.evicts_in_use = true;
        self.shared = Some(Box::new(shared));
        Some(())
    }

    /// Returns true if this core holds shared counters, which are evicted even while they are in use.
    pub(super) fn is_last_resort(&self) -> bool {
        self.evicts_in_use
    }

    /// The pass at `now`, for the holder of a set who marks a counter in it.
    #[inline]
    pub(super) fn marking_pass(&self, now: Time) -> Pass {
        let pass = Pass::at(now);
        // Relaxed: whoever reads the mark holds the set after this, and the lock orders both.
        if self.newest_pass.load(Ordering::Relaxed) < pass.number() {
            self.newest_pass.fetch_max(pass.number(), Ordering::Relaxed);
        }
        pass
    }

    /// The pass by which the holder of a set tells which counters in it are old. A thread that read `now` before it
    /// locked the set may find marks of later passes, which are not to look old: few bits tell a pass only modulo 4.
    pub(super) fn evicting_pass(&self, now: Time) -> Pass {
        let pass = Pass::at(now);
        let newest = Pass::numbered(self.newest_pass.load(Ordering::Relaxed));
        // Further ahead, it is the clock that was set back.
        if newest.number().saturating_sub(pass.number()) <= LATEST {
            pass.max(newest)
        } else {
            pass
        }
    }

    /// The blocks.
    #[inline]
    pub(super) fn arena(&self) -> Arena<'_> {
        self.space.arena(self.table.range(), &self.border)
    }

    /// Bytes that are in use, or were and can be used again.
    pub(super) fn used_bytes(&self) -> u64 {
        // Twice, because memory that moves meanwhile from one kind to the other would be counted for both.
        let before = self.table.used_bytes();
        let blocks = self.space.used_bytes();
        before.min(self.table.used_bytes()) + blocks
    }

    /// The block of a boxed slot.
    pub(super) fn block(&self, state: u64) -> Block<'_> {
        self.arena().block(Handle::from_word(state))
    }

    /// Fills a new block with a state of that shape that is `len` words long elsewhere.
    pub(super) fn fill_block(
        &self,
        handle: Handle,
        shape: Shape,
        len: usize,
        word: impl Fn(usize) -> u64,
    ) -> Block<'_> {
        let block = self.arena().block(handle);
        if shape == Shape::Log && block.len() != len {
            BlockLog::new(block.clone()).take_over(len, word);
        } else {
            (0..len).for_each(|index| block.put(index, word(index)));
        }
        block
    }

    /// The time at which the state of a slot expires.
    pub(super) fn expires_at(&self, tag: Tag, state: u64) -> Time {
        match (tag.form(), self.layouts.get(tag.layout())) {
            (Form::Boxed, _) => self.arena().expires_at(Handle::from_word(state)),
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
            self.arena().free(Handle::from_word(state));
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
