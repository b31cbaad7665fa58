//! What was refused is remembered as long as it is true, and no longer.

use std::time::Duration;

use tidegate_algorithms::{Algorithm, Outcome, Refill, RefundTo, Retry, Rounding};
use tidegate_store::{Admission, Charge, Charging, Consistency, Decisions, Store};

use crate::stage::{Stage, WINDOW, charge, fixed_window, quota};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn hammering_a_refused_key_costs_no_call() {
    Stage::play(1, async |mut stage| {
        let five = fixed_window(5);
        stage.next_window(WINDOW).await;
        assert_eq!(stage.admitted(0, charge(1, &five), 6).await, 5);
        let calls = stage.calls(0);
        assert_eq!(stage.admitted(0, charge(1, &five), 1_000).await, 0);
        assert_eq!(stage.calls(0), calls);
    });
}

#[test]
fn hammering_several_limits_costs_no_call() {
    Stage::play(1, async |mut stage| {
        let (five, many) = (fixed_window(5), fixed_window(1_000));
        let charges = [charge(1, &five), charge(2, &many)];
        stage.next_window(WINDOW).await;
        for _ in 0..6 {
            stage.ask_all(0, &charges).await.expect("a decision");
        }
        let calls = stage.calls(0);
        for _ in 0..1_000 {
            let (admission, decisions) = stage.ask_all(0, &charges).await.expect("a decision");
            assert_eq!(admission, Admission::Refused);
            // The other limit would have admitted, and was not charged.
            assert_eq!(
                (decisions[1].is_allowed(), decisions[1].remaining),
                (true, 995)
            );
        }
        assert_eq!(stage.calls(0), calls);
    });
}

/// A lone caller who waits as long as he was told is admitted.
#[test]
fn a_refusal_ends_when_it_was_said_to() {
    Stage::play(1, async |mut stage| {
        let bucket = quota(
            100,
            Algorithm::TokenBucket {
                burst: Some(2),
                refill: Refill::Continuous,
            },
        );
        let ask = charge(1, &bucket);
        assert_eq!(stage.admitted(0, ask, 3).await, 2);
        for _ in 0..10 {
            let refused = stage.ask(0, ask).await.expect("a decision");
            let Outcome::Denied {
                retry: Retry::After(wait),
            } = refused.outcome
            else {
                panic!("{refused:?}")
            };
            stage.pass(wait / 2).await;
            assert!(!stage.ask(0, ask).await.expect("a decision").is_allowed());
            stage.pass(wait.saturating_sub(wait / 2)).await;
            assert!(stage.ask(0, ask).await.expect("a decision").is_allowed());
        }
    });
}

#[test]
fn a_refusal_is_of_its_cost_and_above() {
    Stage::play(1, async |mut stage| {
        let five = fixed_window(5);
        let ask = |cost| Charge {
            cost,
            ..charge(1, &five)
        };
        stage.next_window(WINDOW).await;
        assert!(!stage.ask(0, ask(6)).await.expect("a decision").is_allowed());
        assert!(stage.ask(0, ask(3)).await.expect("a decision").is_allowed());
        assert!(!stage.ask(0, ask(3)).await.expect("a decision").is_allowed());
        assert!(!stage.ask(0, ask(4)).await.expect("a decision").is_allowed());
        assert!(stage.ask(0, ask(2)).await.expect("a decision").is_allowed());
    });
}

/// Nodes do not send each other refunds and resets: a denial is remembered for 100 ms.
#[test]
fn a_refund_on_another_node_is_noticed_within_100_ms() {
    Stage::play(2, async |mut stage| {
        let five = fixed_window(5);
        let ask = charge(1, &five);
        stage.next_window(WINDOW).await;
        assert_eq!(stage.admitted(0, ask, 6).await, 5);
        let refund =
            stage
                .node(1)
                .shared
                .refund(ask.key, &five, 2, RefundTo::Current, Consistency::Leased);
        refund.await.expect("a refund");
        assert_eq!(stage.admitted(0, ask, 3).await, 0);
        stage.pass(SECOND / 10).await;
        assert_eq!(stage.admitted(0, ask, 3).await, 2);
    });
}

#[test]
fn a_refund_and_a_reset_end_a_refusal() {
    Stage::play(1, async |mut stage| {
        let five = fixed_window(5);
        let ask = charge(1, &five);
        stage.next_window(WINDOW).await;
        assert_eq!(stage.admitted(0, ask, 9).await, 5);
        let refund =
            stage
                .node(0)
                .shared
                .refund(ask.key, &five, 2, RefundTo::Current, Consistency::Leased);
        refund.await.expect("a refund");
        assert_eq!(stage.admitted(0, ask, 9).await, 2);
        let reset = stage
            .node(0)
            .shared
            .reset(ask.key, &five, Consistency::Leased);
        assert!(reset.await.expect("a reset"));
        assert_eq!(stage.admitted(0, ask, 9).await, 5);
    });
}

/// A reload of the rules: the same key, other numbers.
#[test]
fn new_numbers_are_asked_for() {
    Stage::play(1, async |mut stage| {
        let (five, eight) = (fixed_window(5), fixed_window(8));
        stage.next_window(WINDOW).await;
        assert_eq!(stage.admitted(0, charge(1, &five), 9).await, 5);
        assert_eq!(stage.admitted(0, charge(1, &eight), 9).await, 3);
    });
}

#[test]
fn refusals_outlive_the_store() {
    Stage::play(1, async |mut stage| {
        let five = fixed_window(5);
        let ask = charge(1, &five);
        stage.next_window(WINDOW).await;
        assert_eq!(stage.admitted(0, ask, 6).await, 5);
        stage.lose_store(true);
        assert_eq!(stage.admitted(0, ask, 100).await, 0);
        stage.pass(SECOND).await;
        stage.ask(0, ask).await.expect_err("the store is gone");
    });
}

/// An exhausted limit costs about one call in 100 ms, whatever the costs. Each answer is what the store would say.
#[test]
fn hammering_with_several_costs_costs_next_to_no_call() {
    const COSTS: [u64; 6] = [3, 5, 2, 4, 1, 6];
    let bucket = Algorithm::TokenBucket {
        burst: None,
        refill: Refill::Continuous,
    };
    let interval = Algorithm::TokenBucket {
        burst: None,
        refill: Refill::Interval,
    };
    let counter = Algorithm::SlidingCounter {
        sub_windows: 1,
        rounding: Rounding::Down,
    };
    let log = Algorithm::SlidingLog { log_refused: false };
    let (strict, leased) = (Consistency::Strict, Consistency::Leased);
    // With so many costs, so many calls in 100 ms.
    let cases = [
        (Algorithm::FixedWindow, strict, 50, 6, 1),
        (Algorithm::FixedWindow, leased, 1_000, 6, 1),
        (bucket, strict, 50, 6, 1),
        (interval, strict, 50, 6, 3),
        (interval, leased, 1_000, 6, 3),
        (counter, strict, 50, 4, 4),
        (log, strict, 50, 4, 4),
    ];
    for (algorithm, consistency, limit, n_costs, most) in cases {
        Stage::play(1, async |mut stage| {
            let quota = quota(limit, algorithm);
            let ask = |cost| Charge {
                cost,
                consistency,
                ..charge(1, &quota)
            };
            stage.next_window(WINDOW).await;
            stage.pass(WINDOW / 3).await;
            assert_eq!(stage.admitted(0, ask(1), limit).await, limit);
            let calls = stage.calls(0);
            for n in 0..99 {
                let charges = [ask(COSTS[n % n_costs])];
                let told = stage.ask(0, charges[0]).await.expect("a decision");
                let mut truth = Decisions::new();
                let store = &stage.0.store;
                let asked = store.charge(&charges, Charging::AllOrNone, &mut truth);
                asked.await.expect("a decision");
                assert_eq!(told, truth[0], "{algorithm:?}");
                stage.pass(SECOND / 1_000).await;
            }
            let calls = stage.calls(0) - calls;
            assert!(calls <= most, "{algorithm:?} {consistency:?}: {calls}");
        });
    }
}
