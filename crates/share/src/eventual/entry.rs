//! What a node remembers of one counter beside the mirror of its state.

use std::sync::Arc;

use smallvec::SmallVec;
use tidegate_algorithms::{Quota, Time};
use tidegate_store::{CounterKey, LimitId, Sums, View};

use super::hear::epoch_length;

/// One counter.
#[derive(Debug)]
pub(super) struct Entry {
    /// Another one for each life of the counter: who has that of a life that is over has nothing to say to this.
    pub(super) key: Arc<Key>,
    pub(super) quota: Quota,
    /// All that was admitted here, ever; only grows.
    pub(super) spent: u64,
    /// What all nodes admitted above the limit, as far as it is known and not yet paid for.
    pub(super) debt: u64,
    /// What was told to each region, the own one first.
    pub(super) told: SmallVec<[Told; 1]>,
    /// What is known of the others.
    pub(super) known: Option<Known>,
    /// Whether it goes by this node's share.
    pub(super) alone: bool,
    /// Whether all nodes are to forget what is used, and were not told yet.
    pub(super) is_to_reset: bool,
    /// When it was last asked about, by the node's own clock.
    pub(super) used_at: Time,
}

/// The name of a counter, kept.
#[derive(Clone, Debug)]
pub(super) struct Key {
    limit: LimitId,
    values: Box<[Box<str>]>,
}

/// The values of a key, borrowed.
pub(super) type Values<'a> = SmallVec<[&'a str; 4]>;

/// What a region has been told of one counter.
///
/// What was admitted counts in the epoch in which it is told, not in which it was admitted, so that
/// an epoch that ends while the store is away takes nothing with it.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    epoch: u64,
    /// What had been told, of all that was ever spent, when the epoch began.
    base: u64,
    /// What the last telling said, of all that was ever spent.
    sent: u64,
    /// What is known to be written.
    acknowledged: u64,
    /// The total of the epoch before, if it is not known to be written.
    late: Option<u64>,
    /// Whether it waits to be told.
    pub(super) queued: bool,
}

/// What one telling says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) epoch: u64,
    pub(super) total: u64,
    pub(super) late: Option<u64>,
    /// All that was ever spent, this telling included.
    pub(super) spent: u64,
    /// What of it the region had not acknowledged before.
    pub(super) fresh: u64,
}

/// What was heard of the others, and when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) epoch: u64,
    pub(super) others: Sums,
    pub(super) resets: Sums,
    /// By the node's own clock.
    pub(super) at: Time,
    /// What was left of the limit in this epoch and in the one before, if its windows are epochs.
    pub(super) left: Sums,
    /// All that had ever been spent here.
    pub(super) spent: u64,
}

// === impl Entry ===

impl Entry {
    pub(super) fn new(key: CounterKey<'_>, quota: &Quota, regions: usize) -> Self {
        Self {
            key: Arc::new(Key::new(key)),
            quota: quota.clone(),
            spent: 0,
            debt: 0,
            told: std::iter::repeat_n(Told::default(), regions).collect(),
            known: None,
            alone: false,
            is_to_reset: false,
            used_at: Time::ZERO,
        }
    }

    /// Takes note of other numbers. Where epochs are of another length by those, it is told of in them from
    /// now on: their counts have nothing to do with the old ones'.
    pub(super) fn renumber(&mut self, quota: &Quota) {
        if epoch_length(quota) != epoch_length(&self.quota) {
            // A reply that is on its way counts in the old ones.
            self.key = Arc::new(Key::clone(&self.key));
            self.told.iter_mut().for_each(Told::begin_anew);
            self.known = None;
        }
        self.quota = quota.clone();
    }

    pub(super) const fn spend(&mut self, cost: u64) {
        self.spent = self.spent.saturating_add(cost);
    }

    /// Takes back what was spent. What was said already stays said, for totals only grow: the others find
    /// that much less. Nobody may spend it later without a word, when they have forgotten it.
    pub(super) fn unspend(&mut self, cost: u64) {
        let said = self.told.iter().map(|told| told.sent).max();
        let unsaid = self.spent.saturating_sub(said.unwrap_or_default());
        self.spent -= unsaid.min(cost);
    }

    /// What was admitted and may be unknown to somebody.
    pub(super) fn pending(&self) -> u64 {
        let known = self.told.iter().map(|told| told.acknowledged).min();
        self.spent.saturating_sub(known.unwrap_or_default())
    }

    /// How often to say in `epoch` that the counter was reset. Before it is known how often it was, nobody
    /// can say one more.
    pub(super) fn resets(&self, epoch: u64) -> u64 {
        let known = self.known.filter(|known| known.is_recent(epoch));
        known.map_or(0, |known| {
            let heard = if known.epoch == epoch {
                known.resets.current
            } else {
                0
            };
            heard + u64::from(self.is_to_reset)
        })
    }

    /// How the limit looks from here, if `used` of it is.
    pub(super) fn view(&self, used: u64, epoch: u64) -> Option<View> {
        let known = self.known.filter(|known| known.is_recent(epoch))?;
        let others = if known.epoch == epoch {
            known.others
        } else {
            Sums {
                current: 0,
                before: known.others.current,
            }
        };
        Some(View {
            used: used.saturating_add(self.debt),
            heard: others,
        })
    }
}

// === impl Key ===

impl Key {
    /// The name of no counter, where one is yet to be put.
    pub(super) const NOBODY: CounterKey<'static> = CounterKey {
        limit: LimitId(0),
        values: &[],
    };

    fn new(key: CounterKey<'_>) -> Self {
        Self {
            limit: key.limit,
            values: key.values.iter().map(|&value| value.into()).collect(),
        }
    }

    pub(super) fn values(&self) -> Values<'_> {
        self.values.iter().map(AsRef::as_ref).collect()
    }

    pub(super) const fn name<'a>(&self, values: &'a [&'a str]) -> CounterKey<'a> {
        CounterKey {
            limit: self.limit,
            values,
        }
    }
}

// === impl Told ===

impl Told {
    /// What to say in `epoch`, `spent` having been spent in all. An epoch before one in which
    /// something was said already, for a clock stepped back, is not gone back to.
    pub(super) fn say(&mut self, epoch: u64, spent: u64) -> Said {
        if epoch > self.epoch {
            let is_next = epoch == self.epoch.saturating_add(1);
            let is_unsure = self.sent > self.acknowledged;
            self.late = (is_next && is_unsure).then_some(self.sent - self.base);
            self.base = self.sent;
            self.epoch = epoch;
        }
        self.sent = spent;
        Said {
            epoch: self.epoch,
            total: spent - self.base,
            late: self.late,
            spent,
            fresh: spent - self.acknowledged,
        }
    }

    /// Goes on in epochs that are counted otherwise, with all that is not known to be written.
    const fn begin_anew(&mut self) {
        self.epoch = 0;
        self.sent = self.acknowledged;
        self.late = None;
    }

    /// Notes that `said` is written.
    pub(super) fn acknowledge(&mut self, said: &Said) {
        self.acknowledged = self.acknowledged.max(said.spent);
        if said.epoch == self.epoch {
            self.late = None;
        }
    }

    /// Whether something was spent that is not known to be written.
    pub(super) const fn is_behind(&self, spent: u64) -> bool {
        self.acknowledged < spent
    }
}

// === impl Known ===

impl Known {
    /// Whether it was heard in `epoch` or in the one before.
    pub(super) const fn is_recent(&self, epoch: u64) -> bool {
        epoch <= self.epoch.saturating_add(1)
    }

    /// By how much the others' sums have grown when they are `others` in `epoch`; `None` if too much
    /// has passed to tell.
    pub(super) fn growth(&self, epoch: u64, others: Sums) -> Option<Sums> {
        self.more(epoch, others, self.others)
    }

    /// Whether the counter was reset since, if it was `resets` times in `epoch`.
    pub(super) fn is_reset_since(&self, epoch: u64, resets: Sums) -> bool {
        let more = self.more(epoch, resets, self.resets);
        more.is_some_and(|more| more != Sums::default())
    }

    fn more(&self, epoch: u64, now: Sums, then: Sums) -> Option<Sums> {
        let then = if epoch == self.epoch {
            then
        } else {
            Sums {
                current: 0,
                before: then.current,
            }
        };
        let is_one_of_both = epoch >= self.epoch && self.is_recent(epoch);
        is_one_of_both.then_some(Sums {
            current: now.current.saturating_sub(then.current),
            before: now.before.saturating_sub(then.before),
        })
    }

    /// What was left in the epoch before `epoch`, `spent` having been spent here in all.
    pub(super) const fn left_before(&self, epoch: u64, spent: u64) -> u64 {
        if epoch == self.epoch {
            self.left.before
        } else {
            self.left
                .current
                .saturating_sub(spent.saturating_sub(self.spent))
        }
    }
}
