//! Stores that fail.

use std::future::{Future, pending, ready};

use tidegate_algorithms::{Decision, Headroom, Quota, Time};
use tidegate_store::{
    Charge, Charging, Consistency, CounterKey, Cursor, Decisions, EmbeddedStore, ManualClock, Page,
    Receipt, Store, StoreConfig, StoreError,
};

pub(crate) const ERROR: StoreError = StoreError::TooManyWindows { most: 1 };

/// A store that always fails.
pub(crate) struct Broken;

/// A store that never answers.
pub(crate) struct Stuck;

/// A store that always fails, on a node that stands by.
pub(crate) struct Alone(EmbeddedStore<ManualClock>);

// === impl Broken ===

impl Store for Broken {
    fn charge(
        &self,
        _charges: &[Charge<'_>],
        _charging: Charging,
        _decisions: &mut Decisions,
    ) -> impl Future<Output = Result<Receipt, StoreError>> + Send {
        ready(Err(ERROR))
    }

    fn peek(
        &self,
        _key: CounterKey<'_>,
        _quota: &Quota,
        _headroom: Headroom,
        _: Consistency,
    ) -> impl Future<Output = Result<Decision, StoreError>> + Send {
        ready(Err(ERROR))
    }

    fn refund(
        &self,
        _key: CounterKey<'_>,
        _quota: &Quota,
        _cost: u64,
        _: Consistency,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        ready(Err(ERROR))
    }

    fn reset(
        &self,
        _key: CounterKey<'_>,
        _quota: &Quota,
        _: Consistency,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send {
        ready(Err(ERROR))
    }

    fn now(&self) -> impl Future<Output = Result<Time, StoreError>> + Send {
        ready(Err(ERROR))
    }

    fn list(
        &self,
        _cursor: Cursor,
        _most: usize,
    ) -> impl Future<Output = Result<Page, StoreError>> + Send {
        ready(Err(ERROR))
    }
}

// === impl Stuck ===

impl Store for Stuck {
    fn charge(
        &self,
        _charges: &[Charge<'_>],
        _charging: Charging,
        _decisions: &mut Decisions,
    ) -> impl Future<Output = Result<Receipt, StoreError>> + Send {
        pending()
    }

    fn peek(
        &self,
        _key: CounterKey<'_>,
        _quota: &Quota,
        _headroom: Headroom,
        _: Consistency,
    ) -> impl Future<Output = Result<Decision, StoreError>> + Send {
        pending()
    }

    fn refund(
        &self,
        _key: CounterKey<'_>,
        _quota: &Quota,
        _cost: u64,
        _: Consistency,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        pending()
    }

    fn reset(
        &self,
        _key: CounterKey<'_>,
        _quota: &Quota,
        _: Consistency,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send {
        pending()
    }

    fn now(&self) -> impl Future<Output = Result<Time, StoreError>> + Send {
        pending()
    }

    fn list(
        &self,
        _cursor: Cursor,
        _most: usize,
    ) -> impl Future<Output = Result<Page, StoreError>> + Send {
        pending()
    }
}

// === impl Alone ===

impl Alone {
    pub(crate) fn at(time: Time) -> Self {
        let clock = ManualClock::at(time);
        Self(EmbeddedStore::with_clock(StoreConfig::default(), clock))
    }
}

impl Store for Alone {
    fn charge(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> impl Future<Output = Result<Receipt, StoreError>> + Send {
        // Some of it may have been decided by the time it fails.
        let looks: Vec<_> = charges.iter().map(|it| Charge { cost: 0, ..*it }).collect();
        let _ = self.0.charge_now(&looks, charging, decisions);
        Broken.charge(charges, charging, decisions)
    }

    fn charge_alone(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        self.0.charge_now(charges, charging, decisions)
    }

    fn peek(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        headroom: Headroom,
        consistency: Consistency,
    ) -> impl Future<Output = Result<Decision, StoreError>> + Send {
        Broken.peek(key, quota, headroom, consistency)
    }

    fn refund(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
        consistency: Consistency,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        Broken.refund(key, quota, cost, consistency)
    }

    fn reset(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        consistency: Consistency,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send {
        Broken.reset(key, quota, consistency)
    }

    fn now(&self) -> impl Future<Output = Result<Time, StoreError>> + Send {
        Broken.now()
    }

    fn list(
        &self,
        cursor: Cursor,
        most: usize,
    ) -> impl Future<Output = Result<Page, StoreError>> + Send {
        Broken.list(cursor, most)
    }
}
