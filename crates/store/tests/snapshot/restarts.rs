//! A store that is restarted every few calls passes the suite that every store passes: random
//! histories of all algorithms against the oracle, and the cases of the contract.
//!
//! But for three. A counter's fingerprint in a list is stable only while the store lives. And a store
//! that starts does not know what had expired: it would not have by other numbers of its limit, or by
//! a clock that then steps back, and a store that lives on may still find it in its slot.

use std::future::{Future, Ready, ready};
use std::pin::pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use tidegate_algorithms::{Decision, Quota, RefundTo, Time};
use tidegate_store::conformance::Subject;
use tidegate_store::{
    Charge, Charging, Clock, Consistency, CounterKey, Cursor, Decisions, ManualClock, Page,
    Receipt, Store, StoreError,
};

use crate::support::{MIB, ManualStore, new_store, restore, snapshot};

/// A store that does not live long.
struct Mortal(Mutex<Life>);

struct Life {
    store: ManualStore,
    calls: usize,
}

/// How much memory its lives have: a store may be given more and less from time to time.
const MEMORIES: [usize; 4] = [MIB, 4 * MIB, 8 * MIB, 2 * MIB];

/// Calls in a life.
const CALLS: usize = 3;

// === impl Mortal ===

impl Mortal {
    fn ask<T>(
        &self,
        call: impl FnOnce(&ManualStore) -> Result<T, StoreError>,
    ) -> Ready<Result<T, StoreError>> {
        let mut life = self.0.lock().expect("no test goes on after a panic");
        life.calls += 1;
        if life.calls.is_multiple_of(CALLS) {
            let memory = MEMORIES[life.calls / CALLS % MEMORIES.len()];
            let now = life.store.clock().now();
            let bytes = snapshot(&life.store);
            let (store, restored) = restore(memory, now, &bytes).expect("what was written");
            assert_eq!((restored.dropped, restored.expired), (0, 0));
            life.store = store;
        }
        let answer = call(&life.store);
        ready(answer)
    }
}

impl Store for Mortal {
    fn charge(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> impl Future<Output = Result<Receipt, StoreError>> + Send {
        self.ask(|store| store.charge_now(charges, charging, decisions))
    }

    fn peek(
        &self,
        charge: &Charge<'_>,
    ) -> impl Future<Output = Result<Decision, StoreError>> + Send {
        self.ask(|store| now(store.peek(charge)))
    }

    fn refund(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
        to: RefundTo,
        consistency: Consistency,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        self.ask(|store| now(store.refund(key, quota, cost, to, consistency)))
    }

    fn reset(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        consistency: Consistency,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send {
        self.ask(|store| now(store.reset(key, quota, consistency)))
    }

    fn now(&self) -> impl Future<Output = Result<Time, StoreError>> + Send {
        let life = self.0.lock().expect("no test goes on after a panic");
        ready(now(life.store.now()))
    }

    /// In one life: a cursor does not outlive a store.
    fn list(
        &self,
        cursor: Cursor,
        most: usize,
    ) -> impl Future<Output = Result<Page, StoreError>> + Send {
        let life = self.0.lock().expect("no test goes on after a panic");
        ready(now(life.store.list(cursor, most)))
    }
}

impl Subject for Mortal {
    type Store = Self;

    fn new(now: Time) -> Self {
        let store = new_store(MIB);
        store.clock().set(now);
        Self(Mutex::new(Life { store, calls: 0 }))
    }

    fn store(&self) -> &Self {
        self
    }

    fn set_time(&self, now: Time) {
        let life = self.0.lock().expect("no test goes on after a panic");
        ManualClock::set(life.store.clock(), now);
    }

    fn wait<T>(&self, answer: impl Future<Output = T>) -> T {
        now(answer)
    }
}

/// The answer of a store that waits for nothing.
fn now<T>(answer: impl Future<Output = T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(answer).poll(&mut context) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("the embedded store waits for nothing"),
    }
}

tidegate_store::conformance!(@each Mortal:
    several_limits_decide_as_the_model,
    a_refused_request_charges_nothing,
    a_refused_request_reports_what_truly_remains,
    one_admitting_quota_limit_is_enough,
    a_shadow_limit_refuses_nobody,
    every_match_charges_each_limit_alone,
    every_match_counts_refusals_of_a_fixed_window,
    a_counter_named_twice_adds_up,
    a_refund_gives_back_no_more_than_was_taken,
    a_reset_forgets_one_counter,
    a_list_shows_each_live_counter_once,
    keys_are_structured,
    limits_and_windows_have_counters_of_their_own,
    a_wider_limit_goes_on_from_the_old_count,
    a_window_ahead_of_the_clock_stands,
    nothing_wraps_in_ten_years_of_idleness,
    a_log_may_remember_refusals,
    a_refused_request_is_over_no_limit,
    a_soft_limit_hardens_after_its_time,
    soft_for_ends_under_steady_load,
    an_elastic_limit_stretches_with_headroom,
    a_burst_of_one_admits_one_at_a_time,
    a_limit_of_zero_refuses_for_ever,
    a_cost_above_the_limit_never_fits,
);
