//! Bans while the store is gone.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tidegate_algorithms::{Decision, Quota, RefundTo, Time};
use tidegate_limiter::{
    BanTerm, Descriptor, Entry, KeyError, Limiter, LimiterConfig, NewBan, Retry, StoreError,
};
use tidegate_store::{
    Charge, Charging, Consistency, CounterKey, Cursor, Decisions, EmbeddedStore, ManualClock, Page,
    Receipt, Store, StoreConfig,
};

use crate::fixture::{NOON, rules, wait};

const RULES: &str = "
domain: test
descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 5, on_failure: allow}
";

const ANN: [Entry<'_>; 1] = [Entry {
    key: "user",
    value: "ann",
}];

const MINUTE: Duration = Duration::from_mins(1);

const ERROR: StoreError = StoreError::TooManyWindows { most: 1 };

/// A store that can be lost.
struct Losable {
    store: EmbeddedStore<ManualClock>,
    is_lost: AtomicBool,
}

// === impl Losable ===

impl Losable {
    fn check(&self) -> Result<(), StoreError> {
        if self.is_lost.load(Ordering::Relaxed) {
            Err(ERROR)
        } else {
            Ok(())
        }
    }
}

impl Store for Losable {
    async fn charge(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        self.check()?;
        self.store.charge(charges, charging, decisions).await
    }

    fn peek(
        &self,
        charge: &Charge<'_>,
    ) -> impl Future<Output = Result<Decision, StoreError>> + Send {
        self.store.peek(charge)
    }

    fn refund(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
        to: RefundTo,
        consistency: Consistency,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        self.store.refund(key, quota, cost, to, consistency)
    }

    fn reset(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        consistency: Consistency,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send {
        self.store.reset(key, quota, consistency)
    }

    async fn now(&self) -> Result<Time, StoreError> {
        self.check()?;
        self.store.now().await
    }

    fn list(
        &self,
        cursor: Cursor,
        most: usize,
    ) -> impl Future<Output = Result<Page, StoreError>> + Send {
        self.store.list(cursor, most)
    }
}

fn limiter() -> Limiter<Losable> {
    let store = Losable {
        store: EmbeddedStore::with_clock(StoreConfig::default(), ManualClock::at(NOON)),
        is_lost: AtomicBool::new(false),
    };
    Limiter::new(store, rules(RULES), LimiterConfig::default())
}

fn ban(limiter: &Limiter<Losable>) -> Result<(), KeyError> {
    let new = NewBan {
        term: BanTerm::For(MINUTE),
        reason: None,
    };
    wait(limiter.ban("test", &ANN, new))
}

#[test]
fn a_ban_holds_while_nobody_knows_the_time() {
    let limiter = limiter();
    ban(&limiter).unwrap();
    limiter.store().is_lost.store(true, Ordering::Relaxed);
    let verdict = limiter
        .check_now("test", &[Descriptor::new(&ANN)], 1)
        .unwrap();
    assert!(!verdict.is_allowed(), "though `on_failure` would allow");
    assert_eq!(verdict.retry(), Some(Retry::After(MINUTE)), "never early");
}

#[test]
fn nobody_is_banned_while_nobody_knows_the_time() {
    let limiter = limiter();
    limiter.store().is_lost.store(true, Ordering::Relaxed);
    assert_eq!(ban(&limiter), Err(KeyError::Store(ERROR)));
    let lookup = wait(limiter.lookup("test", &ANN));
    assert_eq!(lookup.err(), Some(KeyError::Store(ERROR)));
    limiter.store().is_lost.store(false, Ordering::Relaxed);
    assert_eq!(wait(limiter.bans()).unwrap().len(), 0);
}
