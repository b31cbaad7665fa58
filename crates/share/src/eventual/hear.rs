//! What becomes of what was heard of the others: it is charged to the mirror, and what does not fit is
//! debt.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tidegate_algorithms::{Algorithm, Quota, Time};
use tidegate_store::{Clock, CounterKey, Edge, Level, StoreError, Sums, Tally};

use super::Eventual;
use super::entry::{Entry, Known, Said};
use crate::capacity::capacity;

/// The longest epoch: far above any window, far below where times end.
const LONGEST_EPOCH: Duration = Duration::from_hours(24 * 365 * 20);

/// What was heard about one counter.
pub(super) struct News<'a> {
    pub(super) said: &'a Said,
    /// How often it was said that the counter was reset.
    pub(super) resets: u64,
    pub(super) tally: Tally,
    /// When it was asked for, by the node's own clock.
    pub(super) asked: Time,
}

// === impl Eventual ===

impl<C: Clock> Eventual<C> {
    pub(super) fn hear(
        &self,
        entry: &mut Entry,
        key: CounterKey<'_>,
        news: &News<'_>,
    ) -> Result<(), StoreError> {
        let epoch = news.said.epoch;
        let others = news.tally.others;
        if self.hear_of_reset(entry, key, news)? {
            entry.known = None;
        }
        let known = entry.known.filter(|known| self.can_follow(entry, known));
        let left_before = known.map_or(0, |known| known.left_before(epoch, entry.spent));
        let growth = known.and_then(|known| known.growth(epoch, others));
        let unfit = match growth {
            Some(growth) => {
                let hits = new_hits(edge(&entry.quota), growth, left_before);
                let unfit = self.mirror.force(key, &entry.quota, hits)?;
                self.tell_overshoot(unfit, entry.debt.saturating_add(unfit));
                unfit
            }
            None => self.catch_up(entry, key, news)?,
        };
        entry.debt = entry.debt.saturating_add(unfit);
        entry.known = Some(Known {
            epoch,
            others,
            resets: news.tally.resets,
            at: news.asked,
            left: Sums {
                current: self.mirror.peek(key, &entry.quota)?.remaining,
                before: left_before.saturating_sub(growth.unwrap_or_default().before),
            },
            spent: entry.spent,
        });
        Ok(())
    }

    /// Forgets what is used, if somebody has said so, and says whether: then what the others have admitted
    /// since is in the level, which was reset too.
    fn hear_of_reset(
        &self,
        entry: &mut Entry,
        key: CounterKey<'_>,
        news: &News<'_>,
    ) -> Result<bool, StoreError> {
        let epoch = news.said.epoch;
        let Some(known) = entry.known.filter(|known| known.is_recent(epoch)) else {
            return Ok(false);
        };
        if news.resets == entry.resets(epoch) {
            entry.is_to_reset = false;
        }
        let is_reset = known.is_reset_since(epoch, news.tally.resets);
        if is_reset {
            entry.debt = 0;
            self.mirror.reset(key, &entry.quota)?;
        }
        Ok(is_reset)
    }

    /// Whether what was heard last is recent enough to go on from. What is counted by epochs always is,
    /// while they last; with all else, what the others did meanwhile may be forgotten by now in part.
    fn can_follow(&self, entry: &Entry, known: &Known) -> bool {
        let age = self.clock.own().since(known.at);
        edge(&entry.quota) == Edge::Forgets || age <= self.config.sync_interval.saturating_mul(2)
    }

    /// Takes over what others have seen, for this node has not looked for a while.
    fn catch_up(
        &self,
        entry: &Entry,
        key: CounterKey<'_>,
        news: &News<'_>,
    ) -> Result<u64, StoreError> {
        let Some(level) = news.tally.level else {
            return Ok(0);
        };
        let mirror = self.mirror.peek(key, &entry.quota)?;
        let used = (mirror.limit - mirror.remaining.min(mirror.limit)).saturating_add(entry.debt);
        let unsaid = entry.spent.saturating_sub(news.said.spent);
        let own = news.said.fresh.saturating_add(unsaid);
        let true_used = still_used(&entry.quota, level).saturating_add(own);
        self.mirror
            .force(key, &entry.quota, true_used.saturating_sub(used))
    }

    fn tell_overshoot(&self, more: u64, owed: u64) {
        if more > 0 {
            let tallies = &self.tallies;
            tallies.overshoot.fetch_add(more, Ordering::Relaxed);
            tallies.worst_overshoot.fetch_max(owed, Ordering::Relaxed);
        }
    }
}

/// How long the epochs of a limit are: long enough that what was told two of them ago can no longer
/// matter to its counter.
pub(super) fn epoch_length(quota: &Quota) -> Duration {
    let window = quota.window();
    if edge(quota) == Edge::Forgets {
        return window;
    }
    let fills = capacity(quota).div_ceil(quota.limit().max(1)).max(2);
    let fills = u32::try_from(fills).unwrap_or(u32::MAX);
    window.saturating_mul(fills).min(LONGEST_EPOCH)
}

pub(super) const fn edge(quota: &Quota) -> Edge {
    match quota.algorithm() {
        Algorithm::FixedWindow => Edge::Forgets,
        _ => Edge::Carries,
    }
}

/// What of the others' growth the counter is to be charged with. What was admitted in a window that is
/// over counts only as far as it was above the limit.
fn new_hits(edge: Edge, growth: Sums, left_before: u64) -> u64 {
    let before = match edge {
        Edge::Forgets => growth.before.saturating_sub(left_before),
        Edge::Carries => growth.before,
    };
    growth.current.saturating_add(before)
}

/// What is left now of how much was used: a bucket has leaked since.
fn still_used(quota: &Quota, level: Level) -> u64 {
    let leaked = match quota.algorithm() {
        Algorithm::TokenBucket { .. } => {
            let tokens = u128::from(quota.limit()) * level.age.as_nanos();
            u64::try_from(tokens / quota.window().as_nanos().max(1)).unwrap_or(u64::MAX)
        }
        _ => 0,
    };
    level.used.saturating_sub(leaked)
}
