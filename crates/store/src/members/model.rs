//! Members and plans in memory, written as simply as possible: a reference for the stores and a store for
//! simulations.

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
    plans: BTreeMap<u64, Division>,
}

/// A plan with the parts of all holders.
#[derive(Clone, Debug)]
struct Division {
    parts: u32,
    members: u32,
    reserve: u32,
    /// The parts of nodes that were alone and are not back yet.
    absent: u32,
    shares: BTreeMap<NodeId, u32>,
}

// === impl ModelMembers ===

impl ModelMembers {
    /// Handles a heartbeat at that time.
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
            plans.push(limit.plans(want, beat, pace, &members, now));
        }
        Pulse {
            now,
            members: u32::try_from(members.len()).unwrap_or(u32::MAX),
            previous,
            plans,
        }
    }

    /// Removes a member.
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
        beat: &Beat<'_>,
        pace: Duration,
        members: &[NodeId],
        now: Time,
    ) -> Plans {
        let epoch = u64::try_from(u128::from(now.nanos()) / self.length.as_nanos()).unwrap_or(0);
        let current = self.plan(epoch, want, beat, beat.alone_among, members);
        let is_waiting = self.plans.get(&epoch).is_some_and(|plan| plan.absent > 0);
        let ahead = if is_waiting { pace / 2 } else { pace * 2 };
        let is_due = self.starts(epoch + 1).since(now) <= ahead;
        let next = if is_due || self.plans.contains_key(&(epoch + 1)) {
            self.plan(epoch + 1, want, beat, 0, members)
        } else {
            None
        };
        Plans { current, next }
    }

    fn plan(
        &mut self,
        epoch: u64,
        want: &Want,
        beat: &Beat<'_>,
        alone_among: u32,
        members: &[NodeId],
    ) -> Option<Plan> {
        let last = self.plans.last_key_value().map(|(last, _)| *last);
        let (starts, ends) = (self.starts(epoch), self.starts(epoch + 1));
        if !self.plans.contains_key(&epoch) {
            let is_early = starts < self.from;
            let is_late = last.is_some_and(|last| epoch <= last);
            if !members.contains(&beat.node) || is_early || is_late {
                return None;
            }
            let division = self.divide(epoch, want, alone_among, members);
            self.plans.insert(epoch, division);
            // The demand of nodes that left does not count, also if they return.
            self.demands.retain(|node, _| members.contains(node));
        }
        let division = self.plans.get_mut(&epoch)?;
        if alone_among > 0 && members.contains(&beat.node) {
            division.claim(beat.node);
        }
        Some(Plan {
            starts,
            ends,
            parts: division.parts,
            share: division.shares.get(&beat.node).copied().unwrap_or(0),
            reserve: division.reserve,
            members: division.members,
        })
    }

    fn divide(&self, epoch: u64, want: &Want, alone_among: u32, members: &[NodeId]) -> Division {
        let demand = |node: &NodeId| self.demands.get(node).copied().unwrap_or(0);
        let demands: Vec<u32> = members.iter().map(demand).collect();
        let count = u32::try_from(members.len()).unwrap_or(u32::MAX);
        let before = self.plans.get(&(epoch.wrapping_sub(1)));
        let before = before.filter(|_| want.memory > Duration::ZERO);
        let (reserve, shares) = if alone_among > 0 {
            let reserve = Plan::least_reserve(want.parts).min(want.parts);
            let share = (want.parts - reserve) / count.max(alone_among);
            (reserve, vec![share; members.len()])
        } else {
            let targets = targets(want.parts, &demands);
            match before {
                Some(before) => before.changed_to(want.parts, members, &targets, &demands),
                None => (want.parts - targets.iter().sum::<u32>(), targets),
            }
        };
        let missing = alone_among.saturating_sub(count);
        Division {
            parts: want.parts,
            members: count.max(alone_among),
            reserve,
            absent: missing * shares.first().copied().unwrap_or(0),
            shares: members.iter().copied().zip(shares).collect(),
        }
    }

    fn starts(&self, epoch: u64) -> Time {
        let nanos = self.length.as_nanos() * u128::from(epoch);
        Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

// === impl Division ===

impl Division {
    /// Gives a node that was alone its part of a plan that was made before it was back.
    fn claim(&mut self, node: NodeId) {
        let share = self.shares.values().next().copied().unwrap_or(0);
        if self.absent > 0 && !self.shares.contains_key(&node) {
            self.absent -= share;
            self.shares.insert(node, share);
        }
    }

    /// The reserve and the shares of the epoch after this one, of a limit that remembers. No holder has more
    /// than it had, but for parts that nobody had: the larger parts of both epochs are no more than the limit
    /// together.
    fn changed_to(
        &self,
        parts: u32,
        members: &[NodeId],
        targets: &[u32],
        demands: &[u32],
    ) -> (u32, Vec<u32>) {
        let scaled = |had: u32| u64::from(had) * u64::from(parts);
        let floor = |had: u32| narrow(scaled(had) / u64::from(self.parts));
        let ceil = |had: u32| narrow(scaled(had).div_ceil(u64::from(self.parts)));
        let holders = self.shares.values().copied();
        let holders = holders.chain([self.reserve, self.absent]);
        let mut free = parts.saturating_sub(holders.map(ceil).sum());
        let least = Plan::least_reserve(parts);
        let rounded_off = least.saturating_sub(floor(self.reserve)).min(free);
        let reserve = floor(self.reserve) + rounded_off;
        free -= rounded_off;

        let had = |node| floor(self.shares.get(node).copied().unwrap_or(0));
        let mut shares: Vec<u32> = members.iter().map(had).collect();
        let lacks = |(share, target): (&u32, &u32)| target.saturating_sub(*share);
        let mut needed: u32 = shares.iter().zip(targets).map(lacks).sum();
        let is_strict = Plan::is_too_small(parts, narrow(members.len() as u64));
        // More than there is: what idle members hold is missing in the reserve.
        let demand: u64 = demands.iter().map(|demand| u64::from(*demand)).sum();
        let of_reserve = parts - targets.iter().sum::<u32>();
        let lacks_reserve = if demand > u64::from(parts) {
            of_reserve.saturating_sub(reserve)
        } else {
            0
        };
        if needed + lacks_reserve > free || is_strict {
            for (share, target) in shares.iter_mut().zip(targets) {
                // A difference that chance explains is not worth the epoch in which nobody has those parts.
                let is_noise = *target > 0 && target.saturating_add(share.isqrt()) >= *share;
                if *target < *share && !is_noise {
                    *share = *target;
                }
            }
        }
        for (share, target) in shares.iter_mut().zip(targets) {
            let need = target.saturating_sub(*share);
            if need > 0 {
                let grows = u64::from(free) * u64::from(need) / u64::from(needed);
                let grows = need.min(narrow(grows));
                *share += grows;
                free -= grows;
                needed -= need;
            }
        }
        let missing: u32 = shares.iter().zip(targets).map(lacks).sum();
        // The reserve is in use as well: of what is not idle it gives up no more than a little at a time,
        // because nobody has those parts in the next epoch.
        let little = (parts / 64).max(1);
        let idle = narrow(u64::from(parts).saturating_sub(demand));
        let given_up = missing
            .min(little.max(idle))
            .min(reserve.saturating_sub(least));
        (reserve - given_up + free, shares)
    }
}

fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The shares that members should have: what is asked of each or, if that is more than there is, its
/// proportion; a little less, so that what chance adds elsewhere is in the reserve. The rest is the
/// reserve.
pub fn targets(parts: u32, demands: &[u32]) -> Vec<u32> {
    let count = narrow(demands.len() as u64);
    let pool = u64::from(parts.saturating_sub(Plan::least_reserve(parts)));
    let demand: u64 = demands.iter().map(|demand| u64::from(*demand)).sum();
    let target = |wanted: &u32| {
        let wanted = u64::from(*wanted);
        let part = narrow(if demand <= pool {
            wanted
        } else {
            pool * wanted / demand
        });
        part - part.isqrt()
    };
    if Plan::is_too_small(parts, count) {
        vec![0; demands.len()]
    } else {
        demands.iter().map(target).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn check_change(before: &Division, parts: u32, demands: &[u32]) {
        let members: Vec<NodeId> = (1..).map(NodeId).take(demands.len()).collect();
        let (reserve, shares) =
            before.changed_to(parts, &members, &targets(parts, demands), demands);
        let of_parts = |had: u32| f64::from(had) * f64::from(parts) / f64::from(before.parts);
        let mut largest = of_parts(before.reserve).max(f64::from(reserve));
        for (node, had) in &before.shares {
            let place = members.iter().position(|member| member == node);
            let has = place.map_or(0, |place| shares[place]);
            largest += of_parts(*had).max(f64::from(has));
        }
        let is_new = |node: &NodeId| !before.shares.contains_key(node);
        let new = members.iter().zip(&shares).filter(|(node, _)| is_new(node));
        largest += new.map(|(_, share)| f64::from(*share)).sum::<f64>();
        assert!(largest < f64::from(parts) + 0.001, "{largest} of {parts}");
    }

    proptest! {
        #[test]
        fn targets_leave_a_reserve(demands in vec(0_u32..4_000, 1..12), parts in 1_u32..2_000) {
            let targets = targets(parts, &demands);
            let sum: u32 = targets.iter().sum();
            prop_assert!(sum + Plan::least_reserve(parts) <= parts);
            for (target, demand) in targets.iter().zip(&demands) {
                prop_assert!(target <= demand);
            }
        }

        /// In two epochs that follow each other, the larger part of each holder is no more than the limit
        /// together.
        #[test]
        fn a_change_gives_nobody_what_another_had(
            shares in vec(0_u32..200, 1..8), left in 1_u32..200, free in 0_u32..50,
            demands in vec(0_u32..1_000, 1..8), scale in 1_u32..4,
        ) {
            let sum: u32 = shares.iter().sum();
            let before = Division {
                parts: sum + left + free,
                members: 1,
                reserve: left,
                absent: 0,
                shares: (1..).map(NodeId).zip(shares).collect(),
            };
            check_change(&before, before.parts, &demands);
            check_change(&before, before.parts * scale / 2 + 1, &demands);
        }
    }

    #[test]
    fn a_busy_reserve_is_handed_out_a_little_at_a_time() {
        let mut division = Division {
            parts: 320,
            members: 2,
            reserve: 320,
            absent: 0,
            shares: BTreeMap::new(),
        };
        let (members, demands) = ([NodeId(1), NodeId(2)], [200, 200]);
        let mut used = Vec::new();
        for _ in 0..80 {
            let targets = targets(320, &demands);
            let (reserve, shares) = division.changed_to(320, &members, &targets, &demands);
            used.push(reserve + shares.iter().sum::<u32>());
            division.reserve = reserve;
            division.shares = members.into_iter().zip(shares).collect();
        }
        assert!(used.iter().all(|used| *used >= 315), "{used:?}");
        assert_eq!(
            division.shares.values().copied().collect::<Vec<_>>(),
            [143, 143]
        );
    }
}
