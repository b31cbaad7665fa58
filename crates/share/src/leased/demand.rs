//! How much a key is asked for: whether it is hot, and how many permits it takes in the life of a loan.

use std::time::Duration;

use tidegate_algorithms::Time;

/// A key is hot from so many requests within the life of a loan on: then drawing ahead saves calls. With
/// two, in a simulation, few more of 100,000 callers by Zipf's law were answered from memory, and fewer of
/// a million: what is drawn for those who do not come again has to be given back.
pub(super) const HOT: u64 = 3;

/// It stays so with this many.
const STAYS_HOT: u64 = 2;

/// What is wanted grows by this factor at a time, for the first requests of a burst say little.
const GROWTH: u64 = 4;

/// The demand for one key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    /// Since when it is measured.
    since: Time,
    /// Requests since then.
    asks: u64,
    /// Permits that they asked for.
    asked: u64,
    /// Permits that it takes in a life.
    wanted: u64,
    is_hot: bool,
}

// === impl Demand ===

impl Demand {
    /// Nothing asked for yet.
    pub(super) const fn new(now: Time) -> Self {
        Self {
            since: now,
            asks: 0,
            asked: 0,
            wanted: 0,
            is_hot: false,
        }
    }

    /// Begins with what was seen since `since`, which made the key hot.
    pub(super) const fn seen(since: Time, asks: u64, asked: u64) -> Self {
        Self {
            since,
            asks,
            asked,
            wanted: 0,
            is_hot: true,
        }
    }

    #[inline]
    pub(super) const fn note(&mut self, cost: u64) {
        self.asks = self.asks.saturating_add(1);
        self.asked = self.asked.saturating_add(cost);
    }

    /// What it takes in a life, as last measured.
    pub(super) const fn wanted(&self) -> u64 {
        self.wanted
    }

    /// How long it takes until so many permits are asked for.
    pub(super) fn time_of(&self, permits: u64, life: Duration) -> Duration {
        let nanos = life.as_nanos() * u128::from(permits) / u128::from(self.wanted.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How many permits are asked for in such a time.
    pub(super) fn in_time(&self, span: Duration, life: Duration) -> u64 {
        let permits = u128::from(self.wanted) * span.as_nanos() / life.as_nanos().max(1);
        u64::try_from(permits).unwrap_or(u64::MAX)
    }

    /// How many permits to draw for a life; `None` if the key is not hot.
    pub(super) fn plan(&mut self, now: Time, life: Duration) -> Option<u64> {
        let elapsed = now.since(self.since);
        let in_a_life = |n: u64| {
            let n = u128::from(n) * life.as_nanos() / elapsed.as_nanos().max(1);
            u64::try_from(n).unwrap_or(u64::MAX)
        };
        if elapsed >= life {
            let enough = if self.is_hot { STAYS_HOT } else { HOT };
            *self = Self {
                wanted: in_a_life(self.asked),
                is_hot: in_a_life(self.asks) >= enough,
                ..Self::new(now)
            };
        } else if self.asks >= HOT {
            let most = self.asked.saturating_mul(GROWTH);
            self.wanted = self.wanted.max(in_a_life(self.asked).min(most));
            self.is_hot = true;
        }
        self.is_hot.then_some(self.wanted)
    }
}
