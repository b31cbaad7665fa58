//! One request: hold its counters, let each limit speak, and charge as its charging says.

use std::slice;

use smallvec::SmallVec;
use tidegate_algorithms::{Decision, Time};

use super::account::Account;
use super::claim::{Claim, Claims, Hold, claim_all, claim_one};
use super::core::Core;
use super::fingerprint::Fingerprinter;
use super::shared::{Overflow, substitutes};
use super::sync::Ordering;
use crate::{
    Admission, Charge, Charging, Clock, Decisions, MAX_CHARGES, ManualClock, OnFull, Receipt,
    StoreError,
};

// === impl Core ===

impl Core {
    #[inline]
    pub(super) fn charge(
        &self,
        fingerprinter: &Fingerprinter,
        clock: &impl Clock,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        decisions.clear();
        if let [charge] = charges
            && let Some(receipt) =
                self.charge_quickly(fingerprinter, clock, charge, charging, decisions)
        {
            return Ok(receipt);
        }
        self.charge_at_length(fingerprinter, clock, charges, charging, decisions)
    }

    #[inline(never)]
    fn charge_at_length(
        &self,
        fingerprinter: &Fingerprinter,
        clock: &impl Clock,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        let mut charge_all = |charges: &[Charge<'_>]| {
            self.charge_numbered(fingerprinter, clock, charges, charging, decisions)
        };
        match charge_all(charges) {
            Err(StoreError::TooManyWindows { .. }) => self.charge_as_buckets(charges, charge_all),
            charged => charged,
        }
    }

    /// Charges limits whose layouts all have numbers, or can have.
    #[inline]
    fn charge_numbered(
        &self,
        fingerprinter: &Fingerprinter,
        clock: &impl Clock,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        if charges.len() > MAX_CHARGES {
            return Err(StoreError::TooManyCharges {
                asked: charges.len(),
                most: MAX_CHARGES,
            });
        }
        let (mut claims, mut claim_of) = (Claims::new(), SmallVec::new());
        claim_all(
            self,
            fingerprinter,
            clock,
            charges,
            &mut claims,
            &mut claim_of,
        )?;
        let hold = self.hold(&mut claims, clock)?;
        let mut accounts: SmallVec<[Account<'_>; 8]> = SmallVec::new();
        for claim in &claims {
            accounts.push(self.open(claim, &hold));
        }
        if accounts.iter().any(Account::has_no_room)
            && self.count_untracked(charges, &claim_of, &accounts, hold.now)
        {
            let held = (claims.as_slice(), &hold);
            return self.charge_shared(charges, &claim_of, held, accounts, charging, decisions);
        }
        let admission = decide(
            charges,
            &claim_of,
            &mut accounts,
            charging,
            hold.now,
            decisions,
        );
        for (account, claim) in accounts.iter().zip(&claims) {
            self.close(account, claim, &hold);
        }
        Ok(Receipt::new(hold.now, admission))
    }

    /// Counts the charges on which `on_full` decides, and returns true if some of them go to shared counters.
    #[cold]
    fn count_untracked(
        &self,
        charges: &[Charge<'_>],
        claim_of: &[usize],
        accounts: &[Account<'_>],
        now: Time,
    ) -> bool {
        let mut is_shared = false;
        for (charge, &of) in charges.iter().zip(claim_of) {
            is_shared |= self.shared_for(&accounts[of], charge).is_some();
            let is_note = charge.on_full == OnFull::Omit;
            if accounts[of].has_no_room() && charge.cost > 0 && !is_note {
                self.untracked.add_one();
                self.full_at.store(now.nanos(), Ordering::Relaxed);
            }
        }
        is_shared
    }

    /// Charges a request of which some counters found no room: those in shared counters.
    #[cold]
    fn charge_shared(
        &self,
        charges: &[Charge<'_>],
        claim_of: &[usize],
        (claims, hold): (&[Claim<'_>], &Hold<'_>),
        mut own: SmallVec<[Account<'_>; 8]>,
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        let shared = self.shared.as_deref().ok_or(StoreError::NoStandby)?;
        let quotas = substitutes(self, charges, claim_of, &own);
        let mut overflow = Overflow::new(self, charges, claim_of, claims, &own, &quotas, hold)?;
        let clock = ManualClock::at(hold.now);
        let shared_hold = shared.hold(&mut overflow.claims, &clock)?;
        // A log that cannot grow is requested all the same, and so not evicted meanwhile.
        let mut shared_charges = 0;
        for (index, charge) in charges.iter().enumerate() {
            let claimed = claim_of[index];
            if claimed != overflow.account_of[index] && charge.cost > 0 {
                own[claimed].is_requested = true;
                shared_charges |= 1 << index;
            }
        }
        let mut accounts: SmallVec<[Account<'_>; 8]> = SmallVec::new();
        for account in own {
            accounts.push(account);
        }
        for claim in &overflow.claims {
            accounts.push(shared.open(claim, &shared_hold));
        }
        let Overflow {
            charges,
            account_of,
            ..
        } = &overflow;
        let admission = decide(
            charges,
            account_of,
            &mut accounts,
            charging,
            hold.now,
            decisions,
        );
        let (own, others) = accounts.split_at(claims.len());
        for (account, claim) in own.iter().zip(claims) {
            self.close(account, claim, hold);
        }
        for (account, claim) in others.iter().zip(&overflow.claims) {
            shared.close(account, claim, &shared_hold);
        }
        Ok(Receipt::new(hold.now, admission).charged_to_shared(shared_charges))
    }

    /// Looks at one counter.
    pub(super) fn look(
        &self,
        fingerprinter: &Fingerprinter,
        clock: &impl Clock,
        charge: &Charge<'_>,
    ) -> Result<Decision, StoreError> {
        let (charges, claim_of) = (slice::from_ref(charge), [0]);
        let mut claims = claim_one(self, fingerprinter, clock, charge.key, charge.quota)?;
        let hold = self.hold(&mut claims, clock)?;
        let accounts = [self.open(&claims[0], &hold)];
        let Some(shared) = self.shared_for(&accounts[0], charge) else {
            return Ok(accounts[0].look(charge, hold.now));
        };
        let quotas = substitutes(self, charges, &claim_of, &accounts);
        let mut overflow =
            Overflow::new(self, charges, &claim_of, &claims, &accounts, &quotas, &hold)?;
        let shared_hold = shared.hold(&mut overflow.claims, &ManualClock::at(hold.now))?;
        let account = shared.open(&overflow.claims[0], &shared_hold);
        Ok(account.look(&overflow.charges[0], hold.now))
    }
}

/// Lets the account of each charge decide, and takes the charges back if that denies the request as a whole.
#[inline]
fn decide(
    charges: &[Charge<'_>],
    account_of: &[usize],
    accounts: &mut [Account<'_>],
    charging: Charging,
    now: Time,
    decisions: &mut Decisions,
) -> Admission {
    for (charge, &of) in charges.iter().zip(account_of) {
        decisions.push(accounts[of].judge(charge, charging, now));
    }
    let admission = Admission::of(charges, decisions);
    if (charging, admission) == (Charging::AllOrNone, Admission::Refused) {
        for ((charge, &of), decision) in charges.iter().zip(account_of).zip(&mut *decisions) {
            accounts[of].uncharge(charge, decision, now);
        }
    }
    admission
}
