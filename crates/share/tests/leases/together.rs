//! Limits of one request that are shared in different ways: refused, nothing is charged anywhere, and
//! admitted, everything is, permits in hand included.

use std::time::Duration;

use proptest::prelude::*;
use tidegate_algorithms::Quota;
use tidegate_store::{Admission, Charge, Charging, Consistency, Decisions, Mode, Store};

use crate::stage::{Stage, WINDOW, charge, fixed_window};
use crate::world::settle;

/// How the limits are shared, and how large they are.
const LIMITS: [(Consistency, u64); 5] = [
    (Consistency::Leased, 700),
    (Consistency::Leased, 2_000),
    (Consistency::Strict, 90),
    (Consistency::Node, 80),
    (Consistency::Node, 300),
];

#[derive(Clone, Debug)]
struct Request {
    picks: Vec<Pick>,
    /// How often it comes.
    n: usize,
}

#[derive(Clone, Copy, Debug)]
struct Pick {
    limit: usize,
    cost: u64,
    mode: Mode,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    /// At the end, with all permits given back, each counter has been charged with what its requests
    /// were told, and with nothing else.
    #[test]
    fn what_was_told_was_charged(requests in prop::collection::vec(request(), 1..40)) {
        Stage::play(1, async |mut stage| {
            stage.next_window(WINDOW).await;
            let quotas = LIMITS.map(|(_, limit)| fixed_window(limit));
            let mut charged = [0; LIMITS.len()];
            for request in requests.iter().flat_map(|it| std::iter::repeat_n(it, it.n)) {
                play(&stage, &quotas, request, &mut charged).await;
                stage.pass(Duration::from_millis(1)).await;
            }
            stage.node(0).shared.finish().await;
            for (limit, quota) in quotas.iter().enumerate() {
                let ask = at(limit, quota);
                let shared = &stage.node(0).shared;
                let look = shared.peek(&ask);
                let left = look.await.expect("a look").remaining;
                assert_eq!(left, LIMITS[limit].1 - charged[limit], "{:?}", LIMITS[limit]);
            }
        });
    }
}

/// A caller that looks before each request of cost 1 is denied a look as soon as nothing is left, and not before.
#[test]
fn a_look_is_denied_when_nothing_is_left() {
    Stage::play(1, async |mut stage| {
        stage.next_window(WINDOW).await;
        for (limit, &(consistency, most)) in LIMITS.iter().enumerate() {
            let quota = fixed_window(most);
            let ask = Charge {
                cost: 1,
                ..at(limit, &quota)
            };
            let shared = &stage.node(0).shared;
            let mut n_allowed = 0;
            loop {
                let look = shared.peek(&ask);
                if !look.await.expect("a look").is_allowed() {
                    break;
                }
                let mut decisions = Decisions::new();
                let charges = [ask];
                let asked = shared.charge(&charges, Charging::AllOrNone, &mut decisions);
                let admission = asked.await.expect("a decision").admission;
                assert_eq!(admission, Admission::Admitted, "{consistency:?}");
                n_allowed += 1;
                settle().await;
            }
            assert_eq!(n_allowed, most, "{consistency:?}");
        }
    });
}

/// Plays one request, and adds what it must have been charged.
async fn play(stage: &Stage, quotas: &[Quota], request: &Request, charged: &mut [u64]) {
    let charges: Vec<Charge<'_>> = request
        .picks
        .iter()
        .map(|pick| Charge {
            cost: pick.cost,
            mode: pick.mode,
            ..at(pick.limit, &quotas[pick.limit])
        })
        .collect();
    let mut decisions = Decisions::new();
    let shared = &stage.node(0).shared;
    let asked = shared.charge(&charges, Charging::AllOrNone, &mut decisions);
    let receipt = asked.await.expect("a decision");
    settle().await;
    assert_eq!(receipt.admission, Admission::of(&charges, &decisions));
    let is_charged = receipt.admission == Admission::Admitted;
    for (pick, decision) in request.picks.iter().zip(&decisions) {
        if is_charged && decision.is_allowed() {
            charged[pick.limit] += pick.cost;
        }
    }
}

fn at(limit: usize, quota: &Quota) -> Charge<'_> {
    Charge {
        consistency: LIMITS[limit].0,
        ..charge(limit as u128, quota)
    }
}

fn request() -> impl Strategy<Value = Request> {
    let mode = prop_oneof![
        4 => Just(Mode::Enforce),
        2 => Just(Mode::Quota),
        1 => Just(Mode::Shadow),
    ];
    let pick = (0..LIMITS.len(), 0..9_u64, mode).prop_map(|(limit, cost, mode)| Pick {
        limit,
        cost,
        mode,
    });
    (prop::collection::vec(pick, 1..5), 1..12_usize).prop_map(|(picks, n)| Request { picks, n })
}
