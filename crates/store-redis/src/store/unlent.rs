//! Nothing is lent yet: whoever keeps no keys in memory never asks.

use tidegate_algorithms::Quota;
use tidegate_store::{CounterKey, Draw, Lender, Loan, StoreError};

use super::RedisStore;

impl Lender for RedisStore {
    async fn draw(&self, _: CounterKey<'_>, _: &Quota, _: Draw) -> Result<Loan, StoreError> {
        Err(StoreError::Open)
    }

    async fn give_back(
        &self,
        _: CounterKey<'_>,
        _: &Quota,
        _: &Loan,
        _: u64,
    ) -> Result<(), StoreError> {
        Err(StoreError::Open)
    }
}
