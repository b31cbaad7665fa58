//! From the limits that apply to what the store is asked: counter keys, costs and modes.

use smallvec::SmallVec;
use tidegate_algorithms::{Headroom, Quota};
use tidegate_rules::{Consistency as RuleConsistency, Limit, OnFull as RuleOnFull};
use tidegate_store::{Charge, Consistency, CounterKey, LimitId, OnFull};

use crate::address::{AddressText, Addresses};
use crate::matched::{Force, Match};
use crate::request::{Descriptor, Hits};

/// One request with the limits that apply to it: all that charges are made of.
#[derive(Clone, Copy)]
pub(crate) struct Bill<'a> {
    pub(crate) domain: &'a str,
    pub(crate) descriptors: &'a [Descriptor<'a>],
    pub(crate) intent: Intent,
    pub(crate) headroom: Headroom,
    /// How nodes share a limit that does not say.
    pub(crate) consistency: Consistency,
    pub(crate) matches: &'a [Match<'a>],
}

/// What a bill is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intent {
    /// To charge a request of so many hits.
    Charge(u64),
    /// To look at the counters, at cost 0.
    Look,
}

/// The values of all counter keys of a request, one key after the other. They stand apart from the
/// charges because those borrow them. No allocation up to two values for each of eight limits.
pub(crate) type Values<'a> = SmallVec<[&'a str; 16]>;

/// What the store is asked. No allocation up to eight.
pub(crate) type Charges<'a> = SmallVec<[Charge<'a>; 8]>;

// === impl Bill ===

impl<'a> Bill<'a> {
    /// Adds the addresses of every charged limit's counter key, in order.
    #[inline]
    pub(crate) fn add_addresses(&self, addresses: &mut Addresses) {
        for charged in self.charged() {
            let entries = self.descriptor(charged).entries;
            for index in charged
                .rule
                .map_or(&[][..], |(rule, _)| rule.counted_addresses())
            {
                addresses.push(AddressText::of(entries[*index].value));
            }
        }
    }

    /// Adds the values of every charged limit's counter key, in order, over the addresses of this
    /// bill.
    #[inline]
    pub(crate) fn add_values(&self, addresses: &'a [AddressText], values: &mut Values<'a>) {
        let mut addresses = addresses.iter();
        for charged in self.charged() {
            let entries = self.descriptor(charged).entries;
            if let Some((rule, _)) = charged.rule {
                for index in rule.counted_values() {
                    let is_address = rule.counted_addresses().contains(index);
                    let address = is_address.then(|| addresses.next()).flatten();
                    values.push(address.map_or(entries[*index].value, AddressText::as_str));
                }
            } else {
                values.push(self.domain);
                values.extend(entries.iter().flat_map(|entry| [entry.key, entry.value]));
            }
        }
    }

    /// Adds the charge of every charged limit, in order, over the values of this bill.
    #[inline]
    pub(crate) fn add_charges<'v>(&self, mut values: &'v [&'v str], charges: &mut Charges<'v>)
    where
        'a: 'v,
    {
        for charged in self.charged() {
            let Some(quota) = charged.quota else { continue };
            let own;
            (own, values) = values.split_at(self.n_values(charged));
            let limit = charged.rule.map(|(_, limit)| limit);
            charges.push(Charge {
                key: CounterKey {
                    limit: limit.map_or_else(|| override_id(quota), |limit| LimitId(limit.id())),
                    values: own,
                },
                quota,
                cost: self.cost(charged),
                mode: charged.applied.mode,
                headroom: self.headroom,
                on_full: limit.map_or(OnFull::default(), on_full),
                consistency: self.consistency(charged),
            });
        }
    }

    /// Returns true if no descriptor is only looked at or given something back, as in nearly all requests.
    pub(crate) fn takes_from_all(self) -> bool {
        let takes = |it: &Descriptor<'_>| !matches!(it.hits, Hits::Take(0) | Hits::Refund(_));
        self.descriptors.iter().all(takes)
    }

    /// What is to be given back, with the place of its limit among the charges.
    pub(crate) fn refunds(self) -> impl Iterator<Item = (usize, u64)> {
        self.charged()
            .enumerate()
            .filter_map(
                move |(index, charged)| match self.descriptor(charged).hits {
                    Hits::Refund(hits) => Some((index, hits)),
                    Hits::OfRequest | Hits::Take(_) => None,
                },
            )
    }

    /// The places among the charges of limits that are only looked at.
    pub(crate) fn looks(self) -> impl Iterator<Item = usize> {
        let is_look = move |charged: &Match<'_>| {
            let hits = self.descriptor(charged).hits;
            self.intent != Intent::Look && hits == Hits::Take(0)
        };
        let places = self.charged().enumerate();
        places.filter_map(move |(index, charged)| is_look(charged).then_some(index))
    }

    /// The rules' limits that are charged, in the order of the charges; `None` for one that came with the
    /// request.
    pub(crate) fn limits(self) -> impl Iterator<Item = Option<&'a Limit>> {
        self.charged()
            .map(|charged| charged.rule.map(|(_, limit)| limit))
    }

    /// The limits that are charged, in order.
    pub(crate) fn charged(&self) -> impl Iterator<Item = &'a Match<'a>> + use<'a> {
        let is_charged = |it: &&Match<'_>| it.applied.force == Force::Charged;
        self.matches.iter().filter(is_charged)
    }

    fn descriptor(&self, charged: &Match<'_>) -> &'a Descriptor<'a> {
        &self.descriptors[usize::from(charged.applied.descriptor)]
    }

    fn n_values(&self, charged: &Match<'_>) -> usize {
        match charged.rule {
            Some((rule, _)) => rule.counted_values().len(),
            None => 1 + 2 * self.descriptor(charged).entries.len(),
        }
    }

    /// The word of the rule or of the limit that came with the request, else the configured one.
    fn consistency(&self, charged: &Match<'_>) -> Consistency {
        let said = match charged.rule {
            Some((_, limit)) => limit.consistency().map(consistency),
            None => self
                .descriptor(charged)
                .limit
                .and_then(|limit| limit.consistency),
        };
        said.unwrap_or(self.consistency)
    }

    /// A refund has been made by the time of the charge, which then only looks.
    fn cost(&self, charged: &Match<'_>) -> u64 {
        match (self.intent, self.descriptor(charged).hits) {
            (Intent::Charge(hits), Hits::OfRequest) | (Intent::Charge(_), Hits::Take(hits)) => hits,
            (Intent::Look, _) | (_, Hits::Refund(_)) => 0,
        }
    }
}

fn on_full(limit: &Limit) -> OnFull {
    match limit.on_full() {
        RuleOnFull::Shared => OnFull::Shared,
        RuleOnFull::Allow => OnFull::Allow,
        RuleOnFull::Deny => OnFull::Deny,
    }
}

/// What a rule's word for how nodes share a limit means to the store.
pub const fn consistency(said: RuleConsistency) -> Consistency {
    match said {
        RuleConsistency::Node => Consistency::Node,
        RuleConsistency::Strict => Consistency::Strict,
        RuleConsistency::Leased => Consistency::Leased,
        RuleConsistency::Eventual => Consistency::Eventual,
        RuleConsistency::Split => Consistency::Split,
    }
}

/// Overrides are told apart by the values of their key, which name domain and entries whole; only the
/// window is left for the identity. The ids of rules are digests of 128 bits and fall among these
/// numbers only by a chance of one in 2^64.
fn override_id(quota: &Quota) -> LimitId {
    LimitId(quota.window().as_nanos())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tidegate_rules::Entry;
    use tidegate_store::Mode;

    use super::*;
    use crate::matched::{Applied, Source, overrides};
    use crate::request::LimitOverride;

    fn check(said: Option<Consistency>, expected: Consistency) {
        let entries = [Entry {
            key: "connection",
            value: "1",
        }];
        let limit = LimitOverride {
            requests: 1,
            window: Duration::from_secs(1),
            consistency: said,
        };
        let descriptors = [Descriptor {
            limit: Some(limit),
            ..Descriptor::new(&entries)
        }];
        let quotas = overrides(&descriptors).unwrap();
        let bill = Bill {
            domain: "test",
            descriptors: &descriptors,
            intent: Intent::Charge(1),
            headroom: Headroom::Absent,
            consistency: Consistency::Leased,
            matches: &[Match {
                quota: quotas.first(),
                rule: None,
                applied: Applied {
                    descriptor: 0,
                    source: Source::Override(0),
                    mode: Mode::Enforce,
                    force: Force::Charged,
                },
            }],
        };
        let mut values = Values::new();
        bill.add_values(&[], &mut values);
        let mut charges = Charges::new();
        bill.add_charges(&values, &mut charges);
        assert_eq!(charges.len(), 1);
        assert_eq!(charges[0].consistency, expected);
    }

    #[test]
    fn an_override_may_say_how_nodes_share_it() {
        check(None, Consistency::Leased);
        check(Some(Consistency::Node), Consistency::Node);
    }
}
