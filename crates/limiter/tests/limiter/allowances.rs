//! What passes over a limit, and what passes later.

use std::time::Duration;

use tidegate_limiter::{Headroom, Outcome, Standing, Verdict};

use crate::fixture::{Ask, ask, ask_hits, limiter};

const USER: Ask<'_> = Ask::of(&[("user", "alice")]);

fn rules(rate_limit: &str) -> String {
    format!("domain: test\ndescriptors:\n  - key: user\n    rate_limit: {{{rate_limit}}}\n")
}

fn standing(verdict: &Verdict) -> Option<Standing> {
    match verdict.deciding()?.decision()?.outcome {
        Outcome::Allowed { standing, .. } => Some(standing),
        Outcome::Denied { .. } => None,
    }
}

#[test]
fn a_soft_limit_admits_some_more_and_marks_them() {
    let limiter = limiter(&rules("unit: minute, requests_per_unit: 10, soft: 20%"));
    assert_eq!(
        standing(&ask_hits(&limiter, &[USER], 10)),
        Some(Standing::Within)
    );
    assert_eq!(standing(&ask(&limiter, &[USER])), Some(Standing::Over));
    assert!(ask(&limiter, &[USER]).limits().all(|limit| limit.is_over()));
    let refused = ask(&limiter, &[USER]);
    assert!(!refused.is_allowed());
    assert!(!refused.limits().any(|limit| limit.is_over()));
}

#[test]
fn an_elastic_limit_stretches_while_there_is_headroom() {
    let limiter = limiter(&rules("unit: minute, requests_per_unit: 10, elastic: 50%"));
    ask_hits(&limiter, &[USER], 10);
    assert!(!ask(&limiter, &[USER]).is_allowed());
    limiter.set_headroom(Headroom::Available);
    assert_eq!(standing(&ask(&limiter, &[USER])), Some(Standing::Over));
    limiter.set_headroom(Headroom::Absent);
    assert!(!ask(&limiter, &[USER]).is_allowed());
}

#[test]
fn a_queue_says_when_the_request_may_leave() {
    let limiter = limiter(&rules(
        "unit: second, requests_per_unit: 4, algorithm: leaky_bucket",
    ));
    let delays = [0, 250, 500].map(Duration::from_millis);
    for delay in delays {
        let verdict = ask(&limiter, &[USER]);
        assert_eq!((verdict.is_allowed(), verdict.delay()), (true, delay));
    }
}
