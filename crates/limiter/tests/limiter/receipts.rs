//! Refunds with the receipt of a charge, and looks that charge nothing.

use std::time::Duration;

use tidegate_limiter::{
    ChargeReceipt, Charging, Hits, Limit, Limiter, LimiterConfig, Store, Verdict,
};

use crate::failing::Failing;
use crate::fixture::{
    Ask, NOON, TestLimiter, advance, ask, check, limiter, limiter_with, rules, text, wait,
    with_descriptors,
};

/// Failed payments of a card are limited, and all requests of its owner.
const PAYMENTS: &str = "
domain: test
descriptors:
  - key: card
    rate_limit: {unit: day, requests_per_unit: 3, name: failed, count_status: [402]}
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 10, name: all}
";

const PAYMENT: [Ask<'_>; 2] = [Ask::of(&[("card", "4711")]), Ask::of(&[("user", "alice")])];

/// From noon to 23:59:59.
const TO_THE_LAST_SECOND: Duration = Duration::from_secs(12 * 3_600 - 1);

fn receipt<S: Store>(
    limiter: &Limiter<S>,
    verdict: &Verdict,
    asks: &[Ask<'_>],
    wanted: impl Fn(&Limit) -> bool,
) -> Option<ChargeReceipt> {
    with_descriptors(asks, |descriptors| {
        limiter.receipt(verdict, "test", descriptors, 1, wanted)
    })
}

/// Asks, and takes the receipt of all limits.
fn pay(limiter: &TestLimiter) -> ChargeReceipt {
    let verdict = ask(limiter, &PAYMENT);
    assert!(verdict.is_allowed());
    receipt(limiter, &verdict, &PAYMENT, |_| true).unwrap()
}

fn look(limiter: &TestLimiter, asks: &[Ask<'_>]) -> String {
    let verdict = with_descriptors(asks, |descriptors| wait(limiter.look("test", descriptors)));
    text(&verdict.unwrap())
}

fn counts_status(limit: &Limit) -> bool {
    limit.counts_status().is_some()
}

#[test]
fn a_receipt_can_be_kept_by_another_task() {
    fn is_owned<T: Send + Sync + 'static>() {}
    is_owned::<ChargeReceipt>();
}

#[test]
fn a_refund_undoes_the_whole_request() {
    let limiter = limiter(PAYMENTS);
    let receipt = pay(&limiter);
    let names: Vec<_> = receipt.limits().filter_map(Limit::name).collect();
    assert_eq!(names, ["failed", "all"]);
    assert_eq!(
        look(&limiter, &PAYMENT),
        "allowed: allowed 2/3, allowed 9/10"
    );
    wait(limiter.refund(receipt)).unwrap();
    assert_eq!(
        look(&limiter, &PAYMENT),
        "allowed: allowed 3/3, allowed 10/10"
    );
}

#[test]
fn only_wanted_limits_are_refunded() {
    let limiter = limiter(PAYMENTS);
    let mut later = pay(&limiter);
    later.retain(counts_status);
    wait(limiter.refund(later)).unwrap();
    assert_eq!(
        look(&limiter, &PAYMENT),
        "allowed: allowed 3/3, allowed 9/10"
    );

    let verdict = ask(&limiter, &PAYMENT);
    let at_once = receipt(&limiter, &verdict, &PAYMENT, counts_status).unwrap();
    wait(limiter.refund(at_once)).unwrap();
    assert_eq!(
        look(&limiter, &PAYMENT),
        "allowed: allowed 3/3, allowed 8/10"
    );
    assert!(receipt(&limiter, &verdict, &PAYMENT, |_| false).is_none());
}

/// Three declined payments use the limit up; what was charged yesterday and succeeds today leaves today alone.
#[test]
fn payments_around_midnight() {
    let limiter = limiter(PAYMENTS);
    advance(&limiter, TO_THE_LAST_SECOND);
    let of_yesterday: Vec<_> = (0..3).map(|_| pay(&limiter)).collect();
    check(&limiter, &PAYMENT, "refused: refused 0/3, allowed 7/10");
    advance(&limiter, Duration::from_secs(2));
    for _ in 0..3 {
        pay(&limiter);
    }
    for receipt in of_yesterday {
        wait(limiter.refund(receipt)).unwrap();
    }
    check(&limiter, &PAYMENT, "refused: refused 0/3, allowed 7/10");
}

#[test]
fn a_denied_request_has_no_receipt() {
    let limiter = limiter(PAYMENTS);
    for _ in 0..3 {
        pay(&limiter);
    }
    let verdict = ask(&limiter, &PAYMENT);
    assert!(!verdict.is_allowed());
    assert!(receipt(&limiter, &verdict, &PAYMENT, |_| true).is_none());
}

/// `every_match` charges the limits that allow although another one denies.
#[test]
fn what_every_match_charged_is_refunded() {
    let config = LimiterConfig {
        charging: Charging::EveryMatch,
        ..LimiterConfig::default()
    };
    let limiter = limiter_with(PAYMENTS, config);
    for _ in 0..3 {
        pay(&limiter);
    }
    let verdict = ask(&limiter, &PAYMENT);
    assert!(!verdict.is_allowed());
    let charged = receipt(&limiter, &verdict, &PAYMENT, |_| true).unwrap();
    assert_eq!(
        charged.limits().filter_map(Limit::name).collect::<Vec<_>>(),
        ["all"]
    );
    assert_eq!(look(&limiter, &PAYMENT[1..]), "allowed: allowed 6/10");
    wait(limiter.refund(charged)).unwrap();
    assert_eq!(look(&limiter, &PAYMENT[1..]), "allowed: allowed 7/10");
}

/// Refunds of a request and limits that came with it are in no receipt.
#[test]
fn refunds_and_overrides_are_not_charges() {
    let limiter = limiter(PAYMENTS);
    pay(&limiter);
    let asks = [
        PAYMENT[0].hits(Hits::Refund(1)),
        PAYMENT[1].limit(5, Duration::from_mins(1)),
    ];
    let verdict = ask(&limiter, &asks);
    assert!(receipt(&limiter, &verdict, &asks, |_| true).is_none());
}

#[test]
fn a_refund_after_a_reload_goes_by_the_old_rules() {
    for (changed, expected) in [
        // Other numbers, the same counter.
        (
            PAYMENTS.replace("unit: 3", "unit: 5"),
            "allowed: allowed 5/5, allowed 10/10",
        ),
        // Another window, another counter, which was never charged.
        (
            PAYMENTS.replace("unit: day", "unit: week"),
            "allowed: allowed 3/3, allowed 10/10",
        ),
        (
            "domain: other\ndescriptors: []\n".to_owned(),
            "allowed: allowed free, allowed free",
        ),
    ] {
        let limiter = limiter(PAYMENTS);
        let receipt = pay(&limiter);
        limiter.replace_rules(rules(&changed));
        wait(limiter.refund(receipt)).unwrap();
        assert_eq!(look(&limiter, &PAYMENT), expected);
    }
}

/// What this node charged alone is refunded there; what a policy allowed was charged nowhere.
#[test]
fn a_request_without_the_store_is_refunded_where_it_was_charged() {
    let yaml = PAYMENTS.replace("name: all", "name: all, on_failure: allow");
    let limiter = Limiter::new(Failing::alone(NOON), rules(&yaml), LimiterConfig::default());
    let ask = || with_descriptors(&PAYMENT, |it| wait(limiter.check("test", it, 1)).unwrap());
    for _ in 0..5 {
        let verdict = ask();
        assert!(verdict.is_allowed() && verdict.failure().is_some());
        let receipt = receipt(&limiter, &verdict, &PAYMENT, |_| true).unwrap();
        let names: Vec<_> = receipt.limits().filter_map(Limit::name).collect();
        assert_eq!(names, ["failed"]);
        wait(limiter.refund(receipt)).unwrap();
    }
    assert_eq!(text(&ask()), "allowed: allowed 2/3, allowed undecided");
    assert!(ask().is_allowed() && ask().is_allowed() && !ask().is_allowed());
}

#[test]
fn a_look_charges_nothing_and_shows_what_is_left() {
    let limiter = limiter(PAYMENTS);
    for _ in 0..3 {
        pay(&limiter);
    }
    let asks = [
        PAYMENT[0].hits(Hits::Refund(3)),
        PAYMENT[1].hits(Hits::Take(99)),
    ];
    for _ in 0..3 {
        assert_eq!(
            look(&limiter, &asks),
            "allowed: allowed 0/3 near, allowed 7/10"
        );
    }
}
