//! Looks: descriptors of cost 0, which charge nothing.
//!
//! A caller that looks first and debits later must be told when the limit is full: a debit that does not fit is not charged, so
//! the counter would stay as it is and every further look be allowed. A look is therefore denied while a cost of 1 does not fit.
//!
//! Standing in for envoyproxy/ratelimit ([`LooksAtLimit::Allow`]), a fixed window that counts what it denies is the exception. There
//! the debit after the look is counted and the next look finds more than the limit.

use smallvec::SmallVec;
use tidegate_algorithms::{Decision, Meter, Outcome, Retry};
use tidegate_store::{Admission, Charge, Charging, Decisions, Mode, Receipt, Store, StoreError};

use crate::bill::{Bill, Charges};
use crate::failure::Failed;
use crate::{Limiter, LooksAtLimit};

/// The limits that are full, by their place among the charges, and what they say to a cost of 1.
type FullLimits = SmallVec<[(usize, Outcome); 4]>;

// === impl Limiter ===

impl<S: Store> Limiter<S> {
    /// Charges a request with looks. These come first: under `all_or_none` a look that is denied keeps the
    /// rest of the request from being charged.
    pub(crate) async fn charge_looks(
        &self,
        bill: Bill<'_>,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        let full = self.find_full(bill, charges, charging).await;
        if full.is_empty() {
            return self.store().charge(charges, charging, decisions).await;
        }
        let is_denied = charging == Charging::AllOrNone && denies(charges, &full);
        let mut asked: Charges<'_> = charges.iter().copied().collect();
        for (index, charge) in asked.iter_mut().enumerate() {
            // The store would take it for a quota limit that allows the request.
            if charge.mode == Mode::Quota && is_full(&full, index) {
                charge.mode = Mode::Shadow;
            }
            if is_denied && !charge.quota.is_postpaid() {
                charge.cost = 0;
            }
        }
        let mut receipt = self.store().charge(&asked, charging, decisions).await?;
        for (index, outcome) in full {
            if let Some(decision) = decisions.get_mut(index) {
                decision.outcome = outcome;
            }
        }
        receipt.admission = Admission::of(charges, decisions);
        Ok(receipt)
    }

    /// A limit that the store cannot look at is left to the charge, which fails likewise or decides from memory.
    async fn find_full(
        &self,
        bill: Bill<'_>,
        charges: &[Charge<'_>],
        charging: Charging,
    ) -> FullLimits {
        let mut full = FullLimits::new();
        for (index, charge) in bill.looks().filter_map(|at| Some((at, charges.get(at)?))) {
            if self.config.looks == LooksAtLimit::Allow
                && counts_denials(self.store(), charge, charging)
            {
                continue;
            }
            if let Ok(looked) = self.store().peek(charge).await
                && !looked.is_allowed()
            {
                full.push((index, looked.outcome));
            }
        }
        full
    }
}

// === impl Failed ===

impl Failed {
    /// Denies looks at limits that this node decided on alone and that have nothing left. Alone, a node knows
    /// no better time for a retry than that of the whole limit.
    #[cold]
    pub(crate) fn with_looks(
        mut self,
        limiter: &Limiter<impl Store>,
        bill: Bill<'_>,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut [Decision],
    ) -> Self {
        // There are decisions only on the limits that no policy answered for.
        let is_decided = |at: &usize| self.answers.get(*at) == Some(&None);
        let decided: SmallVec<[usize; 8]> = (0..charges.len()).filter(is_decided).collect();
        let looks: SmallVec<[usize; 8]> = bill.looks().collect();
        for (at, decision) in decided.into_iter().zip(decisions) {
            let charge = &charges[at];
            let is_full = looks.contains(&at)
                && decision.is_allowed()
                && decision.remaining == 0
                && charge.quota.most_extra() == 0
                && (limiter.config.looks == LooksAtLimit::Deny
                    || !counts_denials(limiter.store(), charge, charging));
            if is_full {
                let retry = match charge.quota.limit() {
                    0 => Retry::Never,
                    _ => Retry::After(decision.reset_after),
                };
                decision.outcome = Outcome::Denied { retry };
                if charge.mode == Mode::Enforce {
                    self.admission = Admission::Refused;
                }
            }
        }
        self
    }
}

/// True if a limit counts what it denies, so that a debit that does not fit shows in the next look.
fn counts_denials(store: &impl Store, charge: &Charge<'_>, charging: Charging) -> bool {
    charging == Charging::EveryMatch
        && !charge.quota.is_postpaid()
        && matches!(charge.quota.meter(), Meter::FixedWindow(_))
        && store.counts_denials(charge.consistency)
}

/// True if the full limits alone deny the request.
fn denies(charges: &[Charge<'_>], full: &FullLimits) -> bool {
    let mut quotas = (0..charges.len())
        .filter(|at| charges[*at].mode == Mode::Quota)
        .peekable();
    let has_quotas = quotas.peek().is_some();
    full.iter()
        .any(|(at, _)| charges[*at].mode == Mode::Enforce)
        || (has_quotas && quotas.all(|at| is_full(full, at)))
}

fn is_full(full: &FullLimits, at: usize) -> bool {
    full.iter().any(|(full, _)| *full == at)
}
