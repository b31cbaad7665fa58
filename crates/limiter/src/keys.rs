//! What operators do to one caller: look, forgive, ban.
//!
//! A caller is whoever a rule counts together: the domain, the rule that a descriptor ends at, and the
//! values that tell its counters apart. Limits that come with a request are out of reach here, for
//! nothing outside the request knows them.

use tidegate_algorithms::RefundTo;
use tidegate_rules::{Entry, Rule, RuleSet};
use tidegate_store::{Store, StoreError};

use crate::address::Addresses;
use crate::bans::{ActiveBan, Ban, NewBan};
use crate::bill::{Bill, Charges, Intent, Values};
use crate::limiter::validate;
use crate::matched::{self, Matched};
use crate::request::Descriptor;
use crate::{Limiter, LimiterError, Verdict};

/// Why nothing was done to a caller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// There are no rules for the domain.
    #[error("there is no domain `{domain}`")]
    NoSuchDomain {
        /// The domain.
        domain: String,
    },
    /// No rule matches the descriptor.
    #[error("no rule of the domain `{domain}` matches the descriptor")]
    NoRule {
        /// The domain.
        domain: String,
    },
    /// There are as many bans as there may be.
    #[error("there are {most} bans already; lift one first")]
    TooManyBans {
        /// How many there may be.
        most: usize,
    },
    /// The texts of a ban are too long to keep.
    #[error("the entries and the reason of a ban have more than {most} bytes together")]
    BanTooLong {
        /// How many bytes they may have.
        most: usize,
    },
    /// The question makes no sense.
    #[error(transparent)]
    Limiter(#[from] LimiterError),
    /// The store could not do it.
    #[error("the store could not do it")]
    Store(#[from] StoreError),
}

/// What to do to each counter of a caller.
#[derive(Clone, Copy, Debug)]
enum Act {
    Reset,
    Grant(u64),
}

// === impl Limiter ===

impl<S: Store> Limiter<S> {
    /// What every limit of a descriptor says now. Costs nothing and changes nothing; a ban does not
    /// show, [`ban_on`](Self::ban_on) tells.
    pub async fn lookup(&self, domain: &str, entries: &[Entry<'_>]) -> Result<Verdict, KeyError> {
        let descriptors = [Descriptor::new(entries)];
        let mut verdict = self.unjudged(&descriptors);
        rule(verdict.rules(), domain, entries)?;
        self.judge(&mut verdict, domain, &descriptors, Intent::Look, None)
            .await?;
        match verdict.failure() {
            Some(error) => Err(error.clone().into()),
            None => Ok(verdict),
        }
    }

    /// Which limits apply to a request, and which another one replaces: by the rules alone, so that it is
    /// told also while the store fails. What they say is not, nor do bans show.
    pub fn applying(
        &self,
        domain: &str,
        descriptors: &[Descriptor<'_>],
    ) -> Result<Verdict, KeyError> {
        let mut verdict = self.unjudged(descriptors);
        let found = verdict.rules().domain(domain);
        let found = found.ok_or_else(|| no_such_domain(domain))?;
        validate(domain, descriptors)?;
        let overrides = matched::overrides(descriptors)?;
        let mut matched = Matched::default();
        matched.find(found, descriptors, &overrides)?;
        let applied: Vec<_> = matched.as_slice().iter().map(|it| it.applied).collect();
        drop(matched);
        verdict.applied.extend(applied);
        verdict.overrides = overrides;
        Ok(verdict)
    }

    /// Forgets the counters of a descriptor, so that its whole quota is there again. Says how many
    /// there were.
    pub async fn reset(&self, domain: &str, entries: &[Entry<'_>]) -> Result<usize, KeyError> {
        self.act(domain, entries, Act::Reset).await
    }

    /// Gives `hits` back to every limit of a descriptor. What was not used cannot be given back: no
    /// limit is ever left with more than its whole quota.
    pub async fn grant(
        &self,
        domain: &str,
        entries: &[Entry<'_>],
        hits: u64,
    ) -> Result<usize, KeyError> {
        self.act(domain, entries, Act::Grant(hits)).await
    }

    /// Refuses a descriptor from now on, instead of the ban on it that there was: whoever ends at its
    /// rule with the same counted values, a rule in shadow mode, an unlimited one and an allow-list
    /// entry included. Only a limiter that is in shadow mode as a whole lets it pass. Nothing is
    /// charged to a request with a banned descriptor.
    pub async fn ban(
        &self,
        domain: &str,
        entries: &[Entry<'_>],
        new: NewBan<'_>,
    ) -> Result<(), KeyError> {
        let rules = self.rules();
        let rule = rule(&rules, domain, entries)?;
        let now = self.store().now().await?;
        let ban = Ban::new(domain, rule, entries, new, now)?;
        self.bans.insert(rule, entries, ban, now)
    }

    /// Lifts the ban on a descriptor and gives it back, if there was one.
    pub async fn unban(
        &self,
        domain: &str,
        entries: &[Entry<'_>],
    ) -> Result<Option<ActiveBan>, KeyError> {
        let rules = self.rules();
        let rule = rule(&rules, domain, entries)?;
        let now = self.store().now().await?;
        let ban = self.bans.remove(rule, entries);
        Ok(ban.and_then(|ban| ActiveBan::at(ban, now)))
    }

    /// The ban on a descriptor, if it is banned.
    pub async fn ban_on(
        &self,
        domain: &str,
        entries: &[Entry<'_>],
    ) -> Result<Option<ActiveBan>, KeyError> {
        let rules = self.rules();
        let rule = rule(&rules, domain, entries)?;
        let now = self.store().now().await?;
        let ban = self.bans.find(rule, entries);
        Ok(ban.and_then(|ban| ActiveBan::at(ban, now)))
    }

    /// All bans in force, by domain, rule and entries. A ban outlives the rule that it was made by,
    /// and is in force again when the rule is back.
    pub async fn bans(&self) -> Result<Vec<ActiveBan>, KeyError> {
        Ok(self.bans.list(self.store().now().await?))
    }

    /// Does something to each counter of a descriptor. Says how many there were to do it to; a grant
    /// does not know which of them exist, and counts them all.
    async fn act(&self, domain: &str, entries: &[Entry<'_>], act: Act) -> Result<usize, KeyError> {
        let rules = self.rules();
        rule(&rules, domain, entries)?;
        let descriptors = [Descriptor::new(entries)];
        let mut matched = Matched::default();
        if let Some(found) = rules.domain(domain) {
            matched.find(found, &descriptors, &[])?;
        }
        let bill = Bill {
            domain,
            descriptors: &descriptors,
            intent: Intent::Look,
            headroom: self.headroom(),
            consistency: self.config.consistency,
            matches: matched.as_slice(),
        };
        let mut addresses = Addresses::new();
        let (mut values, mut charges) = (Values::new(), Charges::new());
        bill.add_addresses(&mut addresses);
        bill.add_values(&addresses, &mut values);
        bill.add_charges(&values, &mut charges);
        let mut n_touched = 0;
        for charge in &charges {
            n_touched += usize::from(match act {
                Act::Reset => {
                    self.store()
                        .reset(charge.key, charge.quota, charge.consistency)
                        .await?
                }
                Act::Grant(hits) => {
                    let to = RefundTo::Current;
                    let refunded =
                        self.store()
                            .refund(charge.key, charge.quota, hits, to, charge.consistency);
                    refunded.await.map(|()| true)?
                }
            });
        }
        Ok(n_touched)
    }
}

/// The rule that a descriptor ends at.
fn rule<'a>(rules: &'a RuleSet, domain: &str, entries: &[Entry<'_>]) -> Result<&'a Rule, KeyError> {
    let found = rules.domain(domain).ok_or_else(|| no_such_domain(domain))?;
    found.find(entries).ok_or_else(|| KeyError::NoRule {
        domain: domain.to_owned(),
    })
}

fn no_such_domain(domain: &str) -> KeyError {
    KeyError::NoSuchDomain {
        domain: domain.to_owned(),
    }
}
