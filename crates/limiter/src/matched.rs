//! MATCH: the limits that apply to a request, with `replaces` resolved.

use smallvec::SmallVec;
use tidegate_algorithms::{Algorithm, Allowance, Quota, QuotaError, QuotaSpec};
use tidegate_rules::{Domain, Limit, Rule, RuleId, RuleMode, Terms};
use tidegate_store::{MAX_CHARGES, Mode};

use crate::request::{Descriptor, Hits, LimitOverride};
use crate::{Answer, LimiterError};

/// The limits that apply to a request, in the order of its descriptors. No allocation up to eight.
#[derive(Debug, Default)]
pub(crate) struct Matched<'a>(SmallVec<[Match<'a>; 8]>);

/// One limit that applies to one descriptor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Match<'a> {
    /// The numbers of the limit; none if it is unlimited.
    pub(crate) quota: Option<&'a Quota>,
    /// The rule and its limit; none if it came with the request.
    pub(crate) rule: Option<(&'a Rule, &'a Limit)>,
    /// What a verdict keeps of it.
    pub(crate) applied: Applied,
}

/// What a verdict keeps of a limit: numbers instead of references, so that it can hold them beside the
/// rules they point into.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Applied {
    /// Which descriptor of the request.
    pub(crate) descriptor: u16,
    /// Where the limit comes from.
    pub(crate) source: Source,
    /// What its refusal means.
    pub(crate) mode: Mode,
    /// Whether it takes part.
    pub(crate) force: Force,
}

/// Where a limit comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    /// The rules: the n-th limit of a rule.
    Rule { rule: RuleId, limit: u16 },
    /// The request: the n-th override.
    Override(u16),
}

/// Whether a limit takes part in the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Force {
    /// It is charged.
    Charged,
    /// It was to be charged, but the store failed: this stands for its decision.
    Undecided(Answer),
    /// It admits everything and counts nothing.
    Unlimited,
    /// Another limit of the request replaces it.
    Replaced,
    /// Its descriptor is banned.
    Banned,
}

/// The limits that came with the request, in order. Rare, so they may allocate.
pub(crate) fn overrides(descriptors: &[Descriptor<'_>]) -> Result<Vec<Quota>, LimiterError> {
    let of = |(descriptor, limit): (usize, Option<LimitOverride>)| {
        let quota = override_quota(limit?);
        Some(quota.map_err(|reason| LimiterError::BadOverride { descriptor, reason }))
    };
    let limits = descriptors.iter().map(|descriptor| descriptor.limit);
    limits.enumerate().filter_map(of).collect()
}

// === impl Matched ===

impl<'a> Matched<'a> {
    /// Adds the limits of every descriptor. Those of the request are `overrides`.
    #[inline]
    pub(crate) fn find(
        &mut self,
        domain: &'a Domain,
        descriptors: &[Descriptor<'_>],
        overrides: &'a [Quota],
    ) -> Result<(), LimiterError> {
        let mut overrides = (0_u16..).zip(overrides);
        for (index, descriptor) in (0_u16..).zip(descriptors) {
            if descriptor.limit.is_some() {
                self.add_override(index, descriptor.hits, overrides.next())?;
            } else if let Some(rule) = domain.find(descriptor.entries) {
                self.add_rule(index, descriptor.hits, rule)?;
            }
        }
        if self.0.iter().any(|it| !it.replaces().is_empty()) {
            self.resolve_replaces();
        }
        Ok(())
    }

    /// Puts the limits of one descriptor out of force, for it is banned. They enforce that, whatever
    /// the mode of their rule.
    pub(crate) fn ban(&mut self, descriptor: u16) {
        let is_own = |it: &&mut Match<'_>| it.applied.descriptor == descriptor;
        for banned in self.0.iter_mut().filter(is_own) {
            banned.applied.force = Force::Banned;
            banned.applied.mode = Mode::Enforce;
        }
    }

    /// Notes the answers that stand for the store's, for each limit that was to be charged; `None` for one
    /// that was decided on after all.
    pub(crate) fn leave_undecided(&mut self, answers: &[Option<Answer>]) {
        let is_charged = |it: &&mut Match<'_>| it.applied.force == Force::Charged;
        for (charged, answer) in self.0.iter_mut().filter(is_charged).zip(answers) {
            if let Some(answer) = answer {
                charged.applied.force = Force::Undecided(*answer);
            }
        }
    }

    /// Takes over the results of an earlier search for the same request.
    pub(crate) fn adopt(&mut self, applied: &[Applied]) {
        for (found, applied) in self.0.iter_mut().zip(applied) {
            found.applied = *applied;
        }
    }

    /// The limits, in order.
    pub(crate) fn as_slice(&self) -> &[Match<'a>] {
        &self.0
    }

    #[inline]
    fn add_rule(
        &mut self,
        descriptor: u16,
        hits: Hits,
        rule: &'a Rule,
    ) -> Result<(), LimiterError> {
        for (index, limit) in (0_u16..).zip(rule.limits()) {
            let (quota, force) = match limit.terms() {
                Terms::Unlimited => (None, Force::Unlimited),
                Terms::Quota(quota) => (Some(quota), Force::Charged),
            };
            let source = Source::Rule {
                rule: rule.id(),
                limit: index,
            };
            let mode = mode(rule.mode(), hits);
            let applied = Applied {
                descriptor,
                source,
                mode,
                force,
            };
            self.add(Match {
                quota,
                rule: Some((rule, limit)),
                applied,
            })?;
        }
        Ok(())
    }

    fn add_override(
        &mut self,
        descriptor: u16,
        hits: Hits,
        quota: Option<(u16, &'a Quota)>,
    ) -> Result<(), LimiterError> {
        let Some((index, quota)) = quota else {
            return Ok(());
        };
        let source = Source::Override(index);
        let mode = mode(RuleMode::Enforce, hits);
        let applied = Applied {
            descriptor,
            source,
            mode,
            force: Force::Charged,
        };
        self.add(Match {
            quota: Some(quota),
            rule: None,
            applied,
        })
    }

    fn add(&mut self, new: Match<'a>) -> Result<(), LimiterError> {
        if self.0.len() == MAX_CHARGES {
            return Err(LimiterError::TooManyLimits { most: MAX_CHARGES });
        }
        self.0.push(new);
        Ok(())
    }

    /// Puts every charged limit out of force that another one of the request names, as
    /// envoyproxy/ratelimit does: a limit that is itself replaced still replaces others, and an
    /// unlimited one cannot be replaced.
    #[cold]
    fn resolve_replaces(&mut self) {
        for index in 0..self.0.len() {
            let Some(name) = self.0[index].rule.and_then(|(_, limit)| limit.name()) else {
                continue;
            };
            let mut replaced = self.0.iter().flat_map(Match::replaces);
            let is_replaced = replaced.any(|it| **it == *name);
            if is_replaced && self.0[index].applied.force == Force::Charged {
                self.0[index].applied.force = Force::Replaced;
            }
        }
    }
}

// === impl Match ===

impl<'a> Match<'a> {
    fn replaces(&self) -> &'a [Box<str>] {
        self.rule.map_or(&[], |(_, limit)| limit.replaces())
    }
}

/// A refund must not be refused, so its limits count for nothing in the verdict.
fn mode(rule: RuleMode, hits: Hits) -> Mode {
    match (hits, rule) {
        (Hits::Refund(_), _) | (_, RuleMode::Shadow) => Mode::Shadow,
        (_, RuleMode::Quota) => Mode::Quota,
        (_, RuleMode::Enforce) => Mode::Enforce,
    }
}

fn override_quota(limit: LimitOverride) -> Result<Quota, QuotaError> {
    Quota::new(&QuotaSpec {
        limit: limit.requests,
        window: limit.window,
        algorithm: Algorithm::FixedWindow,
        allowance: Allowance::Hard,
    })
}
