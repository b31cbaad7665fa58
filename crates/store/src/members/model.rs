//! Members and plans in the dumbest way: what stores are compared with, and a store to simulate with.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate_algorithms::Time;

use super::{Beat, MAX_MEMBERS, NodeId, Plan, Plans, Pulse, Want};
use crate::LimitId;

/// Members and plans in memory.
#[derive(Debug, Default)]
pub struct ModelMembers(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// When each member expires.
    expires: BTreeMap<NodeId, Time>,
    pace: Option<Duration>,
    limits: BTreeMap<LimitId, Limit>,
}

#[derive(Debug, Default)]
struct Limit {
    length: Duration,
    from: Time,
    demands: BTreeMap<NodeId, u32>,
    plans: BTreeMap<u64, Made>,
}

/// A plan as all see it.
#[derive(Clone, Debug)]
struct Made {
    parts: u32,
    least: u32,
    given: BTreeMap<Holder, u32>,
    has: BTreeMap<Holder, u32>,
}

/// Who has parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Holder {
    Reserve,
    Node(NodeId),
}

// === impl ModelMembers ===

impl ModelMembers {
    /// What a heartbeat comes to at that time.
    pub fn beat(&self, beat: &Beat<'_>, now: Time) -> Pulse {
        let mut state = self.lock();
        state.expires.retain(|_, expires| *expires > now);
        let expires = state.expires.get(&beat.node);
        let sent =
            |expires: &Time| Time::ZERO.plus(expires.since(Time::ZERO).saturating_sub(beat.expiry));
        let previous = expires.map(sent);
        let is_member = state.join(beat, now);
        let members: Vec<NodeId> = state.expires.keys().copied().collect();
        let pace = *state.pace.get_or_insert(beat.pace);
        let mut plans = Vec::new();
        for want in beat.wants {
            let limit = state.limits.entry(want.limit).or_default();
            limit.settle_length(want, pace);
            if is_member {
                limit.demands.insert(beat.node, want.demand);
            }
            plans.push(limit.plans(want, beat.node, pace, &members, now));
        }
        Pulse {
            now,
            members: u32::try_from(members.len()).unwrap_or(u32::MAX),
            previous,
            plans,
        }
    }

    /// Has a node go.
    pub fn leave(&self, node: NodeId) {
        self.lock().expires.remove(&node);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl State ===

impl State {
    fn join(&mut self, beat: &Beat<'_>, now: Time) -> bool {
        let is_full = self.expires.len() >= MAX_MEMBERS as usize;
        if is_full && !self.expires.contains_key(&beat.node) {
            return false;
        }
        self.expires.insert(beat.node, now.plus(beat.expiry));
        true
    }
}

// === impl Limit ===

impl Limit {
    fn settle_length(&mut self, want: &Want, pace: Duration) {
        let mut needed = want.window;
        while needed < pace.max(want.memory) {
            needed += want.window;
        }
        if self.length >= needed {
            return;
        }
        if let Some((last, _)) = self.plans.last_key_value() {
            self.from = self.starts(last + 1).plus(needed);
            self.plans.clear();
            self.demands.clear();
        }
        self.length = needed;
    }

    fn plans(
        &mut self,
        want: &Want,
        node: NodeId,
        pace: Duration,
        members: &[NodeId],
        now: Time,
    ) -> Plans {
        let epoch = u64::try_from(u128::from(now.nanos()) / self.length.as_nanos()).unwrap_or(0);
        let current = self.plan(epoch, want, node, members);
        let is_due = self.starts(epoch + 1).since(now) <= pace * 2;
        let next = if is_due || self.plans.contains_key(&(epoch + 1)) {
            self.plan(epoch + 1, want, node, members)
        } else {
            None
        };
        Plans { current, next }
    }

    fn plan(&mut self, epoch: u64, want: &Want, node: NodeId, members: &[NodeId]) -> Option<Plan> {
        let last = self.plans.last_key_value().map(|(last, _)| *last);
        let is_new = !self.plans.contains_key(&epoch);
        if is_new {
            let is_early = self.starts(epoch) < self.from;
            let is_late = last.is_some_and(|last| epoch <= last);
            if !members.contains(&node) || is_early || is_late {
                return None;
            }
            let made = self.make(epoch, want, members);
            self.plans.insert(epoch, made);
            // What the gone wanted is of no interest, also when they are back.
            self.demands.retain(|node, _| members.contains(node));
        }
        let made = self.plans.get(&epoch)?;
        let has = |holder| made.has.get(&holder).copied().unwrap_or(0);
        Some(Plan {
            starts: self.starts(epoch),
            ends: self.starts(epoch + 1),
            parts: made.parts,
            share: has(Holder::Node(node)),
            reserve: has(Holder::Reserve),
            least: made.least,
        })
    }

    fn make(&self, epoch: u64, want: &Want, members: &[NodeId]) -> Made {
        let parts = want.parts;
        let count = u32::try_from(members.len()).unwrap_or(u32::MAX);
        let reserve = Plan::least_reserve(parts);
        let demand = |node: &NodeId| self.demands.get(node).copied().unwrap_or(0);
        let demands: Vec<u32> = members.iter().map(demand).collect();
        let (reserve, shares) = if parts < count + reserve {
            (parts, vec![0; members.len()])
        } else {
            let floor = (parts / (32 * count)).max(1);
            (reserve, divide(parts - reserve, floor, &demands))
        };
        let mut given = BTreeMap::from([(Holder::Reserve, reserve)]);
        for (node, share) in members.iter().zip(&shares) {
            given.insert(Holder::Node(*node), *share);
        }
        let mut has = given.clone();
        if want.memory > Duration::ZERO
            && let Some(before) = self.plans.get(&(epoch.wrapping_sub(1)))
        {
            for (holder, has) in &mut has {
                let had = before.given.get(holder).copied().unwrap_or(0);
                let had = u64::from(had) * u64::from(parts) / u64::from(before.parts);
                *has = (*has).min(u32::try_from(had).unwrap_or(u32::MAX));
            }
        }
        Made {
            parts,
            least: shares.iter().copied().min().unwrap_or(0),
            given,
            has,
        }
    }

    fn starts(&self, epoch: u64) -> Time {
        let nanos = self.length.as_nanos() * u128::from(epoch);
        Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// Hands out `pool` parts one by one: each to whoever has least of those that want more, and when nobody
/// does, to one after the other. Of several that have least, whoever wants most is first; after that the
/// last in order.
pub fn divide(pool: u32, floor: u32, demands: &[u32]) -> Vec<u32> {
    let wants: Vec<u32> = demands.iter().map(|demand| *demand.max(&floor)).collect();
    let mut shares = vec![0_u32; wants.len()];
    let mut left = pool;
    while left > 0 {
        let hungry = (0..wants.len()).filter(|place| shares[*place] < wants[*place]);
        let order = |place: &usize| (shares[*place], std::cmp::Reverse((wants[*place], *place)));
        let Some(next) = hungry.min_by_key(order) else {
            break;
        };
        shares[next] += 1;
        left -= 1;
    }
    let mut order: Vec<usize> = (0..wants.len()).collect();
    order.sort_by_key(|place| (wants[*place], *place));
    for place in order.iter().cycle().take(left as usize) {
        shares[*place] += 1;
    }
    shares
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Everything is given out, everybody has the floor, and who has less than he wants has no less
        /// than anybody else, but for the one part that could not be halved.
        #[test]
        fn a_division_is_max_min_fair(
            demands in vec(0_u32..400, 1..12), floor in 1_u32..8, more in 0_u32..1_000,
        ) {
            let count = u32::try_from(demands.len()).expect("there are few");
            let pool = count * floor + more;
            let shares = divide(pool, floor, &demands);
            prop_assert_eq!(shares.iter().sum::<u32>(), pool);
            for (share, demand) in shares.iter().zip(&demands) {
                prop_assert!(*share >= floor);
                let is_short = share < demand;
                let most = shares.iter().max().copied().unwrap_or(0);
                prop_assert!(!is_short || most <= share + 1, "{:?} for {:?}", shares, demands);
            }
        }
    }
}
