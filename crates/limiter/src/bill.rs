//! From the limits that apply to what the store is asked: counter keys, costs and modes.

use smallvec::SmallVec;
use tidegate_algorithms::{Headroom, Quota};
use tidegate_rules::{OnFull as RuleOnFull, RuleSet, Terms};
use tidegate_store::{Charge, CounterKey, LimitId, OnFull};

use crate::matched::{Applied, Matched, Source};
use crate::request::{Descriptor, Hits};

/// One request with the limits that apply to it: all that charges are made of.
#[derive(Clone, Copy)]
pub(crate) struct Bill<'a> {
    pub(crate) rules: &'a RuleSet,
    pub(crate) domain: &'a str,
    pub(crate) descriptors: &'a [Descriptor<'a>],
    pub(crate) hits: u64,
    pub(crate) headroom: Headroom,
    pub(crate) matched: &'a Matched,
}

/// The values of all counter keys of a request, one key after the other. They stand apart from the
/// charges because those borrow them. No allocation up to two values for each of eight limits.
pub(crate) type Values<'a> = SmallVec<[&'a str; 16]>;

/// What the store is asked. No allocation up to eight.
pub(crate) type Charges<'a> = SmallVec<[Charge<'a>; 8]>;

// === impl Bill ===

impl<'a> Bill<'a> {
    /// The values of every charged limit's counter key, in order.
    pub(crate) fn values(&self) -> Values<'a> {
        let mut values = Values::new();
        for applied in self.matched.charged() {
            let entries = self.descriptor(applied).entries;
            match applied.source {
                Source::Rule { rule, .. } => {
                    let counted = self.rules.rule(rule).counted_values();
                    values.extend(counted.iter().map(|index| entries[*index].value));
                }
                Source::Override(_) => {
                    values.push(self.domain);
                    values.extend(entries.iter().flat_map(|entry| [entry.key, entry.value]));
                }
            }
        }
        values
    }

    /// The charges of every charged limit, in order, over the [`values`](Self::values) of this bill.
    pub(crate) fn charges<'v>(&self, mut values: &'v [&'v str]) -> Charges<'v>
    where
        'a: 'v,
    {
        let mut charges = Charges::new();
        for applied in self.matched.charged() {
            let Some((limit, quota, on_full)) = self.terms(applied) else {
                continue;
            };
            let own;
            (own, values) = values.split_at(self.n_values(applied));
            charges.push(Charge {
                key: CounterKey { limit, values: own },
                quota,
                cost: self.cost(applied),
                mode: applied.mode,
                headroom: self.headroom,
                on_full,
            });
        }
        charges
    }

    /// What is to be given back, with the place of its limit among the charges.
    pub(crate) fn refunds(self) -> impl Iterator<Item = (usize, u64)> {
        self.matched
            .charged()
            .enumerate()
            .filter_map(
                move |(index, applied)| match self.descriptor(applied).hits {
                    Hits::Refund(hits) => Some((index, hits)),
                    Hits::OfRequest | Hits::Take(_) => None,
                },
            )
    }

    fn descriptor(&self, applied: &Applied) -> &'a Descriptor<'a> {
        &self.descriptors[usize::from(applied.descriptor)]
    }

    fn n_values(&self, applied: &Applied) -> usize {
        match applied.source {
            Source::Rule { rule, .. } => self.rules.rule(rule).counted_values().len(),
            Source::Override(_) => 1 + 2 * self.descriptor(applied).entries.len(),
        }
    }

    /// Identity, numbers and `on_full` of a limit; `None` for an unlimited one, which is not charged.
    fn terms(&self, applied: &Applied) -> Option<(LimitId, &'a Quota, OnFull)> {
        match applied.source {
            Source::Rule { .. } => {
                let limit = applied.limit(self.rules)?;
                let Terms::Quota(quota) = limit.terms() else {
                    return None;
                };
                let on_full = match limit.on_full() {
                    RuleOnFull::Allow => OnFull::Allow,
                    RuleOnFull::Deny => OnFull::Deny,
                };
                Some((LimitId(limit.id()), quota, on_full))
            }
            Source::Override(index) => {
                let quota = self.matched.overrides.get(usize::from(index))?;
                Some((override_id(quota), quota, OnFull::default()))
            }
        }
    }

    /// A refund has been made by the time of the charge, which then only looks.
    fn cost(&self, applied: &Applied) -> u64 {
        match self.descriptor(applied).hits {
            Hits::OfRequest => self.hits,
            Hits::Take(hits) => hits,
            Hits::Refund(_) => 0,
        }
    }
}

/// Overrides are told apart by the values of their key, which name domain and entries whole; only the
/// window is left for the identity. The ids of rules are digests of 128 bits and fall among these
/// numbers only by a chance of one in 2^64.
fn override_id(quota: &Quota) -> LimitId {
    LimitId(quota.window().as_nanos())
}
