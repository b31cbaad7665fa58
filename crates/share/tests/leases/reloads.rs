//! What operators do while permits are out: refunds, reloads of the rules, nodes that join and end.

use std::time::Duration;

use tidegate_algorithms::RefundTo;
use tidegate_store::{Charge, Consistency, Store};

use crate::stage::{Stage, WINDOW, charge, fixed_window};
use crate::wire::Weather;

/// Requests that leave both nodes with permits.
const BEFORE: u64 = 1_000;

impl Stage {
    /// Spends half of `n` on each of two nodes, so that both are hot, and returns what was admitted.
    async fn spend(&self, ask: Charge<'_>, n: u64) -> u64 {
        self.admitted(0, ask, n / 2).await + self.admitted(1, ask, n / 2).await
    }

    /// Spends the rest on the second node, with permits of the first one given back when they are due.
    async fn spend_rest(&mut self, ask: Charge<'_>) -> u64 {
        self.pass(WINDOW / 50).await;
        self.admitted(1, ask, 25_000).await
    }
}

#[test]
fn a_refund_adds_exactly_what_it_says() {
    Stage::play(2, async |mut stage| {
        let limit = fixed_window(10_000);
        let ask = charge(1, &limit);
        stage.next_window(WINDOW).await;
        let mut admitted = stage.spend(ask, BEFORE).await;
        let refund = stage.node(1).shared.refund(
            ask.key,
            &limit,
            500,
            RefundTo::Current,
            Consistency::Leased,
        );
        refund.await.expect("a refund");
        admitted += stage.spend_rest(ask).await;
        assert_eq!(admitted, 10_500);
    });
}

/// The old count goes on under the new number, and permits drawn by the old one go back.
#[test]
fn a_reload_with_another_limit_keeps_the_count() {
    for new in [20_000, 5_000, 700] {
        Stage::play(2, async |mut stage| {
            let (old, new_limit) = (fixed_window(10_000), fixed_window(new));
            stage.next_window(WINDOW).await;
            let mut admitted = stage.spend(charge(1, &old), BEFORE).await;
            // Both nodes see the new rules.
            admitted += stage.admitted(0, charge(1, &new_limit), 1).await;
            admitted += stage.spend_rest(charge(1, &new_limit)).await;
            assert_eq!(admitted, new.max(BEFORE));
        });
    }
}

#[test]
fn a_limit_that_becomes_strict_gives_its_permits_back() {
    Stage::play(2, async |mut stage| {
        let limit = fixed_window(10_000);
        let leased = charge(1, &limit);
        let strict = Charge {
            consistency: Consistency::Strict,
            ..leased
        };
        stage.next_window(WINDOW).await;
        let mut admitted = stage.spend(leased, BEFORE).await;
        for place in [0, 1] {
            admitted += stage.admitted(place, strict, 1).await;
        }
        stage.pass(Duration::from_millis(20)).await;
        admitted += stage.admitted(0, strict, 25_000).await;
        assert_eq!(admitted, 10_000);
    });
}

#[test]
fn a_node_that_joins_and_one_that_ends_lose_nothing() {
    Stage::play(2, async |mut stage| {
        let limit = fixed_window(10_000);
        let ask = charge(1, &limit);
        stage.next_window(WINDOW).await;
        let mut admitted = stage.spend(ask, BEFORE).await;
        let joined = stage.0.join((0, 0), Weather::default());
        admitted += stage.admitted(joined, ask, 2_000).await;
        stage.node(0).shared.finish().await;
        stage.node(joined).shared.finish().await;
        admitted += stage.admitted(1, ask, 25_000).await;
        assert_eq!(admitted, 10_000);
    });
}
