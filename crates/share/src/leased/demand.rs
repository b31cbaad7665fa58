//! The demand for one counter: what its requests spend on this node.
//!
//! Only permits that were really spent count. A request that another limit denied gives its permits back, and its
//! demand with them, so nobody can make a node draw permits that are not spent.

use std::time::Duration;

use tidegate_algorithms::Time;

/// Requests within the life of a loan that make a key hot: from then on drawing ahead saves calls. With two, in a
/// simulation, few more of 100,000 callers by Zipf's law were answered from memory, and fewer of a million:
/// permits of callers that do not come again have to be given back.
pub(super) const HOT: u64 = 3;

/// Requests within a life that keep a key hot.
const STAYS_HOT: u64 = 2;

/// The demand for one counter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    /// Start of the current measurement.
    since: Time,
    /// Requests since then.
    requests: u64,
    /// Permits that they spent.
    spent: u64,
    /// Permits spent in a life, by the last measurement.
    per_life: u64,
    is_hot: bool,
}

// === impl Demand ===

impl Demand {
    /// No demand yet.
    pub(super) const fn new(now: Time) -> Self {
        Self {
            since: now,
            requests: 0,
            spent: 0,
            per_life: 0,
            is_hot: false,
        }
    }

    /// The demand of a key that has just become hot.
    pub(super) const fn hot(since: Time, requests: u64, spent: u64) -> Self {
        Self {
            since,
            requests,
            spent,
            per_life: 0,
            is_hot: true,
        }
    }

    /// Counts a request that spent `cost`.
    #[inline]
    pub(super) const fn add(&mut self, cost: u64) {
        self.requests = self.requests.saturating_add(1);
        self.spent = self.spent.saturating_add(cost);
    }

    /// Takes back a request that another limit denied.
    pub(super) const fn remove(&mut self, cost: u64) {
        self.requests = self.requests.saturating_sub(1);
        self.spent = self.spent.saturating_sub(cost);
    }

    /// The permits spent in a life, as last measured.
    pub(super) fn per_life(&self) -> u64 {
        self.per_life.max(self.spent)
    }

    /// The permits spent within `span`, at the rate of the last measurement.
    pub(super) fn within(&self, span: Duration, life: Duration) -> u64 {
        let permits = u128::from(self.per_life()) * span.as_nanos() / life.as_nanos().max(1);
        u64::try_from(permits).unwrap_or(u64::MAX)
    }

    /// The time in which so many permits are spent.
    pub(super) fn time_of(&self, permits: u64, life: Duration) -> Duration {
        let nanos = life.as_nanos() * u128::from(permits) / u128::from(self.per_life().max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Starts a new measurement if the current one is a life old, and returns true if the key is hot.
    ///
    /// A measurement is never extrapolated to a longer time: a node asks for no more than it has spent, so its
    /// loans grow at most twofold each.
    pub(super) fn measure(&mut self, now: Time, life: Duration) -> bool {
        let elapsed = now.since(self.since);
        if elapsed >= life {
            let in_a_life = |n: u64| {
                let n = u128::from(n) * life.as_nanos() / elapsed.as_nanos().max(1);
                u64::try_from(n).unwrap_or(u64::MAX)
            };
            let enough = if self.is_hot { STAYS_HOT } else { HOT };
            *self = Self {
                per_life: in_a_life(self.spent),
                is_hot: in_a_life(self.requests) >= enough,
                ..Self::new(now)
            };
        } else if self.requests >= HOT {
            self.is_hot = true;
        }
        self.is_hot
    }
}
