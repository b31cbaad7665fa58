//! Totals in plain memory: what every store of [`Totals`] does, in the dumbest way.

use std::collections::HashMap;
use std::future::{Future, ready};
use std::sync::{Mutex, PoisonError};

use tidegate_algorithms::Time;

use crate::{
    Edge, Exchanged, Level, LimitId, NodeId, StoreError, Sums, Tally, Teller, Telling, Totals,
};

/// Totals in plain memory, at a time that the test sets.
#[derive(Debug, Default)]
pub struct ModelTotals(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    now: Time,
    /// Until when each node is a member.
    members: HashMap<NodeId, Time>,
    epochs: HashMap<Name, Epoch>,
}

/// A counter and an epoch of it.
type Name = (LimitId, Vec<String>, u64);

#[derive(Debug, Default)]
struct Epoch {
    totals: HashMap<NodeId, u64>,
    level: Option<(u64, Time)>,
    resets: u64,
    expires_at: Time,
}

// === impl ModelTotals ===

impl ModelTotals {
    /// Nobody has told anything, at `now`.
    pub fn at(now: Time) -> Self {
        let totals = Self::default();
        totals.set_time(now);
        totals
    }

    /// Moves the time.
    pub fn set_time(&self, now: Time) {
        self.with(|state| state.now = now);
    }

    /// Does what [`Totals::exchange`] does, at once.
    pub fn exchange_now(
        &self,
        teller: Teller,
        tellings: &[Telling<'_>],
        tallies: &mut Vec<Tally>,
    ) -> Exchanged {
        self.with(|state| {
            tallies.clear();
            tallies.extend(
                tellings
                    .iter()
                    .map(|telling| state.tell(teller.node, telling)),
            );
            let now = state.now;
            state.members.retain(|_, until| *until > now);
            let until = now.plus(teller.life);
            let previous = state.members.insert(teller.node, until);
            Exchanged {
                now,
                members: u32::try_from(state.members.len()).unwrap_or(u32::MAX),
                previous: previous.map(|until| {
                    Time::ZERO.plus(until.since(Time::ZERO).saturating_sub(teller.life))
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
        teller: Teller,
        tellings: &[Telling<'_>],
        tallies: &mut Vec<Tally>,
    ) -> impl Future<Output = Result<Exchanged, StoreError>> + Send {
        ready(Ok(self.exchange_now(teller, tellings, tallies)))
    }
}

// === impl State ===

impl State {
    fn tell(&mut self, node: NodeId, telling: &Telling<'_>) -> Tally {
        let now = self.now;
        self.epochs.retain(|_, epoch| epoch.expires_at > now);
        let resets = self.reset(telling);
        let level = self.level(telling);
        let before = telling.epoch.saturating_sub(1);
        let late = telling.late.unwrap_or(0);
        let told = self.write(node, telling, before, late)
            + self.write(node, telling, telling.epoch, telling.total);
        let others = Sums {
            current: self.others(node, telling, telling.epoch),
            before: self.others(node, telling, before),
        };
        if told > 0 {
            let view = telling.view.filter(|_| telling.resets == resets);
            let used = view.map_or_else(
                || level.map_or(0, |(used, _)| used).saturating_add(told),
                |view| {
                    view.used
                        .saturating_add(unheard(telling.edge, view.heard, others))
                },
            );
            let epoch = self.epochs.entry(name(telling, telling.epoch)).or_default();
            epoch.level = Some((used, now));
            epoch.expires_at = now.plus(telling.length.saturating_mul(2));
        }
        Tally {
            others,
            resets: Sums {
                current: resets,
                before: self.resets(telling, before),
            },
            level: level.map(|(used, at)| Level {
                used,
                age: now.since(at),
            }),
        }
    }

    /// Resets the counter if that is new, and says how often it was.
    fn reset(&mut self, telling: &Telling<'_>) -> u64 {
        let resets = self.resets(telling, telling.epoch);
        if telling.resets <= resets {
            return resets;
        }
        let now = self.now;
        let epoch = self.epochs.entry(name(telling, telling.epoch)).or_default();
        epoch.resets = telling.resets;
        epoch.level = Some((0, now));
        epoch.expires_at = now.plus(telling.length.saturating_mul(2));
        telling.resets
    }

    fn resets(&self, telling: &Telling<'_>, epoch: u64) -> u64 {
        let epoch = self.epochs.get(&name(telling, epoch));
        epoch.map_or(0, |epoch| epoch.resets)
    }

    /// Raises a node's total, and says by how much.
    fn write(&mut self, node: NodeId, telling: &Telling<'_>, epoch: u64, total: u64) -> u64 {
        if total == 0 {
            return 0;
        }
        let expires_at = self.now.plus(telling.length.saturating_mul(2));
        let epoch = self.epochs.entry(name(telling, epoch)).or_default();
        epoch.expires_at = epoch.expires_at.max(expires_at);
        let old = epoch.totals.entry(node).or_default();
        let more = total.saturating_sub(*old);
        *old += more;
        more
    }

    fn others(&self, node: NodeId, telling: &Telling<'_>, epoch: u64) -> u64 {
        let Some(epoch) = self.epochs.get(&name(telling, epoch)) else {
            return 0;
        };
        let others = epoch.totals.iter().filter(|(teller, _)| **teller != node);
        others.map(|(_, total)| total).sum()
    }

    fn level(&self, telling: &Telling<'_>) -> Option<(u64, Time)> {
        let of = |epoch| self.epochs.get(&name(telling, epoch))?.level;
        let current = of(telling.epoch);
        match telling.edge {
            Edge::Forgets => current,
            Edge::Carries => current.or_else(|| of(telling.epoch.saturating_sub(1))),
        }
    }
}

fn name(telling: &Telling<'_>, epoch: u64) -> Name {
    let values = telling.key.values.iter().map(ToString::to_string);
    (telling.key.limit, values.collect(), epoch)
}

/// By how much the others' sums have grown since somebody heard them.
fn unheard(edge: Edge, heard: Sums, others: Sums) -> u64 {
    let current = others.current.saturating_sub(heard.current);
    match edge {
        Edge::Forgets => current,
        Edge::Carries => current + others.before.saturating_sub(heard.before),
    }
}
