//! The table gives layers back: all shards are made smaller, one after the other.

use tidegate_algorithms::Time;

use super::super::border::Side;
use super::super::core::Core;
use super::super::grow::Layout;
use super::super::table::{LockedSet, STEP_SETS, SetId, WAYS};
use super::super::tag::EvictionRank;
use super::{PART, RETRY_PAUSE};

/// The result of an attempt to shrink one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShrinkResult {
    /// It is small enough.
    Done,
    /// A set of it is held.
    Busy,
    /// Its counters do not fit.
    Full,
}

/// The progress of making all shards smaller.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct ShrinkProgress {
    /// The layers that the table keeps.
    kept: u32,
    /// The next shard.
    shard: u32,
    /// Whether a shard of this round was full.
    is_full: bool,
    /// The rounds that are left.
    rounds: u32,
}

/// Rounds after which it is given up. Three, because marks repeat every three or four passes: an old one that looks new
/// in one pass is recognised in one of the next two.
const ROUNDS: u32 = 3;

/// Nanoseconds between two rounds: a pass.
const ROUND_PAUSE: u64 = 1 << 30;

// === impl Core ===

impl Core {
    /// Makes the next shard smaller.
    pub(in super::super) fn shrink_table(&self, under_way: &mut Option<ShrinkProgress>, now: Time) {
        let Some(mut work) = under_way.take().or_else(|| self.begin_to_shrink()) else {
            return self.rebalance.pause(now, RETRY_PAUSE);
        };
        match self.shrink_shard(work.shard, work.kept * STEP_SETS, now) {
            ShrinkResult::Busy => {}
            ShrinkResult::Done => work.shard += 1,
            ShrinkResult::Full => {
                work.shard += 1;
                work.is_full = true;
            }
        }
        *under_way = Some(work);
        if work.shard == self.table.shards() {
            self.end_round(under_way, work, now);
        }
    }

    /// Lets the table grow again.
    pub(super) fn stop_shrinking(&self, under_way: &mut Option<ShrinkProgress>) {
        *under_way = None;
        self.border.limit_table(None);
    }

    /// Gives the layers back if all shards are small enough, or goes round again.
    fn end_round(&self, under_way: &mut Option<ShrinkProgress>, work: ShrinkProgress, now: Time) {
        if !work.is_full {
            // The limit stays as long as blocks find no room, or the table would take the layers again.
            self.border.release(Side::Table, work.kept);
            *under_way = None;
        } else if work.rounds > 1 {
            self.rebalance.pause(now, ROUND_PAUSE);
            *under_way = Some(ShrinkProgress {
                shard: 0,
                is_full: false,
                rounds: work.rounds - 1,
                ..work
            });
        } else {
            self.rebalance.pause(now, RETRY_PAUSE);
            self.stop_shrinking(under_way);
        }
    }

    /// Begins with the first shard; `None` if the table has no more than its part.
    fn begin_to_shrink(&self) -> Option<ShrinkProgress> {
        let layers = self.border.taken(Side::Table);
        let kept = layers - (layers / PART).max(1);
        let kept = kept.max(self.border.guaranteed()).max(1);
        // From now on no shard grows beyond that. One that is about to is found by the look at it.
        (kept < layers).then(|| {
            self.border.limit_table(Some(kept));
            ShrinkProgress {
                kept,
                shard: 0,
                is_full: false,
                rounds: ROUNDS,
            }
        })
    }

    /// Makes sure that a shard has no more than `size` sets.
    fn shrink_shard(&self, shard: u32, size: u32, now: Time) -> ShrinkResult {
        let seen = self.table.size(shard);
        // Growth holds all sets of a shard, so the first one is enough where there is nothing to do.
        let held = if seen > size { seen } else { 1 };
        let sets = (0..held).map(|set| self.table.try_lock(SetId { shard, set }));
        let Some(mut sets) = sets.collect::<Option<Vec<LockedSet<'_>>>>() else {
            return ShrinkResult::Busy;
        };
        if self.table.size(shard) != seen {
            return ShrinkResult::Busy;
        }
        if seen <= size {
            return ShrinkResult::Done;
        }
        let slots = size as usize * WAYS;
        // Not all slots can be filled, because each counter lies in one of two sets.
        let layout = [slots / 8 * 7, slots / 4 * 3].into_iter().find_map(|most| {
            self.evict_idle(&sets, most, now);
            Layout::of(&self.collect_live(&sets, now), size)
        });
        let Some(layout) = layout else {
            return ShrinkResult::Full;
        };
        let given = sets.split_off(size as usize);
        layout.write(&sets);
        self.table.resize(shard, size);
        given.into_iter().for_each(LockedSet::give_away);
        ShrinkResult::Done
    }

    /// Evicts counters that nobody requested lately, those that expire first, until no more than `most` are left.
    fn evict_idle(&self, sets: &[LockedSet<'_>], most: usize, now: Time) {
        let pass = self.evicting_pass(now);
        let places = sets
            .iter()
            .flat_map(|set| (0..WAYS).map(move |slot| (set, slot)));
        let live: Vec<_> = places
            .filter(|&(set, slot)| !self.is_free(set, slot, now))
            .collect();
        let excess = live.len().saturating_sub(most);
        let mut idle: Vec<_> = live
            .into_iter()
            .filter(|(set, slot)| set.age(*slot, pass).rank(pass) == EvictionRank::Idle)
            .collect();
        idle.sort_by_cached_key(|(set, slot)| {
            let tag = set.tag(*slot);
            // By chance among those that expire together, or the first sets would be emptied and the last stay full.
            (self.expires_at(tag, set.state(*slot)), tag.fingerprint())
        });
        for (set, slot) in idle.into_iter().take(excess) {
            self.evict_slot(set, slot, now);
        }
    }
}
