//! Limits whose [layout](super::layout) gets no number, because all are in use: they are counted as token buckets of
//! the same limit and window, which need none.
//!
//! The rules in force have numbers of their own, so this happens only to limits that come with requests, and to those
//! of rules that were just replaced. A bucket allows at most twice the limit in one window. A limit that gets a number
//! later starts anew once.

use smallvec::SmallVec;
use tidegate_algorithms::{Algorithm, Allowance, Quota, QuotaSpec, Refill};

use super::core::Core;
use super::layout::{Layout, Shape};
use super::shared::{LARGEST_LIMIT, most_at_once};
use crate::{Charge, Receipt, StoreError};

// === impl Core ===

impl Core {
    /// Charges with `charge`, as buckets, limits of which some get no number.
    #[cold]
    pub(super) fn charge_as_buckets(
        &self,
        charges: &[Charge<'_>],
        mut charge: impl FnMut(&[Charge<'_>]) -> Result<Receipt, StoreError>,
    ) -> Result<Receipt, StoreError> {
        let lacks_number = |quota: &Quota| self.layouts.search(Layout::of(quota)).is_none();
        match charge_buckets(charges, lacks_number, &mut charge) {
            // Their shared counters get no number, or another thread has just retired one.
            Err(StoreError::TooManyWindows { .. }) => charge_buckets(charges, |_| true, charge),
            charged => charged,
        }
    }
}

/// Does what `act` does for one limit, as a bucket if it gets no number.
#[inline]
pub(super) fn counted<T>(
    quota: &Quota,
    act: impl Fn(&Quota) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    match act(quota) {
        Err(StoreError::TooManyWindows { .. }) => act(bucket(quota).as_ref().unwrap_or(quota)),
        done => done,
    }
}

/// Charges with `charge` those of `charges` as buckets whose quota `is_replaced`.
fn charge_buckets(
    charges: &[Charge<'_>],
    is_replaced: impl Fn(&Quota) -> bool,
    mut charge: impl FnMut(&[Charge<'_>]) -> Result<Receipt, StoreError>,
) -> Result<Receipt, StoreError> {
    let buckets: SmallVec<[Option<Quota>; 8]> = charges
        .iter()
        .map(|charge| bucket(charge.quota).filter(|_| is_replaced(charge.quota)))
        .collect();
    let charges: SmallVec<[Charge<'_>; 8]> = charges
        .iter()
        .zip(&buckets)
        .map(|(charge, bucket)| Charge {
            quota: bucket.as_ref().unwrap_or(charge.quota),
            ..*charge
        })
        .collect();
    charge(&charges)
}

/// The bucket that stands in for `quota`; `None` if it is one.
fn bucket(quota: &Quota) -> Option<Quota> {
    if Layout::of(quota).shape == Shape::Instant {
        return None;
    }
    let allowance = match quota.allowance() {
        postpaid @ Allowance::Postpaid { .. } => postpaid,
        _ => Allowance::Hard,
    };
    let spec = QuotaSpec {
        limit: quota.limit(),
        window: quota.window(),
        algorithm: Algorithm::TokenBucket {
            burst: Some(most_at_once(quota)),
            refill: Refill::Continuous,
        },
        allowance,
    };
    let most = LARGEST_LIMIT.min(quota.limit());
    let smaller = QuotaSpec {
        limit: most,
        algorithm: Algorithm::TokenBucket {
            burst: None,
            refill: Refill::Continuous,
        },
        allowance: Allowance::Hard,
        ..spec.clone()
    };
    Quota::new(&spec).or_else(|_| Quota::new(&smaller)).ok()
}
