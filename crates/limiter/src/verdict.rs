//! What came of a request, and why.

mod limit_status;
mod path;
mod status;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::Guard;
use smallvec::SmallVec;
use tidegate_algorithms::{Outcome, Quota, Retry, Time};
use tidegate_rules::RuleSet;
use tidegate_store::{Admission, Consistency, Decisions, Mode, Receipt, StoreError};

use crate::config::{GlobalShadow, LimiterConfig, NearRatio};
use crate::failure::Failed;
use crate::matched::{Applied, Source};

pub use limit_status::{LimitStatus, LimitStatuses, Origin, Ruling};
pub use path::DecisionPath;
pub use status::{Status, Statuses};

use limit_status::Patience;

/// The answer to one request: for the whole, for each descriptor, and for each limit.
///
/// It holds on to the rules it was made by, so that it can name them without a copy; it is meant to
/// be read and dropped, not kept.
#[derive(Debug)]
pub struct Verdict {
    answer: Answer,
    admission: Admission,
    receipt: Option<Receipt>,
    n_descriptors: usize,
    near: NearRatio,
    /// How nodes share a limit, where its rule does not say.
    consistency: Consistency,
    failure: Option<StoreError>,
    /// The limits that apply, in the order of the descriptors. No allocation up to eight.
    pub(crate) applied: SmallVec<[Applied; 8]>,
    /// The decisions on those that were charged, in the same order.
    pub(crate) decisions: Decisions,
    /// The descriptors that are banned, in order.
    pub(crate) bans: Box<[BannedDescriptor]>,
    /// The limits that came with the request.
    pub(crate) overrides: Vec<Quota>,
    /// The rules by which it was made.
    pub(crate) rules: Guard<Arc<RuleSet>>,
}

/// A descriptor of the request that is banned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BannedDescriptor {
    pub(crate) descriptor: u16,
    pub(crate) retry: Retry,
}

/// Whether a request, or the part of it that one descriptor or one limit speaks for, may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It may.
    Allowed,
    /// It may not.
    Refused,
}

// === impl Verdict ===

impl Verdict {
    /// The answer to the request.
    pub const fn answer(&self) -> Answer {
        self.answer
    }

    /// Whether the request may pass.
    pub fn is_allowed(&self) -> bool {
        self.answer == Answer::Allowed
    }

    /// Whether the request passes only because the limiter as a whole is in shadow mode.
    pub fn is_shadowed(&self) -> bool {
        self.is_allowed() && self.admission == Admission::Refused
    }

    /// Why the store could not decide, if it could not; then this node decided alone, or each limit's
    /// `on_failure` spoke.
    pub const fn failure(&self) -> Option<&StoreError> {
        self.failure.as_ref()
    }

    /// When the store decided or, if it could not, this node alone. `None` if neither was asked.
    pub fn time(&self) -> Option<Time> {
        self.receipt.map(|receipt| receipt.now)
    }

    /// The rules by which the request was judged.
    pub fn rules(&self) -> &Arc<RuleSet> {
        &self.rules
    }

    /// When the ban on the request ends, if a descriptor of it is banned: the last of them.
    pub fn ban(&self) -> Option<Retry> {
        self.bans
            .iter()
            .map(|banned| banned.retry)
            .max_by_key(|retry| Patience::of(Some(*retry)))
    }

    /// One status for each descriptor of the request, in order.
    pub fn statuses(&self) -> Statuses<'_> {
        Statuses::of(self)
    }

    /// All limits that apply, in the order of the descriptors.
    #[inline]
    pub fn limits(&self) -> LimitStatuses<'_> {
        LimitStatuses::new(self, &self.applied, &self.decisions)
    }

    /// The limit that decided: of a refusal the one that lasts longest, else of all that may refuse
    /// the one with least remaining, where of the quota limits the one with most remaining speaks
    /// for all; the first of equals. `None` if none was asked.
    #[inline]
    pub fn deciding(&self) -> Option<LimitStatus<'_>> {
        match self.admission {
            Admission::Refused => self.refusing(|_| true),
            Admission::Admitted => self.tightest(|_| true),
        }
    }

    /// The limit that clients are told of: the one that decided or, if that is hidden, of those that are not
    /// the one that denies longest, else the tightest. `None` if there is none.
    #[inline]
    pub fn announced(&self) -> Option<LimitStatus<'_>> {
        let deciding = self.deciding()?;
        if deciding.is_hidden() {
            self.announced_instead()
        } else {
            Some(deciding)
        }
    }

    /// The requests that remain of the limit that clients are told of. Of two verdicts on one request, that with less remaining is to be told.
    pub fn announced_remaining(&self) -> Option<u64> {
        Some(self.announced()?.decision()?.remaining)
    }

    /// The limit that clients are told of instead of a hidden one that decided.
    #[cold]
    fn announced_instead(&self) -> Option<LimitStatus<'_>> {
        let is_announced = |status: &LimitStatus<'_>| !status.is_hidden();
        let denying = match self.admission {
            Admission::Refused => self.refusing(is_announced),
            Admission::Admitted => None,
        };
        denying.or_else(|| self.tightest(is_announced))
    }

    /// When a refused request would be admitted. `None` for an admitted one.
    #[inline]
    pub fn retry(&self) -> Option<Retry> {
        match self.answer {
            Answer::Allowed => None,
            Answer::Refused => self.ban().or_else(|| self.refusing(|_| true)?.retry()),
        }
    }

    /// How long an admitted request must wait before it may leave: the longest of its queues.
    pub fn delay(&self) -> Duration {
        let delays = self
            .limits()
            .filter(|limit| limit.mode() != Mode::Shadow)
            .map(
                |limit| match limit.decision().map(|decision| decision.outcome) {
                    Some(Outcome::Allowed { delay, .. }) => delay,
                    Some(Outcome::Denied { .. }) | None => Duration::ZERO,
                },
            );
        delays.max().unwrap_or_default()
    }

    /// Whether an allowed request is over a limit, on its soft or elastic allowance; of the limits that
    /// `wanted` holds for.
    pub fn is_over(&self, wanted: impl Fn(&LimitStatus<'_>) -> bool) -> bool {
        let is_over = |limit: &LimitStatus<'_>| limit.mode() != Mode::Shadow && limit.is_over();
        self.is_allowed() && self.limits().any(|limit| is_over(&limit) && wanted(&limit))
    }

    /// The receipt of the store or, if it failed, of this node alone.
    pub(crate) const fn receipt(&self) -> Option<&Receipt> {
        self.receipt.as_ref()
    }

    /// Whether the limits allowed the request, whatever the limiter's shadow mode made of that.
    pub(crate) const fn admission(&self) -> Admission {
        self.admission
    }

    /// A verdict on a request that no limit applies to.
    pub(crate) fn new(
        rules: Guard<Arc<RuleSet>>,
        n_descriptors: usize,
        config: LimiterConfig,
    ) -> Self {
        Self {
            answer: Answer::Allowed,
            admission: Admission::Admitted,
            receipt: None,
            n_descriptors,
            near: config.near,
            consistency: config.consistency,
            failure: None,
            applied: SmallVec::new(),
            decisions: Decisions::new(),
            bans: Box::default(),
            overrides: Vec::new(),
            rules,
        }
    }

    /// Settles the answer by what the store said, or who stood in for it.
    pub(crate) fn judge(
        &mut self,
        charged: Result<Option<Receipt>, Box<Failed>>,
        shadow: GlobalShadow,
    ) {
        self.admission = match charged {
            Ok(Some(receipt)) => {
                self.receipt = Some(receipt);
                receipt.admission
            }
            Ok(None) => Admission::Admitted,
            Err(failed) => {
                self.receipt = failed.receipt;
                self.failure = Some(failed.error);
                failed.admission
            }
        };
        if !self.bans.is_empty() {
            self.admission = Admission::Refused;
        }
        self.answer = match (self.admission, shadow) {
            (Admission::Refused, GlobalShadow::Off) => Answer::Refused,
            (Admission::Admitted, _) | (_, GlobalShadow::On) => Answer::Allowed,
        };
    }

    /// The ban on one descriptor.
    fn ban_on(&self, descriptor: usize) -> Option<Retry> {
        self.bans
            .iter()
            .find(|banned| usize::from(banned.descriptor) == descriptor)
            .map(|banned| banned.retry)
    }

    #[inline]
    fn origin(&self, applied: &Applied) -> Origin<'_> {
        match applied.source {
            Source::Rule { rule, limit } => {
                let rule = self.rules.rule(rule);
                Origin::Rule {
                    rule,
                    limit: &rule.limits()[usize::from(limit)],
                }
            }
            Source::Override(index) => Origin::Override(&self.overrides[usize::from(index)]),
        }
    }

    fn all_quotas_refuse(&self) -> bool {
        let mut quotas = self
            .limits()
            .filter(|it| it.mode() == Mode::Quota && it.takes_part());
        quotas
            .next()
            .is_some_and(|first| first.is_refused() && quotas.all(|it| it.is_refused()))
    }

    /// The limit that the next request would meet first. It needs every enforce limit, so the one
    /// with least remaining counts; but one quota limit is enough, so the one with most does.
    #[inline]
    fn tightest(&self, wanted: impl Fn(&LimitStatus<'_>) -> bool) -> Option<LimitStatus<'_>> {
        // Most requests meet one limit, and all of them are answered.
        if let [_] = self.applied[..] {
            let takes_part =
                |it: &LimitStatus<'_>| it.mode() != Mode::Shadow && it.decision().is_some();
            return self.limits().next().filter(takes_part).filter(wanted);
        }
        self.tightest_of_many(wanted)
    }

    #[inline(never)]
    fn tightest_of_many(
        &self,
        wanted: impl Fn(&LimitStatus<'_>) -> bool,
    ) -> Option<LimitStatus<'_>> {
        let wanted = &wanted;
        let of = |mode| {
            self.limits()
                .filter(move |limit| limit.mode() == mode && wanted(limit))
                .filter_map(|limit| Some((limit.decision()?.remaining, limit)))
        };
        let enforce = of(Mode::Enforce).min_by_key(|(remaining, _)| *remaining);
        let quota = of(Mode::Quota).reduce(|most, next| if next.0 > most.0 { next } else { most });
        let tightest = enforce.into_iter().chain(quota);
        tightest
            .min_by_key(|(remaining, _)| *remaining)
            .map(|(_, limit)| limit)
    }

    /// The limit that keeps the request out longest. Every enforce limit must admit, so the last one
    /// to do so counts; of the quota limits, the first.
    fn refusing(&self, wanted: impl Fn(&LimitStatus<'_>) -> bool) -> Option<LimitStatus<'_>> {
        // Most requests meet one limit, and a denial is looked at from many sides.
        if let [_] = self.applied[..] {
            let denies = |it: &LimitStatus<'_>| it.mode() != Mode::Shadow && it.is_refused();
            return self.limits().next().filter(denies).filter(wanted);
        }
        let wanted = &wanted;
        let of = |mode| {
            self.limits()
                .filter(move |it| it.mode() == mode && it.is_refused() && wanted(it))
        };
        let last = of(Mode::Enforce).reduce(LimitStatus::later);
        let first = if self.all_quotas_refuse() {
            of(Mode::Quota).min_by_key(LimitStatus::patience)
        } else {
            None
        };
        match (last, first) {
            (Some(enforce), Some(quota)) => Some(enforce.later(quota)),
            (enforce, quota) => enforce.or(quota),
        }
    }
}
