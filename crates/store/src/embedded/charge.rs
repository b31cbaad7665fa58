//! One request: hold its counters, let each limit speak, and charge as its charging says.

use std::slice;

use smallvec::SmallVec;
use tidegate_algorithms::Decision;

use super::account::Account;
use super::claim::claim_all;
use super::core::Core;
use super::fingerprint::Fingerprinter;
use crate::{Admission, Charge, Charging, Clock, Decisions, MAX_CHARGES, Receipt, StoreError};

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
        if charges.len() > MAX_CHARGES {
            return Err(StoreError::TooManyCharges {
                asked: charges.len(),
                most: MAX_CHARGES,
            });
        }
        let (mut claims, claim_of) = claim_all(self, fingerprinter, clock, charges)?;
        let hold = self.hold(&mut claims, clock)?;
        let mut accounts: SmallVec<[Account<'_>; 8]> = SmallVec::new();
        for claim in &claims {
            accounts.push(self.open(claim, &hold));
        }
        for (charge, &of) in charges.iter().zip(&claim_of) {
            decisions.push(accounts[of].judge(charge, charging, hold.now));
        }
        let admission = Admission::of(charges, decisions);
        if (charging, admission) == (Charging::AllOrNone, Admission::Refused) {
            for ((charge, &of), decision) in charges.iter().zip(&claim_of).zip(&mut *decisions) {
                accounts[of].uncharge(charge, decision, hold.now);
            }
        }
        for (account, claim) in accounts.iter().zip(&claims) {
            self.close(account, claim, &hold);
        }
        Ok(Receipt::new(hold.now, admission))
    }

    /// Looks at one counter.
    pub(super) fn look(
        &self,
        fingerprinter: &Fingerprinter,
        clock: &impl Clock,
        charge: &Charge<'_>,
    ) -> Result<Decision, StoreError> {
        let (mut claims, _) = claim_all(self, fingerprinter, clock, slice::from_ref(charge))?;
        let hold = self.hold(&mut claims, clock)?;
        let account = self.open(&claims[0], &hold);
        let decision = account.look(charge, hold.now);
        // Frees the slot of a caller never seen.
        self.close(&account, &claims[0], &hold);
        Ok(decision)
    }
}
