//! What was counted, added up over all cores.

use std::ops::AddAssign;
use std::time::Duration;

use crate::reloads::FailedReloads;
use crate::rule_table::Outcome;
use crate::ruled::Ruled;

/// What became of the requests that a rule applied to. Each request is in one of the five; a rule
/// that applies to several descriptors of a request counts each of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleCounts {
    /// The rule admitted them.
    pub allowed: u64,
    /// It admitted them, and was nearly used up.
    pub near: u64,
    /// It admitted them over its ordinary number, on a soft or an elastic allowance.
    pub over: u64,
    /// It would have refused them, were it not in shadow mode.
    pub shadowed: u64,
    /// It refused them.
    pub refused: u64,
    /// The hits that they asked for, in all.
    pub hits: u64,
}

/// What was counted for one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleReport {
    /// The domain.
    pub domain: String,
    /// The path of the rule, or `_other` for the rules past the most that are counted apart.
    pub rule: String,
    /// The counts.
    pub counts: RuleCounts,
}

/// What was counted for all requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Requests that a limit applied to, and that may pass.
    pub allowed: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Requests that pass only because the limiter as a whole is in shadow mode.
    pub shadowed: u64,
    /// Requests that no limit applied to.
    pub unmatched: u64,
    /// Those of them that named a domain without rules.
    pub unknown_domains: u64,
    /// Requests that made no sense.
    pub rejected: u64,
    /// Requests that the store could not decide.
    pub store_failures: u64,
    /// How often rules were put in force, the first time included.
    pub reloads: u64,
    /// How often rules were refused for their faults.
    pub failed_reloads: u64,
    /// When rules were last put in force, since the epoch.
    pub last_reload: Option<Duration>,
    /// The version of the rules in force, if they have numbers.
    pub rules_version: Option<u64>,
    /// The subjects whose last reload failed.
    pub failing: FailedReloads,
    /// Spans that were lost because they could not be sent.
    pub lost_spans: u64,
}

/// What envoyproxy/ratelimit counts for a rule, all in hits. Its `total_hits` is [`RuleCounts::hits`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReferenceCounts {
    pub(crate) over_limit: u64,
    pub(crate) near_limit: u64,
    pub(crate) within_limit: u64,
    pub(crate) shadow_mode: u64,
}

/// All that is counted for a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) own: RuleCounts,
    pub(crate) reference: ReferenceCounts,
}

// === impl RuleCounts ===

impl RuleCounts {
    /// All requests.
    pub const fn requests(&self) -> u64 {
        self.allowed
            .wrapping_add(self.near)
            .wrapping_add(self.over)
            .wrapping_add(self.shadowed)
            .wrapping_add(self.refused)
    }
}

impl AddAssign for RuleCounts {
    fn add_assign(&mut self, other: Self) {
        // Counters of a scrape wrap around; there is no better end to 2^64.
        self.allowed = self.allowed.wrapping_add(other.allowed);
        self.near = self.near.wrapping_add(other.near);
        self.over = self.over.wrapping_add(other.over);
        self.shadowed = self.shadowed.wrapping_add(other.shadowed);
        self.refused = self.refused.wrapping_add(other.refused);
        self.hits = self.hits.wrapping_add(other.hits);
    }
}

// === impl ReferenceCounts ===

impl AddAssign for ReferenceCounts {
    fn add_assign(&mut self, other: Self) {
        self.over_limit = self.over_limit.wrapping_add(other.over_limit);
        self.near_limit = self.near_limit.wrapping_add(other.near_limit);
        self.within_limit = self.within_limit.wrapping_add(other.within_limit);
        self.shadow_mode = self.shadow_mode.wrapping_add(other.shadow_mode);
    }
}

// === impl Counts ===

impl Counts {
    /// What one rule made of one request.
    pub(crate) fn of(ruled: &Ruled<'_>) -> Self {
        let mut own = RuleCounts {
            hits: ruled.hits,
            ..RuleCounts::default()
        };
        *match ruled.outcome {
            Outcome::Allowed => &mut own.allowed,
            Outcome::Near => &mut own.near,
            Outcome::Over => &mut own.over,
            Outcome::Shadowed => &mut own.shadowed,
            Outcome::Refused => &mut own.refused,
        } = 1;
        Self {
            own,
            reference: ruled.reference(),
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.own += other.own;
        self.reference += other.reference;
    }
}
