//! One request: decided by the mirror while the budget lasts, by the node's share when it is cut off.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tidegate_algorithms::{Decision, Outcome, Quota, Retry, Standing};
use tidegate_store::{Charge, Charging, Clock, CounterKey, StoreError};

use super::Eventual;
use super::budget::budget;
use super::entry::Entry;
use crate::capacity::capacity;
use crate::edge;
use crate::memory::{FromMemory, Took};

// === impl Eventual ===

impl<C: Clock> FromMemory for Eventual<C> {
    fn take(&self, charge: &Charge<'_>, charging: Charging) -> Result<Option<Took>, StoreError> {
        if !self.config.suits(charge.quota) {
            return Ok(None);
        }
        let digest = self.digester.digest(charge.key);
        let mut part = self.table.part(digest);
        // Not after it is charged: what is between an edge and the charge is lost, and spent by nobody.
        let charged = Some(self.clock.now());
        let new = || Entry::new(charge.key, charge.quota, self.regions.len());
        let decision = match part.entry(digest, self.table.most(), new) {
            Some(entry) => self.decide(entry, charge, charging)?,
            None => self.take_share(charge, charging)?,
        };
        part.queue(digest);
        Ok(Some(Took { decision, charged }))
    }

    fn put_back(&self, charge: &Charge<'_>, took: &Took) {
        let digest = self.digester.digest(charge.key);
        let mut part = self.table.part(digest);
        let entry = part.entries.get_mut(&digest);
        let now = self.clock.now();
        let is_over = |charged| edge::is_between(charge.quota, charged, now);
        if !took.charged.is_some_and(is_over) {
            self.refund_mirror(entry.as_deref(), charge);
        }
        if let Some(entry) = entry {
            entry.unspend(charge.cost);
        }
    }

    fn correct(&self, charge: &Charge<'_>, decision: &mut Decision) {
        if let Ok(untouched) = self.mirror.peek(charge.key, charge.quota) {
            decision.remaining = untouched.remaining.min(decision.limit);
            decision.reset_after = untouched.reset_after;
        }
    }
}

impl<C: Clock> Eventual<C> {
    /// What is left of a limit as this node sees it.
    pub(crate) fn peek(&self, key: CounterKey<'_>, quota: &Quota) -> Result<Decision, StoreError> {
        self.mirror.peek(key, quota)
    }

    /// Gives back `cost`, as far as this node is concerned: what the others were told stays told.
    pub(crate) fn refund(&self, key: CounterKey<'_>, quota: &Quota, cost: u64) {
        let digest = self.digester.digest(key);
        let mut part = self.table.part(digest);
        if let Some(entry) = part.entries.get_mut(&digest) {
            let forgiven = entry.debt.min(cost);
            entry.debt -= forgiven;
            self.mirror.refund(key, quota, cost - forgiven);
        }
    }

    /// Forgets what is used of a limit, here at once and elsewhere when it is told. Says whether there was
    /// something here.
    pub(crate) fn reset(&self, key: CounterKey<'_>, quota: &Quota) -> Result<bool, StoreError> {
        let digest = self.digester.digest(key);
        let mut part = self.table.part(digest);
        let new = || Entry::new(key, quota, self.regions.len());
        if let Some(entry) = part.entry(digest, self.table.most(), new) {
            entry.used_at = self.clock.own();
            entry.debt = 0;
            entry.is_to_reset = true;
            self.shares.reset(key, quota)?;
            for region in 0..self.regions.len() {
                part.queue_for(digest, region);
            }
        }
        self.hurry();
        self.mirror.reset(key, quota)
    }

    /// Takes back a charge from the mirror, and from the share if the node goes by that.
    fn refund_mirror(&self, entry: Option<&Entry>, charge: &Charge<'_>) {
        if entry.is_none_or(|entry| entry.alone)
            && let Some(quota) = self.share_of(charge.quota)
        {
            self.shares.refund(charge.key, &quota, charge.cost);
        }
        if entry.is_some() {
            self.mirror.refund(charge.key, charge.quota, charge.cost);
        }
    }

    fn decide(
        &self,
        entry: &mut Entry,
        charge: &Charge<'_>,
        charging: Charging,
    ) -> Result<Decision, StoreError> {
        if entry.quota != *charge.quota {
            entry.renumber(charge.quota);
        }
        entry.used_at = self.clock.own();
        if self.is_cut_off() {
            return self.decide_alone(entry, charge, charging);
        }
        self.rejoin(entry, charge.key);
        entry.debt = self.mirror.force(charge.key, charge.quota, entry.debt)?;
        let decision = self.mirror.charge(charge, charging)?;
        if charge.cost == 0 || !decision.is_allowed() {
            return Ok(decision);
        }
        if entry.debt == 0 && self.may_spend(entry, charge, &decision) {
            entry.spend(charge.cost);
            return Ok(decision);
        }
        self.mirror.refund(charge.key, charge.quota, charge.cost);
        self.hurry();
        Ok(Decision {
            outcome: wait_for(self.config.beat()),
            remaining: 0,
            ..decision
        })
    }

    /// Whether so much may be admitted that not everybody knows of. The first request since all were
    /// told always may, for one that costs more than the budget would never get through.
    fn may_spend(&self, entry: &Entry, charge: &Charge<'_>, decision: &Decision) -> bool {
        let pending = entry.pending();
        let extra = match decision.outcome {
            Outcome::Allowed {
                standing: Standing::Over,
                ..
            } => charge.quota.most_extra(),
            _ => 0,
        };
        let after = pending.saturating_add(charge.cost);
        let left = decision
            .remaining
            .saturating_add(extra)
            .saturating_add(after);
        let most = capacity(charge.quota).saturating_add(extra);
        pending == 0 || after <= budget(left.min(most), self.config.slack, self.members())
    }

    /// Decides by this node's share, for somebody cannot be told.
    fn decide_alone(
        &self,
        entry: &mut Entry,
        charge: &Charge<'_>,
        charging: Charging,
    ) -> Result<Decision, StoreError> {
        if !entry.alone {
            entry.alone = true;
            self.open_share(charge.key, charge.quota)?;
        }
        let decision = self.take_share(charge, charging)?;
        if decision.is_allowed() {
            let unfit = self.mirror.force(charge.key, charge.quota, charge.cost)?;
            entry.debt = entry.debt.saturating_add(unfit);
            entry.spend(charge.cost);
        }
        Ok(decision)
    }

    /// Goes by the mirror again.
    fn rejoin(&self, entry: &mut Entry, key: CounterKey<'_>) {
        if std::mem::take(&mut entry.alone) {
            // Forgotten by itself at the latest, if it has no state of its own.
            let _ = self.shares.reset(key, &entry.quota);
        }
    }

    /// Begins with the node's part of what was left when it was cut off, or with what is left of a share
    /// that was restored from an earlier process.
    fn open_share(&self, key: CounterKey<'_>, quota: &Quota) -> Result<(), StoreError> {
        let Some(part) = self.share_of(quota) else {
            return Ok(());
        };
        let left = self.mirror.peek(key, quota)?.remaining / u64::from(self.members());
        let in_share = self.shares.peek(key, &part)?.remaining;
        self.shares
            .force(key, &part, in_share.saturating_sub(left.max(1)))?;
        Ok(())
    }

    fn take_share(&self, charge: &Charge<'_>, charging: Charging) -> Result<Decision, StoreError> {
        self.tallies.alone.fetch_add(charge.cost, Ordering::Relaxed);
        let part = self.share_of(charge.quota);
        let charge = Charge {
            quota: part.as_ref().unwrap_or(charge.quota),
            ..*charge
        };
        self.shares.charge(&charge, charging)
    }

    /// This node's share of a limit, at least 1: a limit smaller than the number of nodes would
    /// otherwise admit nobody while the store is away.
    fn share_of(&self, quota: &Quota) -> Option<Quota> {
        quota.part(1, u64::from(self.members()), 1)
    }
}

const fn wait_for(wait: Duration) -> Outcome {
    Outcome::Denied {
        retry: Retry::After(wait),
    }
}
