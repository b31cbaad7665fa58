//! How far a node goes without the others' knowing, and what that comes to.

use tidegate_algorithms::{Percent, Quota};

use crate::capacity::capacity;

/// What one node may have admitted that not every region has been told of: its part of `slack` of
/// what is left, at least 1.
pub(super) fn budget(left: u64, slack: Percent, members: u32) -> u64 {
    let parts = 100 * u128::from(members.max(1));
    let part = (u128::from(left) * u128::from(slack.0)).div_ceil(parts);
    u64::try_from(part).unwrap_or(u64::MAX).max(1)
}

/// The most that `members` nodes ever admit together above an `eventual` limit, what it tolerates by
/// itself (`soft`, `elastic`) left aside, if no request costs more than `most_cost`.
///
/// Each node holds back once it has admitted its budget without word from the store that it was
/// written, so no more than all budgets together can be unknown to the others. Totals that come late,
/// twice, out of order or from another region change nothing in that. What can: a node that dies
/// takes with it what it had not told, at most its budget; and for as long as nodes differ about
/// their number, their budgets add up to more, at most `slack` of the limit for each node that has
/// just begun.
pub fn overshoot_bound(quota: &Quota, members: u32, slack: Percent, most_cost: u64) -> u64 {
    if quota.limit() == 0 {
        return 0;
    }
    let whole = capacity(quota).saturating_add(quota.most_extra());
    let most = budget(whole, slack, members).max(most_cost);
    most.saturating_mul(u64::from(members.max(1)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tidegate_algorithms::{Algorithm, Allowance, QuotaSpec};

    use super::*;

    fn check(limit: u64, members: u32, slack: u32, expected: u64) {
        let quota = Quota::new(&QuotaSpec {
            limit,
            window: Duration::from_mins(1),
            algorithm: Algorithm::FixedWindow,
            allowance: Allowance::Hard,
        })
        .unwrap();
        assert_eq!(
            overshoot_bound(&quota, members, Percent(slack), 1),
            expected,
            "{limit} among {members} with {slack} %"
        );
    }

    #[test]
    fn the_bound_is_the_slack_rounded_up_for_each_node() {
        check(10_000, 4, 25, 2_500);
        check(10_000, 1, 25, 2_500);
        check(10, 4, 25, 4);
        check(0, 4, 25, 0);
        check(100, 0, 100, 100);
    }
}
