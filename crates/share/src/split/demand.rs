//! The demand of a node's callers for one limit.

use std::time::Duration;

use tidegate_algorithms::{Quota, Time};
use tidegate_store::MAX_DEMAND;

use super::cut::parts;

/// An estimate of how much callers ask of a limit, from two samples that follow each other.
///
/// A sample takes half of the estimate's span, so that traffic that moved away is forgotten after one span.
#[derive(Debug)]
pub(super) struct DemandEstimate {
    before: Sample,
    current: Sample,
    /// The end of the current sample so far, by the node's clock.
    at: Time,
    /// The number of heartbeats in a row for which nothing was requested.
    idle: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    asked: u64,
    span: Duration,
}

// === impl DemandEstimate ===

impl DemandEstimate {
    pub(super) fn new(at: Time) -> Self {
        Self {
            before: Sample::default(),
            current: Sample::default(),
            at,
            idle: 0,
        }
    }

    /// The number of heartbeats in a row for which nothing was requested.
    pub(super) const fn idle(&self) -> u32 {
        self.idle
    }

    /// Adds what was asked for until `at`. The estimate spans two heartbeats, or half an epoch if that is
    /// longer: shares follow traffic before the second edge after it moved, and not every accident.
    pub(super) fn add(&mut self, asked: u64, at: Time, heartbeat: Duration, epoch: Duration) {
        let half = heartbeat.max(epoch / 4);
        // A heartbeat that comes early, because a limit is new, may come in less than half the time.
        if self.current.span >= half.saturating_sub(heartbeat / 4) {
            self.before = std::mem::take(&mut self.current);
        }
        self.current.asked = self.current.asked.saturating_add(asked);
        self.current.span = self.current.span.saturating_add(at.since(self.at));
        self.at = at;
        self.idle = if asked == 0 {
            self.idle.saturating_add(1)
        } else {
            0
        };
    }

    /// The demand in a window, in parts of the limit, rounded up.
    pub(super) fn in_parts(&self, quota: &Quota, heartbeat: Duration) -> u32 {
        let asked = self.before.asked.saturating_add(self.current.asked);
        let span = self.before.span.saturating_add(self.current.span);
        let span = span.max(heartbeat).as_nanos().max(1);
        let in_window = u128::from(asked).saturating_mul(quota.window().as_nanos());
        let demand = in_window.saturating_mul(u128::from(parts(quota)));
        let demand = demand.div_ceil(u128::from(quota.limit().max(1)).saturating_mul(span));
        u32::try_from(demand).unwrap_or(MAX_DEMAND).min(MAX_DEMAND)
    }
}

#[cfg(test)]
mod tests {
    use tidegate_algorithms::{Algorithm, Allowance, QuotaSpec};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// What a node with a heartbeat every second tells, if it was asked so much before each.
    fn check(window: Duration, asked: &[u64], expected: &[u32]) {
        let spec = QuotaSpec {
            limit: 100,
            window,
            algorithm: Algorithm::FixedWindow,
            allowance: Allowance::Hard,
        };
        let quota = Quota::new(&spec).expect("it is valid");
        let mut at = Time::from_micros(1);
        let mut estimate = DemandEstimate::new(at);
        let demands = asked.iter().map(|asked| {
            at = at.plus(SECOND);
            estimate.add(*asked, at, SECOND, window);
            estimate.in_parts(&quota, SECOND)
        });
        assert_eq!(demands.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn demand_follows_within_two_heartbeats() {
        check(SECOND, &[0, 40, 40, 40, 0, 0], &[0, 20, 40, 40, 20, 0]);
    }

    #[test]
    fn demand_of_a_long_window_follows_within_half_of_it() {
        let asked = [0, 0, 0, 0, 10, 10, 10, 10, 10, 10, 0, 0, 0, 0, 0, 0];
        let demands = [0, 0, 0, 0, 20, 34, 75, 80, 84, 100, 80, 67, 25, 20, 17, 0];
        check(SECOND * 10, &asked, &demands);
    }
}
