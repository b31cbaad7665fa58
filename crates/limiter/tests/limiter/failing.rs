//! A store that fails.

use std::future::pending;

use tidegate_algorithms::{ChargeStamp, Decision, Quota, RefundTo, Time};
use tidegate_store::{
    Charge, Charging, Consistency, CounterKey, Cursor, Decisions, EmbeddedStore, ManualClock, Page,
    Receipt, Store, StoreConfig, StoreError,
};

pub(crate) const ERROR: StoreError = StoreError::TooManyWindows { most: 1 };

/// A store that always fails.
pub(crate) struct Failing {
    way: Way,
    /// What the node has that stands by, if it does.
    standby: Option<EmbeddedStore<ManualClock>>,
}

/// In which way.
enum Way {
    /// With an error.
    Broken,
    /// It never answers.
    Stuck,
}

// === impl Failing ===

impl Failing {
    /// With an error.
    pub(crate) const fn broken() -> Self {
        Self {
            way: Way::Broken,
            standby: None,
        }
    }

    /// By never answering.
    pub(crate) const fn stuck() -> Self {
        Self {
            way: Way::Stuck,
            standby: None,
        }
    }

    /// With an error, on a node that stands by.
    pub(crate) fn alone(time: Time) -> Self {
        let clock = ManualClock::at(time);
        Self {
            standby: Some(EmbeddedStore::with_clock(StoreConfig::default(), clock)),
            ..Self::broken()
        }
    }

    async fn fail<T: Send>(&self) -> Result<T, StoreError> {
        match self.way {
            Way::Broken => Err(ERROR),
            Way::Stuck => pending().await,
        }
    }
}

impl Store for Failing {
    async fn charge(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        if let Some(standby) = &self.standby {
            // Some of it may have been decided by the time it fails.
            let looks: Vec<_> = charges.iter().map(|it| Charge { cost: 0, ..*it }).collect();
            let _ = standby.charge_now(&looks, charging, decisions);
        }
        self.fail().await
    }

    fn charge_alone(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        let standby = self.standby.as_ref().ok_or(StoreError::NoStandby)?;
        standby.charge_now(charges, charging, decisions)
    }

    async fn peek(&self, _: &Charge<'_>) -> Result<Decision, StoreError> {
        self.fail().await
    }

    async fn refund(
        &self,
        _: CounterKey<'_>,
        _: &Quota,
        _: u64,
        _: RefundTo,
        _: Consistency,
    ) -> Result<(), StoreError> {
        self.fail().await
    }

    fn refund_alone(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
        stamp: ChargeStamp,
        _: Consistency,
    ) -> Result<(), StoreError> {
        let standby = self.standby.as_ref().ok_or(StoreError::NoStandby)?;
        standby.refund_now(key, quota, cost, RefundTo::Charge(stamp))
    }

    async fn reset(
        &self,
        _: CounterKey<'_>,
        _: &Quota,
        _: Consistency,
    ) -> Result<bool, StoreError> {
        self.fail().await
    }

    async fn now(&self) -> Result<Time, StoreError> {
        self.fail().await
    }

    async fn list(&self, _: Cursor, _: usize) -> Result<Page, StoreError> {
        self.fail().await
    }
}
