//! A store that always fails.

use tidegate_limiter::{Charging, Decision, Quota, RefundTo, Store, StoreError, Time};
use tidegate_store::{Charge, Consistency, CounterKey, Cursor, Decisions, Page, Receipt};

pub(crate) struct Broken;

const ERROR: StoreError = StoreError::TooManyWindows { most: 1 };

// === impl Broken ===

impl Store for Broken {
    async fn charge(
        &self,
        _: &[Charge<'_>],
        _: Charging,
        _: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        Err(ERROR)
    }

    async fn peek(&self, _: &Charge<'_>) -> Result<Decision, StoreError> {
        Err(ERROR)
    }

    async fn refund(
        &self,
        _: CounterKey<'_>,
        _: &Quota,
        _: u64,
        _: RefundTo,
        _: Consistency,
    ) -> Result<(), StoreError> {
        Err(ERROR)
    }

    async fn reset(
        &self,
        _: CounterKey<'_>,
        _: &Quota,
        _: Consistency,
    ) -> Result<bool, StoreError> {
        Err(ERROR)
    }

    async fn now(&self) -> Result<Time, StoreError> {
        Err(ERROR)
    }

    async fn list(&self, _: Cursor, _: usize) -> Result<Page, StoreError> {
        Err(ERROR)
    }
}
