//! Keys and charges that outlive whoever asked for them.

use tidegate_algorithms::{Headroom, Quota};
use tidegate_store::{Charge, Consistency, CounterKey, LimitId, Mode, OnFull};

/// The key of a counter.
#[derive(Debug)]
pub(super) struct OwnedKey {
    limit: LimitId,
    values: Box<[Box<str>]>,
}

/// One limit to charge, with all that it needs.
#[derive(Debug)]
pub(super) struct OwnedCharge {
    key: OwnedKey,
    quota: Quota,
    cost: u64,
    mode: Mode,
    headroom: Headroom,
    on_full: OnFull,
    consistency: Consistency,
}

// === impl OwnedKey ===

impl OwnedKey {
    pub(super) fn of(CounterKey { limit, values }: CounterKey<'_>) -> Self {
        Self {
            limit,
            values: values.iter().map(|&value| value.into()).collect(),
        }
    }

    /// Its values, to be borrowed by it.
    pub(super) fn values(&self) -> Vec<&str> {
        self.values.iter().map(AsRef::as_ref).collect()
    }

    /// The key, over its [`values`](Self::values).
    pub(super) const fn key<'a>(&'a self, values: &'a [&'a str]) -> CounterKey<'a> {
        CounterKey {
            limit: self.limit,
            values,
        }
    }
}

// === impl OwnedCharge ===

impl OwnedCharge {
    pub(super) fn of(charge: &Charge<'_>) -> Self {
        let Charge {
            key,
            quota,
            cost,
            mode,
            headroom,
            on_full,
            consistency,
        } = *charge;
        Self {
            key: OwnedKey::of(key),
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
        self.key.values()
    }

    /// The charge, over its [`values`](Self::values).
    pub(super) const fn charge<'a>(&'a self, values: &'a [&'a str]) -> Charge<'a> {
        Charge {
            key: self.key.key(values),
            quota: &self.quota,
            cost: self.cost,
            mode: self.mode,
            headroom: self.headroom,
            on_full: self.on_full,
            consistency: self.consistency,
        }
    }
}
