//! What one limit said.

use std::time::Duration;
use std::{ptr, slice};

use tidegate_algorithms::{Algorithm, Decision, Outcome, Quota, Refill, Retry, Standing};
use tidegate_rules::{Limit, Rule, RuleId, Terms};
use tidegate_store::{Consistency, Mode};

use super::{Answer, DecisionPath, Verdict};
use crate::bill::consistency;
use crate::failure;
use crate::matched::{Applied, Force, Source};

/// One limit that applies to a request, and what it said.
#[derive(Clone, Copy, Debug)]
pub struct LimitStatus<'a> {
    verdict: &'a Verdict,
    applied: &'a Applied,
    ruling: Ruling<'a>,
}

/// Where a limit comes from.
#[derive(Clone, Copy, Debug)]
pub enum Origin<'a> {
    /// A rule, and which of its limits.
    Rule {
        /// The rule.
        rule: &'a Rule,
        /// The limit.
        limit: &'a Limit,
    },
    /// It came with the request.
    Override(&'a Quota),
}

/// What a limit said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling<'a> {
    /// It was decided, by the store or, if that failed, by this node alone.
    Decided(&'a Decision),
    /// The store failed, and the limit's `on_failure` answers.
    Undecided(Answer),
    /// It admits everything and counts nothing.
    Unlimited,
    /// It was not asked: another limit of the request replaces it.
    Replaced,
    /// It was not asked: its descriptor is banned until then.
    Banned(Retry),
}

/// An iterator over limits and what they said.
#[derive(Clone, Debug)]
pub struct LimitStatuses<'a> {
    verdict: &'a Verdict,
    applied: slice::Iter<'a, Applied>,
    decisions: slice::Iter<'a, Decision>,
}

/// How long a refusal lasts, in an order that can be compared: what is no refusal lasts shortest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Patience {
    Not,
    For(Duration),
    Forever,
}

// === impl LimitStatus ===

impl<'a> LimitStatus<'a> {
    /// What the limit said.
    pub const fn ruling(&self) -> Ruling<'a> {
        self.ruling
    }

    /// Which descriptor of the request it applies to, counted from 0.
    pub fn descriptor(&self) -> usize {
        usize::from(self.applied.descriptor)
    }

    /// The number of its rule among the [rules](Verdict::rules) of the verdict; `None` for a limit
    /// that came with the request. Cheaper than [`origin`](Self::origin).
    pub const fn rule_id(&self) -> Option<RuleId> {
        match self.applied.source {
            Source::Rule { rule, .. } => Some(rule),
            Source::Override(_) => None,
        }
    }

    /// Its place among the limits of its rule, counted from 0; 0 for a limit that came with the request.
    pub const fn limit_index(&self) -> u16 {
        match self.applied.source {
            Source::Rule { limit, .. } => limit,
            Source::Override(_) => 0,
        }
    }

    /// The part of the system that decided on it.
    pub fn path(&self) -> DecisionPath {
        match self.ruling {
            Ruling::Banned(_) => DecisionPath::Ban,
            Ruling::Unlimited | Ruling::Replaced => DecisionPath::None,
            Ruling::Undecided(_) => DecisionPath::Policy,
            Ruling::Decided(_) if self.verdict.failure().is_some() => {
                DecisionPath::without_store(self.consistency())
            }
            Ruling::Decided(_) => {
                let source = self.verdict.receipt().map(|receipt| receipt.source);
                DecisionPath::of(source.unwrap_or_default(), self.consistency())
            }
        }
    }

    /// How nodes share it. One that came with the request goes by the limiter's word.
    fn consistency(&self) -> Consistency {
        let said = match self.origin() {
            Origin::Rule { limit, .. } => limit.consistency().map(consistency),
            Origin::Override(_) => None,
        };
        said.unwrap_or(self.verdict.consistency)
    }

    /// What its refusal means for the request. The limits of a refund count as shadow.
    pub const fn mode(&self) -> Mode {
        self.applied.mode
    }

    /// Where the limit comes from.
    #[inline]
    pub fn origin(&self) -> Origin<'a> {
        self.verdict.origin(self.applied)
    }

    /// The numbers of the limit; `None` for an unlimited one.
    pub fn quota(&self) -> Option<&'a Quota> {
        match self.origin() {
            Origin::Rule { limit, .. } => match limit.terms() {
                Terms::Quota(quota) => Some(quota),
                Terms::Unlimited => None,
            },
            Origin::Override(quota) => Some(quota),
        }
    }

    /// The name that the rules give the limit.
    pub fn name(&self) -> Option<&'a str> {
        match self.origin() {
            Origin::Rule { limit, .. } => limit.name(),
            Origin::Override(_) => None,
        }
    }

    /// Whether clients are not told of the limit (`announce: false`).
    #[inline]
    pub fn is_hidden(&self) -> bool {
        match self.origin() {
            Origin::Rule { limit, .. } => limit.is_hidden(),
            Origin::Override(_) => false,
        }
    }

    /// The decision, if there is one: the store's or, if that failed, this node's alone.
    pub const fn decision(&self) -> Option<&'a Decision> {
        match self.ruling {
            Ruling::Decided(decision) => Some(decision),
            Ruling::Undecided(_) | Ruling::Unlimited | Ruling::Replaced | Ruling::Banned(_) => None,
        }
    }

    /// Whether the limit by itself would refuse, whatever its mode makes of that.
    pub fn is_refused(&self) -> bool {
        match self.ruling {
            Ruling::Decided(decision) => !decision.is_allowed(),
            Ruling::Undecided(answer) => answer == Answer::Refused,
            Ruling::Banned(_) => true,
            Ruling::Unlimited | Ruling::Replaced => false,
        }
    }

    /// Whether the limit admits, but with more of it used up than the near ratio.
    pub fn is_near(&self) -> bool {
        self.decision().is_some_and(|decision| {
            let used = decision.limit.saturating_sub(decision.remaining);
            decision.is_allowed() && used > self.verdict.near.threshold(decision.limit)
        })
    }

    /// The use of the limit above which it is near, if it was decided.
    pub fn near_threshold(&self) -> Option<u64> {
        let decision = self.decision()?;
        Some(self.verdict.near.threshold(decision.limit))
    }

    /// Whether the limit admits, but over its ordinary number: on a soft or an elastic allowance.
    pub fn is_over(&self) -> bool {
        let standing = |decision: &Decision| match decision.outcome {
            Outcome::Allowed { standing, .. } => Some(standing),
            Outcome::Denied { .. } => None,
        };
        self.decision().and_then(standing) == Some(Standing::Over)
    }

    /// When the limit would admit the request, if it refused: a second after one that `on_failure` refused
    /// for want of a store.
    pub fn retry(&self) -> Option<Retry> {
        match self.ruling {
            Ruling::Banned(retry) => Some(retry),
            Ruling::Decided(decision) => match decision.outcome {
                Outcome::Denied { retry } => Some(retry),
                Outcome::Allowed { .. } => None,
            },
            Ruling::Undecided(Answer::Refused) => Some(Retry::After(failure::RETRY_AFTER)),
            Ruling::Undecided(Answer::Allowed) | Ruling::Unlimited | Ruling::Replaced => None,
        }
    }

    /// How long until the limit has room for more than it has now, if nothing more is charged: after
    /// a refusal that has an end, its end. Never early; late by less than the time between two
    /// refills of a bucket, and otherwise no later than the reset. `None` if it was not decided.
    pub fn more_after(&self) -> Option<Duration> {
        let decision = self.decision()?;
        if let Some(Retry::After(wait)) = self.retry() {
            return Some(wait);
        }
        let refill = self.quota().and_then(between_refills);
        Some(refill.map_or(decision.reset_after, |it| it.min(decision.reset_after)))
    }

    pub(super) const fn takes_part(&self) -> bool {
        matches!(self.ruling, Ruling::Decided(_) | Ruling::Undecided(_))
    }

    pub(super) fn patience(&self) -> Patience {
        Patience::of(self.retry())
    }

    /// The one of two refusals that lasts longer, the first of equals.
    pub(super) fn later(self, other: Self) -> Self {
        if other.patience() > self.patience() {
            other
        } else {
            self
        }
    }
}

/// The same limit of the same verdict.
impl PartialEq for LimitStatus<'_> {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self.applied, other.applied)
    }
}

impl Eq for LimitStatus<'_> {}

// === impl Patience ===

impl Patience {
    pub(super) const fn of(retry: Option<Retry>) -> Self {
        match retry {
            Some(Retry::Never) => Self::Forever,
            Some(Retry::After(wait)) => Self::For(wait),
            None => Self::Not,
        }
    }
}

// === impl LimitStatuses ===

impl<'a> LimitStatuses<'a> {
    /// The decisions are those of the charged limits among `applied`, in the same order.
    pub(super) fn new(
        verdict: &'a Verdict,
        applied: &'a [Applied],
        decisions: &'a [Decision],
    ) -> Self {
        Self {
            verdict,
            applied: applied.iter(),
            decisions: decisions.iter(),
        }
    }
}

impl<'a> Iterator for LimitStatuses<'a> {
    type Item = LimitStatus<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let applied = self.applied.next()?;
        let ruling = match applied.force {
            Force::Unlimited => Ruling::Unlimited,
            Force::Replaced => Ruling::Replaced,
            Force::Banned => Ruling::Banned(
                self.verdict
                    .ban_on(usize::from(applied.descriptor))
                    .unwrap_or(Retry::Never),
            ),
            Force::Undecided(answer) => Ruling::Undecided(answer),
            Force::Charged => match self.decisions.next() {
                Some(decision) => Ruling::Decided(decision),
                // A store that leaves one out has not refused it.
                None => Ruling::Undecided(Answer::Allowed),
            },
        };
        Some(LimitStatus {
            verdict: self.verdict,
            applied,
            ruling,
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.applied.size_hint()
    }
}

impl ExactSizeIterator for LimitStatuses<'_> {}

/// The longest time between two refills of a bucket, rounded up. `None` for what counts by the window.
fn between_refills(quota: &Quota) -> Option<Duration> {
    match quota.algorithm() {
        Algorithm::TokenBucket {
            refill: Refill::Interval,
            ..
        } => Some(quota.window()),
        Algorithm::TokenBucket { .. } | Algorithm::LeakyBucket { .. } => {
            let nanos = quota
                .window()
                .as_nanos()
                .checked_div(quota.limit().into())?;
            let rounded_up = u64::try_from(nanos).ok()?.checked_add(1)?;
            Some(Duration::from_nanos(rounded_up))
        }
        Algorithm::FixedWindow
        | Algorithm::SlidingLog { .. }
        | Algorithm::SlidingCounter { .. } => None,
    }
}
