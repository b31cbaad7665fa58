//! Limits of one request that lie in several slots of a Cluster.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tidegate_algorithms::{Algorithm, Allowance, Quota, QuotaSpec};
use tidegate_store::{Admission, Charging, Decisions, Store};
use tidegate_store_redis::RedisStore;
use tidegate_store_redis::test_util::{ClusterSetup, wait_until};

use crate::keep::charge;
use crate::subject::Desk;

fn a_year(limit: u64) -> Quota {
    Quota::new(&QuotaSpec {
        limit,
        window: Duration::from_hours(24 * 365),
        algorithm: Algorithm::FixedWindow,
        allowance: Allowance::Hard,
    })
    .expect("valid")
}

/// A caller who is refused by its own limit cannot use up one that others share by hanging up.
#[test]
fn who_hangs_up_leaves_nothing_charged_in_another_slot() {
    let setup = ClusterSetup::start(3);
    let desk = Desk::at(&setup.url());
    let store = RedisStore::new(desk.client.clone());
    let (own, shared) = (a_year(1), a_year(100));
    let charges = [charge(&own, 1, &["caller"]), charge(&shared, 2, &["all"])];
    let mut decisions = Decisions::new();
    let first = desk.wait(store.charge(&charges, Charging::AllOrNone, &mut decisions));
    assert_eq!(first.expect("a decision").admission, Admission::Admitted);
    for _ in 0..20 {
        desk.wait(async {
            let charged = store.charge(&charges, Charging::AllOrNone, &mut decisions);
            tokio::select! {
                biased;
                charged = charged => {
                    let admission = charged.expect("a decision").admission;
                    assert_eq!(admission, Admission::Refused);
                }
                () = tokio::task::yield_now() => {}
            }
        });
    }
    wait_until("all is given back", || {
        desk.wait(store.peek(&charges[1]))
            .expect("a decision")
            .remaining
            == 99
    });
}

/// Whoever asks where nothing can run is told so.
#[test]
fn no_runtime_is_an_error_and_no_panic() {
    let desk = Desk::at("redis+cluster://127.0.0.1:1");
    let store = RedisStore::new(desk.client);
    let (own, shared) = (a_year(1), a_year(100));
    let charges = [charge(&own, 1, &["caller"]), charge(&shared, 2, &["all"])];
    let mut decisions = Decisions::new();
    let charged = store.charge(&charges, Charging::AllOrNone, &mut decisions);
    let mut context = Context::from_waker(Waker::noop());
    let Poll::Ready(Err(error)) = pin!(charged).poll(&mut context) else {
        panic!("it is told at once");
    };
    assert!(
        error.to_string().contains("outside of a tokio runtime"),
        "{error}"
    );
}
