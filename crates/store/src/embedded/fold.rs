//! Folding: a live counter that is evicted adds its count to its shared counters.
//!
//! A request that evicts holds sets already, so nothing here waits: neither for a set nor for the right to number a
//! layout. A counter that cannot be folded at once is not folded, and that is counted.

use tidegate_algorithms::sliding_log::Log;
use tidegate_algorithms::sub_windows::Counts;
use tidegate_algorithms::{Ticks, Time, fixed_window, interval_bucket, sliding_counter};

use super::block_counts::BlockCounts;
use super::block_log::BlockLog;
use super::core::Core;
use super::layout::{Layout, Shape};
use super::shared::shared_layouts;
use super::state::{State, narrow_expires_at};
use super::tag::{Form, Pass, Tag};

/// The remainder of an evicted counter.
#[derive(Clone, Copy)]
struct Remainder {
    state: State,
    expires_at: Time,
}

// === impl Core ===

impl Core {
    /// Adds the state of a counter that is about to be evicted to its shared counters. Skipped, and counted, if that
    /// would mean to wait.
    pub(super) fn fold(&self, tag: Tag, state: u64, now: Time) {
        let (Some(shared), Some(layout)) = (&self.shared, self.layouts.get(tag.layout())) else {
            return;
        };
        let Some(remainder) = self.remainder(tag, state, layout) else {
            return;
        };
        if shared.take_in(tag, layout, remainder, now).is_none() {
            self.unfolded.add_one();
        }
    }

    /// The count of a counter, as the state of a shared one.
    fn remainder(&self, tag: Tag, word: u64, layout: Layout) -> Option<Remainder> {
        let expires_at = self.expires_at(tag, word);
        let state = match (tag.form(), layout.shape) {
            (Form::Narrow, _) => State::from_narrow(word, layout)?,
            (Form::Boxed, Shape::Log) => {
                let count = BlockLog::new(self.block(word)).len();
                counted_at(count, expires_at, layout)
            }
            (Form::Boxed, Shape::Counts) => {
                let count = BlockCounts::open(self.block(word), 1)?.total();
                counted_at(count, expires_at, layout)
            }
            (Form::Boxed, shape) => State::read_wide(&self.block(word), shape)?,
        };
        Some(Remainder { state, expires_at })
    }

    /// Adds to the shared counters of a counter what it left; `None` if one of them cannot be had at once.
    fn take_in(&self, tag: Tag, layout: Layout, left: Remainder, now: Time) -> Option<()> {
        let hash = self.shared_hash(layout, tag);
        let home = self.table.home(hash);
        let primary = self.table.try_lock(home.primary)?;
        let secondary = self.table.try_lock(home.secondary)?;
        // The preferred one last: in a set full of counters in use, each takes the slot of the one before it.
        for layout in shared_layouts(layout, tag.form()).rev() {
            // Under the locks, so that the number cannot be given to another layout before the slot is written.
            let tag = Tag::new(hash, self.layouts.try_number(layout)?);
            let left = left.in_shape(layout.shape);
            let sets = [&primary, &secondary];
            let found = sets.into_iter().find_map(|set| Some((set, set.find(tag)?)));
            if let Some((set, slot)) = found {
                set.put_state(slot, left.add_to(set.state(slot), layout, now));
            } else {
                let (set, slot) = self.slot_in(sets, now)?;
                set.put_state(slot, left.state.to_narrow(layout, left.expires_at));
                set.put_tag(slot, tag.marked_once(Pass::at(now)));
            }
        }
        Some(())
    }
}

// === impl Remainder ===

impl Remainder {
    /// The remainder as the state of a shared counter of `shape`. A fixed window takes all that a sliding window still
    /// counts, and all that is missing from a bucket.
    fn in_shape(self, shape: Shape) -> Self {
        let (window, count) = match (shape, self.state) {
            (Shape::Window, State::Pair(pair)) => {
                (pair.window, pair.previous.saturating_add(pair.current))
            }
            (Shape::Window, State::Portion(portion)) => (portion.period, portion.missing),
            _ => return self,
        };
        Self {
            state: State::Window(fixed_window::State { window, count }),
            ..self
        }
    }

    /// The sum of this and of the narrow state of a shared counter, as a narrow state. What does not belong to one
    /// time cannot be added without the limit: then the newer one stands.
    fn add_to(self, word: u64, layout: Layout, now: Time) -> u64 {
        let expires_at = narrow_expires_at(word, layout);
        let own = State::from_narrow(word, layout).filter(|_| now < expires_at);
        let Some(own) = own else {
            return self.state.to_narrow(layout, self.expires_at);
        };
        let sum = match (own, self.state) {
            (State::Instant(own), State::Instant(left)) => {
                State::Instant(add_debts(own, left, layout, now))
            }
            (State::Window(own), State::Window(left)) if own.window == left.window => {
                State::Window(fixed_window::State {
                    count: own.count.saturating_add(left.count),
                    ..own
                })
            }
            (State::Portion(own), State::Portion(left)) if own.period == left.period => {
                State::Portion(interval_bucket::State {
                    missing: own.missing.saturating_add(left.missing),
                    ..own
                })
            }
            (State::Pair(own), State::Pair(left)) => State::Pair(add_pairs(own, left)),
            (own, left) => {
                if expires_at < self.expires_at {
                    left
                } else {
                    own
                }
            }
        };
        sum.to_narrow(layout, expires_at.max(self.expires_at))
    }
}

/// A pair of `count` requests in the window of the newest of them, by when they expire.
fn counted_at(count: u64, expires_at: Time, layout: Layout) -> State {
    let newest = expires_at.nanos().saturating_sub(layout.window);
    State::Pair(sliding_counter::State {
        window: newest / layout.window,
        previous: 0,
        current: count,
    })
}

/// The sum of two times by which buckets are ahead of now, at most the window or the longer of them: the limit,
/// which would say how far a bucket can be ahead, is not known here.
fn add_debts(own: Ticks, left: Ticks, layout: Layout, now: Time) -> Ticks {
    let now = Ticks::at(now);
    let [own, left] = [own, left].map(|it| it.0.saturating_sub(now.0));
    let most = own.max(left).max(Ticks::from_nanos(layout.window).0);
    Ticks(now.0.saturating_add((own.saturating_add(left)).min(most)))
}

/// The sum of two pairs, as of the newer window.
fn add_pairs(one: sliding_counter::State, other: sliding_counter::State) -> sliding_counter::State {
    let (old, new) = if one.window <= other.window {
        (one, other)
    } else {
        (other, one)
    };
    let (previous, current) = match new.window - old.window {
        0 => (old.previous, old.current),
        1 => (old.current, 0),
        _ => (0, 0),
    };
    sliding_counter::State {
        window: new.window,
        previous: new.previous.saturating_add(previous),
        current: new.current.saturating_add(current),
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
