//! Charges that outlive whoever asked for them.

use tidegate_algorithms::{Headroom, Quota};
use tidegate_store::{Charge, Consistency, CounterKey, LimitId, Mode, OnFull};

/// One limit to charge, with all that it needs.
#[derive(Debug)]
pub(super) struct OwnedCharge {
    limit: LimitId,
    values: Box<[Box<str>]>,
    quota: Quota,
    cost: u64,
    mode: Mode,
    headroom: Headroom,
    on_full: OnFull,
    consistency: Consistency,
}

// === impl OwnedCharge ===

impl OwnedCharge {
    pub(super) fn of(charge: &Charge<'_>) -> Self {
        let Charge {
            key: CounterKey { limit, values },
            quota,
            cost,
            mode,
            headroom,
            on_full,
            consistency,
        } = *charge;
        Self {
            limit,
            values: values.iter().map(|&value| value.into()).collect(),
            quota: quota.clone(),
            cost,
            mode,
            headroom,
            on_full,
            consistency,
        }
    }

    /// The values of its key, to be borrowed by it.
    pub(super) fn values(&self) -> Vec<&str> {
        self.values.iter().map(AsRef::as_ref).collect()
    }

    /// The charge, over its [`values`](Self::values).
    pub(super) const fn charge<'a>(&'a self, values: &'a [&'a str]) -> Charge<'a> {
        Charge {
            key: CounterKey {
                limit: self.limit,
                values,
            },
            quota: &self.quota,
            cost: self.cost,
            mode: self.mode,
            headroom: self.headroom,
            on_full: self.on_full,
            consistency: self.consistency,
        }
    }
}
