//! The limiter: rules joined to a store.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use arc_swap::ArcSwap;
use smallvec::SmallVec;
use tidegate_algorithms::{Headroom, RefundTo, Time};
use tidegate_rules::{Charging as RuleCharging, Domain, RuleSet};
use tidegate_store::{Charge, Charging, Decisions, Receipt, Store, StoreError};

use crate::address::Addresses;
use crate::bans::{Ban, Bans};
use crate::bill::{Bill, Charges, Intent, Values};
use crate::failure::{self, Failed};
use crate::matched::{self, Matched};
use crate::request::{Descriptor, Hits};
use crate::verdict::{BannedDescriptor, Verdict};
use crate::{LimiterConfig, LimiterError};

/// The most descriptors of one request. Envoy sends a handful.
pub const MAX_DESCRIPTORS: usize = 1_024;

/// Judges requests by a rule set that can be replaced at any time.
#[derive(Debug)]
pub struct Limiter<S> {
    store: S,
    rules: ArcSwap<RuleSet>,
    pub(crate) config: LimiterConfig,
    pub(crate) bans: Bans,
    headroom: AtomicBool,
    unknown_domains: AtomicU64,
}

// === impl Limiter ===

impl<S> Limiter<S> {
    /// Joins `rules` to `store`.
    pub fn new(store: S, rules: RuleSet, config: LimiterConfig) -> Self {
        Self {
            store,
            rules: ArcSwap::from_pointee(rules),
            config,
            bans: Bans::default(),
            headroom: AtomicBool::new(false),
            unknown_domains: AtomicU64::new(0),
        }
    }

    /// The rules in force.
    pub fn rules(&self) -> Arc<RuleSet> {
        self.rules.load_full()
    }

    /// Puts `rules` in force for every request that comes after and gives back the old ones; no
    /// request waits. Counters live on by the identity of their limit: a changed limit applies to the
    /// old counts, a changed window or algorithm starts anew.
    pub fn replace_rules(&self, rules: RuleSet) -> Arc<RuleSet> {
        self.rules.swap(Arc::new(rules))
    }

    /// Says whether elastic limits may stretch from now on.
    pub fn set_headroom(&self, headroom: Headroom) {
        self.headroom
            .store(headroom == Headroom::Available, Ordering::Relaxed);
    }

    /// How many requests named a domain that has no rules.
    pub fn unknown_domains(&self) -> u64 {
        self.unknown_domains.load(Ordering::Relaxed)
    }

    /// The store.
    pub const fn store(&self) -> &S {
        &self.store
    }

    pub(crate) fn headroom(&self) -> Headroom {
        if self.headroom.load(Ordering::Relaxed) {
            Headroom::Available
        } else {
            Headroom::Absent
        }
    }

    /// The domain's word on charging wins over the configured one.
    pub(crate) fn charging(&self, domain: &Domain) -> Charging {
        domain
            .charging()
            .map_or(self.config.charging, |charging| match charging {
                RuleCharging::AllOrNone => Charging::AllOrNone,
                RuleCharging::EveryMatch => Charging::EveryMatch,
            })
    }
}

impl<S: Store> Limiter<S> {
    /// Judges one request of `hits` (0 counts as 1) and charges it.
    ///
    /// All limits of all descriptors are decided and charged in one atomic step at one instant.
    /// Refunds are made one by one just before, whatever the answer. A request in a domain without
    /// rules has no limits, those it brings along included.
    ///
    /// # Errors
    ///
    /// Only for a request that makes no sense. A store that fails is answered for by this node alone or by
    /// the `on_failure` of each limit, and [`Verdict::failure`] tells.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may or may not have charged.
    pub async fn check(
        &self,
        domain: &str,
        descriptors: &[Descriptor<'_>],
        hits: u64,
    ) -> Result<Verdict, LimiterError> {
        let mut verdict = self.unjudged(descriptors);
        let intent = Intent::Charge(hits.max(1));
        if self.bans.is_any() {
            verdict.bans = self.banned(&verdict.rules, domain, descriptors).await;
        }
        self.judge(&mut verdict, domain, descriptors, intent, None)
            .await?;
        Ok(verdict)
    }

    /// The same as [`check`](Self::check), errors and cancellation included, for a caller that needs the verdict only to read it:
    /// a verdict is large, and each function that returns one copies it.
    pub async fn check_then<T>(
        &self,
        domain: &str,
        descriptors: &[Descriptor<'_>],
        hits: u64,
        then: impl FnOnce(&Verdict) -> T,
    ) -> Result<T, LimiterError> {
        let mut verdict = self.unjudged(descriptors);
        let intent = Intent::Charge(hits.max(1));
        if self.bans.is_any() {
            verdict.bans = self.banned(&verdict.rules, domain, descriptors).await;
        }
        self.judge(&mut verdict, domain, descriptors, intent, None)
            .await?;
        Ok(then(&verdict))
    }

    /// Returns what every limit of the descriptors says now, bans included, without charging anything:
    /// hits and refunds of the descriptors do not count.
    ///
    /// # Errors
    ///
    /// Only for descriptors that make no sense. A store that fails is answered for as in `check`.
    pub async fn look(
        &self,
        domain: &str,
        descriptors: &[Descriptor<'_>],
    ) -> Result<Verdict, LimiterError> {
        let mut descriptors: SmallVec<[_; 8]> = descriptors.iter().copied().collect();
        for descriptor in &mut descriptors {
            descriptor.hits = Hits::Take(0);
        }
        let mut verdict = self.unjudged(&descriptors);
        if self.bans.is_any() {
            verdict.bans = self.banned(&verdict.rules, domain, &descriptors).await;
        }
        self.judge(&mut verdict, domain, &descriptors, Intent::Look, None)
            .await?;
        Ok(verdict)
    }

    /// Judges one request as if the store had failed with `error`, for a caller who cannot wait for the store any
    /// longer. Waits for nothing. A call to the store that is under way may or may not have charged.
    ///
    /// # Errors
    ///
    /// Only for a request that makes no sense.
    #[cold]
    pub fn check_without_store(
        &self,
        domain: &str,
        descriptors: &[Descriptor<'_>],
        hits: u64,
        error: StoreError,
    ) -> Result<Verdict, LimiterError> {
        let mut verdict = self.unjudged(descriptors);
        if self.bans.is_any() {
            let bans = self.find_bans(&verdict.rules, domain, descriptors);
            verdict.bans = in_force(&bans, None);
        }
        let intent = Intent::Charge(hits.max(1));
        let judged = self.judge(&mut verdict, domain, descriptors, intent, Some(error));
        now_or_never(judged).ok_or(LimiterError::WouldWait)??;
        Ok(verdict)
    }

    /// The same as [`check`](Self::check), for a store that answers without waiting, as the embedded
    /// one does.
    ///
    /// # Errors
    ///
    /// As `check`, and [`LimiterError::WouldWait`] if the store had to wait; it may or may not have
    /// charged then.
    pub fn check_now(
        &self,
        domain: &str,
        descriptors: &[Descriptor<'_>],
        hits: u64,
    ) -> Result<Verdict, LimiterError> {
        let mut verdict = self.unjudged(descriptors);
        if self.bans.is_any() {
            let banned = now_or_never(self.banned(&verdict.rules, domain, descriptors));
            verdict.bans = banned.ok_or(LimiterError::WouldWait)?;
        }
        let intent = Intent::Charge(hits.max(1));
        let judged = now_or_never(self.judge(&mut verdict, domain, descriptors, intent, None));
        judged.ok_or(LimiterError::WouldWait)??;
        Ok(verdict)
    }

    /// The verdict on a request that no limit applies to.
    pub(crate) fn unjudged(&self, descriptors: &[Descriptor<'_>]) -> Verdict {
        Verdict::new(self.rules.load(), descriptors.len(), self.config)
    }

    /// Fills in the verdict, in place: moved out of the future, it would be copied whole once more. With a
    /// `failure` the store is not called.
    pub(crate) async fn judge(
        &self,
        verdict: &mut Verdict,
        domain: &str,
        descriptors: &[Descriptor<'_>],
        mut intent: Intent,
        failure: Option<StoreError>,
    ) -> Result<(), LimiterError> {
        validate(domain, descriptors)?;
        let Some(found) = verdict.rules.domain(domain) else {
            self.unknown_domains.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        };
        let overrides = if descriptors.iter().any(|it| it.limit.is_some()) {
            matched::overrides(descriptors)?
        } else {
            Vec::new()
        };
        let mut matched = Matched::default();
        matched.find(found, descriptors, &overrides)?;
        for banned in &verdict.bans {
            matched.ban(banned.descriptor);
            intent = Intent::Look;
        }
        let bill = Bill {
            domain,
            descriptors,
            intent,
            headroom: self.headroom(),
            consistency: self.config.consistency,
            matches: matched.as_slice(),
        };
        let charging = self.charging(found);
        let charged = self
            .charge(&bill, charging, &mut verdict.decisions, failure)
            .await;
        if let Err(failed) = &charged {
            matched.leave_undecided(&failed.answers);
        }
        for matched in matched.as_slice() {
            verdict.applied.push(matched.applied);
        }
        drop(matched);
        verdict.overrides = overrides;
        verdict.judge(charged, self.config.shadow);
        Ok(())
    }

    /// The descriptors that are banned now; a refund is not, because it must not be denied. In a box, so that the future of every
    /// request without bans stays small.
    fn banned<'a>(
        &'a self,
        rules: &'a RuleSet,
        domain: &'a str,
        descriptors: &'a [Descriptor<'_>],
    ) -> Pin<Box<impl Future<Output = Box<[BannedDescriptor]>>>> {
        Box::pin(async move {
            let bans = self.find_bans(rules, domain, descriptors);
            if bans.is_empty() {
                return Box::default();
            }
            in_force(&bans, self.store.now().await.ok())
        })
    }

    /// The bans on descriptors, and the places of those.
    fn find_bans(
        &self,
        rules: &RuleSet,
        domain: &str,
        descriptors: &[Descriptor<'_>],
    ) -> Vec<(u16, Arc<Ban>)> {
        let Some(domain) = rules.domain(domain) else {
            return Vec::new();
        };
        let ban_on = |descriptor: &Descriptor<'_>| match descriptor.hits {
            Hits::Refund(_) => None,
            Hits::OfRequest | Hits::Take(_) => self
                .bans
                .find(domain.find(descriptor.entries)?, descriptor.entries),
        };
        (0_u16..)
            .zip(descriptors.iter().take(MAX_DESCRIPTORS))
            .filter_map(|(index, descriptor)| Some((index, ban_on(descriptor)?)))
            .collect()
    }

    /// Asks the store, if there is anything to ask, and lets others answer for a store that fails.
    async fn charge(
        &self,
        bill: &Bill<'_>,
        charging: Charging,
        decisions: &mut Decisions,
        failure: Option<StoreError>,
    ) -> Result<Option<Receipt>, Box<Failed>> {
        // Filled in place: moved out of a function, each would be copied whole.
        let mut addresses = Addresses::new();
        let (mut values, mut charges) = (Values::new(), Charges::new());
        bill.add_addresses(&mut addresses);
        bill.add_values(&addresses, &mut values);
        bill.add_charges(&values, &mut charges);
        if charges.is_empty() {
            return Ok(None);
        }
        let asked = match failure {
            None if bill.takes_from_all() => self.store.charge(&charges, charging, decisions).await,
            None => self.ask(*bill, &charges, charging, decisions).await,
            Some(error) => Err(error),
        };
        asked.map(Some).map_err(|error| {
            let (store, limits) = (&self.store, bill.limits());
            let failed = failure::stand_in(store, &charges, limits, charging, decisions, error);
            Box::new(failed.with_looks(self, *bill, &charges, charging, decisions))
        })
    }

    /// Refunds what is to be given back, then looks and charges.
    async fn ask(
        &self,
        bill: Bill<'_>,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        for (index, hits) in bill.refunds() {
            let (charge, to) = (&charges[index], RefundTo::Current);
            let (key, quota) = (charge.key, charge.quota);
            let refunded = self.store.refund(key, quota, hits, to, charge.consistency);
            refunded.await?;
        }
        self.charge_looks(bill, charges, charging, decisions).await
    }
}

pub(crate) fn validate(domain: &str, descriptors: &[Descriptor<'_>]) -> Result<(), LimiterError> {
    if domain.is_empty() {
        return Err(LimiterError::EmptyDomain);
    }
    if descriptors.is_empty() {
        return Err(LimiterError::NoDescriptors);
    }
    if descriptors.len() > MAX_DESCRIPTORS {
        return Err(LimiterError::TooManyDescriptors {
            most: MAX_DESCRIPTORS,
        });
    }
    Ok(())
}

/// The bans that are in force, at the store's time if that is known.
fn in_force(bans: &[(u16, Arc<Ban>)], now: Option<Time>) -> Box<[BannedDescriptor]> {
    let in_force = bans.iter().filter_map(|(descriptor, ban)| {
        let left = match now {
            Some(now) => ban.left(now)?,
            // Better too long than lifted because the store is gone.
            None => ban.whole(),
        };
        Some(BannedDescriptor {
            descriptor: *descriptor,
            retry: left.retry(),
        })
    });
    in_force.collect()
}

/// What `future` comes to, if it needs no waiting.
fn now_or_never<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}
