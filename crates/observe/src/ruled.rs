//! What each rule made of a request.

use tidegate_limiter::{Hits, LimitStatus, Mode, Ruling, Verdict};
use tidegate_rules::RuleId;

use crate::LimiterRequest;
use crate::counts::ReferenceCounts;
use crate::rule_table::Outcome;

/// What one rule, or a limit that came with the request, made of one descriptor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ruled<'a> {
    /// `None` for a limit that came with the request.
    pub(crate) rule: Option<RuleId>,
    /// Which descriptor.
    pub(crate) descriptor: usize,
    pub(crate) outcome: Outcome,
    /// What the descriptor asked for.
    pub(crate) hits: u64,
    /// The limit of the rule that spoke the gravest word.
    limit: LimitStatus<'a>,
}

/// Calls `then` for each descriptor that limits applied to.
#[inline]
pub(crate) fn each<'a>(
    request: &LimiterRequest<'_>,
    verdict: &'a Verdict,
    mut then: impl FnMut(&Ruled<'a>),
) {
    let limits = verdict.limits();
    let mut all = limits
        .filter(|limit| limit.ruling() != Ruling::Replaced)
        .map(|limit| Ruled::new(request, limit));
    let Some(mut last) = all.next() else { return };
    for next in all {
        // The limits of a descriptor stand together, and all are of one rule.
        if last.descriptor == next.descriptor {
            last = last.graver(next);
        } else {
            then(&last);
            last = next;
        }
    }
    then(&last);
}

// === impl Ruled ===

impl<'a> Ruled<'a> {
    #[inline]
    fn new(request: &LimiterRequest<'_>, limit: LimitStatus<'a>) -> Self {
        let descriptor = limit.descriptor();
        let (outcome, hits) = match request.descriptors.get(descriptor).map(|it| it.hits) {
            // Whoever gives back is not refused.
            Some(Hits::Refund(_)) => (Outcome::Allowed, 0),
            Some(Hits::Take(hits)) => (outcome(&limit), hits),
            Some(Hits::OfRequest) | None => (outcome(&limit), request.hits.max(1)),
        };
        Self {
            rule: limit.rule_id(),
            descriptor,
            outcome,
            hits,
            limit,
        }
    }

    fn graver(self, other: Self) -> Self {
        let is_graver = other.outcome > self.outcome
            || (other.outcome == self.outcome && other.remaining() < self.remaining());
        if is_graver { other } else { self }
    }

    /// An unlimited one has more left than any other.
    fn remaining(&self) -> u64 {
        self.limit
            .decision()
            .map_or(u64::MAX, |decision| decision.remaining)
    }

    /// What envoyproxy/ratelimit would count: hits above the near threshold and up to the limit as
    /// near, hits above the limit as over, and all hits of an admitted request as within.
    ///
    /// A refused request is split as if it had come when what is left was left. Where refusals are
    /// counted, that is nothing, and all of its hits are over.
    pub(crate) fn reference(&self) -> ReferenceCounts {
        let hits = self.hits;
        let mut counts = ReferenceCounts::default();
        let Some(decision) = self.limit.decision() else {
            counts.within_limit = if self.outcome == Outcome::Refused {
                0
            } else {
                hits
            };
            return counts;
        };
        let threshold = self.limit.near_threshold().unwrap_or(decision.limit);
        if decision.is_allowed() {
            let used = decision.limit.saturating_sub(decision.remaining);
            counts.near_limit = used.saturating_sub(threshold).min(hits);
            counts.within_limit = hits;
        } else {
            let fitting = decision.remaining.min(hits);
            let above = decision.limit.saturating_sub(threshold);
            counts.near_limit = fitting.saturating_sub(decision.remaining.saturating_sub(above));
            counts.over_limit = hits - fitting;
            counts.shadow_mode = if self.outcome == Outcome::Shadowed {
                hits
            } else {
                0
            };
        }
        counts
    }
}

#[inline]
fn outcome(limit: &LimitStatus<'_>) -> Outcome {
    if limit.is_refused() {
        match (limit.mode(), limit.ruling()) {
            // A ban refuses whatever the mode.
            (Mode::Enforce | Mode::Quota, _) | (_, Ruling::Banned(_)) => Outcome::Refused,
            (Mode::Shadow, _) => Outcome::Shadowed,
        }
    } else if limit.is_over() {
        Outcome::Over
    } else if limit.is_near() {
        Outcome::Near
    } else {
        Outcome::Allowed
    }
}
