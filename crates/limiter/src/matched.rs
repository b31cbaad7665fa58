//! MATCH: the limits that apply to a request, with `replaces` resolved.

use smallvec::SmallVec;
use tidegate_algorithms::{Algorithm, Allowance, Quota, QuotaError, QuotaSpec};
use tidegate_rules::{Domain, Limit, Rule, RuleId, RuleMode, RuleSet, Terms};
use tidegate_store::{MAX_CHARGES, Mode};

use crate::LimiterError;
use crate::request::{Descriptor, Hits, LimitOverride};

/// The limits that apply to a request, in the order of its descriptors.
#[derive(Debug, Default)]
pub(crate) struct Matched {
    /// No allocation up to eight, as with the store's decisions.
    pub(crate) applied: SmallVec<[Applied; 8]>,
    /// The limits that came with the request. Rare, so they may allocate.
    pub(crate) overrides: Vec<Quota>,
}

/// One limit that applies to one descriptor. Holds numbers instead of references, so that a verdict
/// can keep it beside the rules it points into.
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
    /// It admits everything and counts nothing.
    Unlimited,
    /// Another limit of the request replaces it.
    Replaced,
}

// === impl Matched ===

impl Matched {
    /// Finds the limits of every descriptor.
    pub(crate) fn find(
        rules: &RuleSet,
        domain: &Domain,
        descriptors: &[Descriptor<'_>],
    ) -> Result<Self, LimiterError> {
        let mut matched = Self::default();
        for (index, descriptor) in (0_u16..).zip(descriptors) {
            if let Some(limit) = descriptor.limit {
                matched.add_override(index, descriptor.hits, limit)?;
            } else if let Some(rule) = domain.find(descriptor.entries) {
                matched.add_rule(index, descriptor.hits, rule)?;
            }
        }
        matched.resolve_replaces(rules);
        Ok(matched)
    }

    /// The limits that are charged, in order.
    pub(crate) fn charged(&self) -> impl Iterator<Item = &Applied> {
        self.applied
            .iter()
            .filter(|applied| applied.force == Force::Charged)
    }

    fn add_rule(&mut self, descriptor: u16, hits: Hits, rule: &Rule) -> Result<(), LimiterError> {
        for (index, limit) in (0_u16..).zip(rule.limits()) {
            self.add(Applied {
                descriptor,
                source: Source::Rule {
                    rule: rule.id(),
                    limit: index,
                },
                mode: mode(rule.mode(), hits),
                force: match limit.terms() {
                    Terms::Unlimited => Force::Unlimited,
                    Terms::Quota(_) => Force::Charged,
                },
            })?;
        }
        Ok(())
    }

    fn add_override(
        &mut self,
        descriptor: u16,
        hits: Hits,
        limit: LimitOverride,
    ) -> Result<(), LimiterError> {
        let quota = override_quota(limit).map_err(|reason| LimiterError::BadOverride {
            descriptor: usize::from(descriptor),
            reason,
        })?;
        let index = u16::try_from(self.overrides.len()).map_err(|_| TOO_MANY_LIMITS)?;
        self.overrides.push(quota);
        self.add(Applied {
            descriptor,
            source: Source::Override(index),
            mode: mode(RuleMode::Enforce, hits),
            force: Force::Charged,
        })
    }

    fn add(&mut self, applied: Applied) -> Result<(), LimiterError> {
        if self.applied.len() == MAX_CHARGES {
            return Err(TOO_MANY_LIMITS);
        }
        self.applied.push(applied);
        Ok(())
    }

    /// Puts every charged limit out of force that another one of the request names, as
    /// envoyproxy/ratelimit does: a limit that is itself replaced still replaces others, and an
    /// unlimited one cannot be replaced.
    fn resolve_replaces(&mut self, rules: &RuleSet) {
        let names = |applied: &Applied| applied.limit(rules).map_or(&[][..], Limit::replaces);
        if self.applied.iter().all(|applied| names(applied).is_empty()) {
            return;
        }
        for index in 0..self.applied.len() {
            let Some(name) = self.applied[index].limit(rules).and_then(Limit::name) else {
                continue;
            };
            let mut replaced = self.applied.iter().flat_map(names);
            if self.applied[index].force == Force::Charged && replaced.any(|it| **it == *name) {
                self.applied[index].force = Force::Replaced;
            }
        }
    }
}

// === impl Applied ===

impl Applied {
    /// The rule's limit; `None` for one that came with the request.
    pub(crate) fn limit<'r>(&self, rules: &'r RuleSet) -> Option<&'r Limit> {
        match self.source {
            Source::Rule { rule, limit } => rules.rule(rule).limits().get(usize::from(limit)),
            Source::Override(_) => None,
        }
    }
}

const TOO_MANY_LIMITS: LimiterError = LimiterError::TooManyLimits { most: MAX_CHARGES };

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
