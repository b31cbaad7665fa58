//! Totals in plain memory: what every store of [`Totals`] does, in the simplest way.

use std::collections::HashMap;
use std::future::{Future, ready};
use std::sync::{Mutex, PoisonError};

use tidegate_algorithms::Time;

use crate::{
    CounterId, CounterSums, CounterUpdate, EpochInfo, ExchangeReply, NodeId, SlotTotal, StoreError,
    Totals, TotalsSender,
};

/// Totals in plain memory, at a time that the test sets.
#[derive(Debug, Default)]
pub struct ModelTotals(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    now: Time,
    /// Until when each node is a member.
    members: HashMap<NodeId, Time>,
    epochs: HashMap<(CounterId, u64, u64), Epoch>,
}

#[derive(Debug, Default)]
struct Epoch {
    totals: HashMap<(u64, NodeId), SlotTotal>,
    /// Admissions of all nodes in each slot, less refunds.
    sums: HashMap<u64, i64>,
    info: EpochInfo,
    expires_at: Time,
}

// === impl ModelTotals ===

impl ModelTotals {
    /// An empty store at `now`.
    pub fn at(now: Time) -> Self {
        let totals = Self::default();
        totals.set_time(now);
        totals
    }

    /// Moves the time.
    pub fn set_time(&self, now: Time) {
        self.with(|state| state.now = now);
    }

    /// Loses all data, as a restart without files does.
    pub fn clear(&self) {
        self.with(|state| {
            state.members.clear();
            state.epochs.clear();
        });
    }

    /// Does what [`Totals::exchange`] does, at once.
    pub fn exchange_now(
        &self,
        sender: TotalsSender,
        updates: &[CounterUpdate<'_>],
        replies: &mut Vec<CounterSums>,
    ) -> ExchangeReply {
        self.with(|state| {
            replies.clear();
            let sums = updates.iter().map(|it| state.update(sender.node, it));
            replies.extend(sums);
            let now = state.now;
            state.members.retain(|_, until| *until > now);
            let until = now.plus(sender.life);
            let previous = state.members.insert(sender.node, until);
            ExchangeReply {
                now,
                members: u32::try_from(state.members.len()).unwrap_or(u32::MAX),
                previous: previous.map(|until| {
                    Time::ZERO.plus(until.since(Time::ZERO).saturating_sub(sender.life))
                }),
            }
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Totals for ModelTotals {
    fn exchange(
        &self,
        sender: TotalsSender,
        updates: &[CounterUpdate<'_>],
        replies: &mut Vec<CounterSums>,
    ) -> impl Future<Output = Result<ExchangeReply, StoreError>> + Send {
        ready(Ok(self.exchange_now(sender, updates, replies)))
    }
}

// === impl State ===

impl State {
    fn update(&mut self, node: NodeId, update: &CounterUpdate<'_>) -> CounterSums {
        let now = self.now;
        self.epochs.retain(|_, epoch| epoch.expires_at > now);
        if !update.totals.is_empty() && update.base > 0 {
            let epoch = self.epochs.entry(name(update, update.current)).or_default();
            if update.base > epoch.info.base {
                epoch.info.base = update.base;
                epoch.expires_at = now.plus(update.expiry());
            }
        }
        for total in update.totals {
            self.write(node, update, *total);
        }
        let slots = update.first..=update.current;
        CounterSums {
            current: self.info(update, update.current),
            before: self.info(update, update.current.saturating_sub(update.epoch_slots)),
            sums: slots
                .filter_map(|slot| Some((slot, self.sum(update, slot)?)))
                .collect(),
        }
    }

    fn write(&mut self, node: NodeId, update: &CounterUpdate<'_>, total: SlotTotal) {
        let now = self.now;
        let epoch = self.epochs.entry(name(update, total.slot)).or_default();
        let old = epoch.totals.get(&(total.slot, node)).copied();
        let old = old.unwrap_or(SlotTotal {
            admitted: 0,
            refunded: 0,
            ..total
        });
        let new = SlotTotal {
            slot: total.slot,
            admitted: total.admitted.max(old.admitted),
            refunded: total.refunded.max(old.refunded),
        };
        if new != old {
            epoch.totals.insert((total.slot, node), new);
            let net =
                |total: SlotTotal| total.admitted.cast_signed() - total.refunded.cast_signed();
            let growth = net(new) - net(old);
            *epoch.sums.entry(total.slot).or_default() += growth;
            if growth < 0 {
                // Several nodes may have refunded the same.
                let used = epoch.sums.values().sum::<i64>() + epoch.info.base.cast_signed();
                *epoch.sums.entry(total.slot).or_default() -= used.min(0);
            }
            if epoch.info.created == 0 {
                epoch.info.created = now.nanos() / 1_000;
            }
            epoch.expires_at = now.plus(update.expiry());
        }
    }

    fn info(&self, update: &CounterUpdate<'_>, slot: u64) -> EpochInfo {
        let epoch = self.epochs.get(&name(update, slot));
        epoch.map(|epoch| epoch.info).unwrap_or_default()
    }

    fn sum(&self, update: &CounterUpdate<'_>, slot: u64) -> Option<i64> {
        let epoch = self.epochs.get(&name(update, slot))?;
        epoch.sums.get(&slot).copied()
    }
}

fn name(update: &CounterUpdate<'_>, slot: u64) -> (CounterId, u64, u64) {
    (update.counter, update.slot_nanos, slot / update.epoch_slots)
}
