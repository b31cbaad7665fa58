//! Our embedded store, asked by the `Store` contract.

use std::error::Error;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use tidegate_algorithms::{Algorithm, Allowance, Headroom, Quota, QuotaSpec, Refill};
use tidegate_store::{
    Admission, Charge, Charging, Clock, Consistency, CounterKey, Decisions, EmbeddedStore, LimitId,
    Mode, OnFull, Store as _, StoreConfig, SystemClock,
};

use super::{Answer, Counting, Subject, Terms};
use crate::key::Key;

/// The store, and the one limit that is charged.
pub struct Store<C> {
    store: EmbeddedStore<C>,
    quota: Quota,
}

// === impl Store ===

impl Store<SystemClock> {
    pub fn new(terms: &Terms) -> Self {
        Self::with(
            &terms.spec(),
            StoreConfig::default(),
            SystemClock::default(),
        )
        .expect("the terms of the benchmark are within every range")
    }
}

impl<C: Clock> Store<C> {
    /// A store for any limit, of any size, on any clock.
    pub fn with(spec: &QuotaSpec, config: StoreConfig, clock: C) -> Result<Self, Box<dyn Error>> {
        let quota = Quota::new(spec)?;
        let store = EmbeddedStore::with_clock(config, clock);
        Ok(Self { store, quota })
    }

    /// The clock.
    pub fn clock(&self) -> &C {
        self.store.clock()
    }
}

impl<C: Clock> Subject for Store<C> {
    fn check(&self, key: &Key) -> Answer {
        let charge = Charge {
            key: CounterKey {
                limit: LimitId(1),
                values: &[key.as_string()],
            },
            quota: &self.quota,
            cost: 1,
            mode: Mode::Enforce,
            headroom: Headroom::Absent,
            on_full: OnFull::Allow,
            consistency: Consistency::Strict,
        };
        let mut decisions = Decisions::new();
        let charges = [charge];
        let answer = pin!(
            self.store
                .charge(&charges, Charging::AllOrNone, &mut decisions)
        );
        match answer.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(receipt)) if receipt.admission == Admission::Admitted => Answer::Allowed,
            _ => Answer::Refused,
        }
    }

    fn forgotten(&self) -> u64 {
        let stats = self.store.stats();
        stats.evicted + stats.untracked
    }

    fn bytes_taken(&self) -> Option<u64> {
        Some(self.store.stats().used_bytes)
    }
}

// === impl Terms ===

impl Terms {
    pub(super) fn spec(&self) -> QuotaSpec {
        QuotaSpec {
            limit: self.limit.into(),
            window: self.window,
            algorithm: match self.counting {
                Counting::Bucket => Algorithm::TokenBucket {
                    burst: None,
                    refill: Refill::Continuous,
                },
                Counting::Window => Algorithm::FixedWindow,
            },
            allowance: Allowance::Hard,
        }
    }
}
