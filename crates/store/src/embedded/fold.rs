//! Folding: a live counter that is evicted adds what it counted to its shared counter.

use tidegate_algorithms::sliding_log::Log;
use tidegate_algorithms::sub_windows::Counts;
use tidegate_algorithms::{Ticks, Time, interval_bucket, sliding_counter};

use super::block_counts::BlockCounts;
use super::block_log::BlockLog;
use super::core::Core;
use super::layout::{Layout, Shape};
use super::shared::{shared_hash, shared_layout};
use super::state::{State, narrow_expires_at};
use super::table::{LockedSet, WAYS};
use super::tag::{EvictionRank, Form, Pass, Tag};
use crate::ManualClock;

/// The remainder of an evicted counter.
#[derive(Clone, Copy)]
struct Remainder {
    state: State,
    expires_at: Time,
}

// === impl Core ===

impl Core {
    /// Adds the state of a counter that is about to be evicted to its shared counter. Skipped, and counted, if that
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

    /// Adds to a shared counter what one of the main core left; `None` if its set is held by somebody else.
    fn take_in(&self, tag: Tag, layout: Layout, left: Remainder, now: Time) -> Option<()> {
        let hash = shared_hash(layout, tag);
        let layout = shared_layout(layout);
        let number = self.number(layout, &ManualClock::at(now)).ok()?;
        let tag = Tag::new(hash, number);
        let home = self.table.home(hash);
        let primary = self.table.try_lock(home.primary)?;
        let secondary = self.table.try_lock(home.secondary)?;
        if !self.layouts.is_current(number, layout) {
            return None;
        }
        let sets = [&primary, &secondary];
        let found = sets.into_iter().find_map(|set| Some((set, set.find(tag)?)));
        if let Some((set, slot)) = found {
            let sum = left.add_to(set.state(slot), layout, now);
            set.put_state(slot, sum);
            return Some(());
        }
        let (set, slot) = self.room_for_shared(sets, now)?;
        set.put_state(slot, left.state.to_narrow(layout, left.expires_at));
        set.put_tag(slot, tag.marked_once(Pass::at(now)));
        Some(())
    }

    /// A slot of the two sets of a shared counter, which are held: a free one, or that of another counter.
    fn room_for_shared<'s, 't>(
        &self,
        sets: [&'s LockedSet<'t>; 2],
        now: Time,
    ) -> Option<(&'s LockedSet<'t>, usize)> {
        let free = |set: &'s LockedSet<'t>| Some((set, self.free_slot(set, now)?));
        sets.into_iter().find_map(free).or_else(|| {
            let slots = sets
                .into_iter()
                .flat_map(|set| (0..WAYS).map(move |slot| (set, slot)));
            let (_, place) = self.evict(slots, EvictionRank::InUse, now)?;
            Some(place)
        })
    }
}

// === impl Remainder ===

impl Remainder {
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
                State::Window(tidegate_algorithms::fixed_window::State {
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
