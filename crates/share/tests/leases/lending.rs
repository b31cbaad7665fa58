//! Permits drawn ahead of need, in small: when they are drawn, spent, given back and lost.

use std::sync::Arc;
use std::time::Duration;

use tidegate_algorithms::Algorithm;
use tidegate_store::report::LeaseReport;
use tidegate_store::{Charge, Charging, Consistency, DecisionSource, Decisions, Store};

use crate::stage::{Stage, TO_GET_HOT, WINDOW, charge, fixed_window, quota};
use crate::wire::{Fate, Weather};
use crate::world::{World, settle};

const SECOND: Duration = Duration::from_secs(1);

impl Stage {
    fn leases(&self, place: usize) -> LeaseReport {
        let sharing = self.node(place).shared.report().sharing;
        sharing.expect("a node that shares").leases
    }

    fn draws(&self, place: usize) -> u64 {
        self.node(place).wire.with_events(|events| events.draws)
    }

    /// Asks until permits are in hand.
    async fn get_hot(&self, place: usize, ask: Charge<'_>) {
        assert_eq!(self.admitted(place, ask, TO_GET_HOT).await, TO_GET_HOT);
        assert_eq!(self.leases(place).keys, 1);
    }
}

#[test]
fn a_cold_key_is_asked_for_strictly() {
    Stage::play(1, async |mut stage| {
        let many = fixed_window(100_000);
        for _ in 0..20 {
            assert_eq!(stage.admitted(0, charge(1, &many), 1).await, 1);
            stage.pass(SECOND).await;
        }
        assert_eq!((stage.draws(0), stage.calls(0)), (0, 20));
    });
}

#[test]
fn a_hot_key_is_decided_from_memory() {
    Stage::play(1, async |stage| {
        let many = fixed_window(1_000_000);
        let ask = charge(1, &many);
        stage.get_hot(0, ask).await;
        assert_eq!(stage.admitted(0, ask, 10_000).await, 10_000);
        assert!(stage.calls(0) < 30, "{} calls", stage.calls(0));
    });
}

#[test]
fn a_receipt_tells_where_a_request_was_decided() {
    Stage::play(1, async |stage| {
        let many = fixed_window(1_000_000);
        let ask = charge(1, &many);
        let source = async |ask: Charge<'_>| {
            let store = &stage.node(0).shared;
            let (charges, mut decisions) = ([ask], Decisions::new());
            let receipt = store.charge(&charges, Charging::AllOrNone, &mut decisions);
            receipt.await.unwrap().source
        };
        assert_eq!(source(ask).await, DecisionSource::Common);
        stage.get_hot(0, ask).await;
        assert_eq!(source(ask).await, DecisionSource::Held);
        let own = Charge {
            consistency: Consistency::Node,
            ..ask
        };
        assert_eq!(source(own).await, DecisionSource::Memory);
    });
}

/// What one node says remains is what the store says, and what is in hand.
#[test]
fn what_remains_is_told_as_if_nothing_were_lent() {
    Stage::play(1, async |stage| {
        let many = fixed_window(100_000);
        let ask = charge(1, &many);
        for n in 1..=500 {
            let decision = stage.ask(0, ask).await.expect("a decision");
            assert_eq!((decision.limit, decision.remaining), (100_000, 100_000 - n));
        }
        let look = stage.ask(0, Charge { cost: 0, ..ask });
        assert_eq!(look.await.expect("a decision").remaining, 99_500);
        let peek = stage.node(0).shared.peek(&ask);
        assert_eq!(peek.await.expect("a decision").remaining, 99_500);
    });
}

#[test]
fn permits_of_a_key_that_cools_are_given_back() {
    Stage::play(2, async |mut stage| {
        let hundred = fixed_window(10_000);
        let ask = charge(1, &hundred);
        stage.next_window(WINDOW).await;
        stage.get_hot(0, ask).await;
        assert!(stage.leases(0).drawn > stage.leases(0).spent);
        stage.pass(SECOND).await;
        assert_eq!(stage.leases(0).keys, 0);
        assert_eq!(stage.admitted(1, ask, 11_000).await, 10_000 - TO_GET_HOT);
    });
}

#[test]
fn the_end_of_a_node_gives_everything_back() {
    Stage::play(2, async |mut stage| {
        let hundred = fixed_window(10_000);
        let ask = charge(1, &hundred);
        stage.next_window(WINDOW).await;
        stage.get_hot(0, ask).await;
        stage.node(0).shared.finish().await;
        // Requests that still come are asked for strictly.
        assert_eq!(stage.admitted(0, ask, 10).await, 10);
        assert_eq!(stage.leases(0).keys, 0);
        assert_eq!(stage.admitted(1, ask, 11_000).await, 9_990 - TO_GET_HOT);
    });
}

/// What a dead node held is lost until the window ends, and spent by nobody.
#[test]
fn a_dead_nodes_permits_come_back_with_the_window() {
    Stage::play(2, async |mut stage| {
        let hundred = fixed_window(10_000);
        let ask = charge(1, &hundred);
        stage.next_window(WINDOW).await;
        stage.get_hot(0, ask).await;
        let lost = stage.leases(0).drawn - stage.leases(0).spent;
        stage.0.kill(0, (0, 0), Weather::default());
        let left = 10_000 - TO_GET_HOT - lost;
        assert_eq!(stage.admitted(1, ask, 10_000).await, left);
        stage.next_window(WINDOW).await;
        assert_eq!(stage.admitted(1, ask, 11_000).await, 10_000);
    });
}

/// A killed node takes along what it holds: no more than it spent in a life before it drew that, nor than a 64th of the
/// limit, and one for a draw that only asks what is left.
#[test]
fn a_node_holds_no_more_than_it_spent() {
    Stage::play(1, async |mut stage| {
        let limit = fixed_window(100_000);
        let ask = charge(1, &limit);
        let step = WINDOW / 64 / 8;
        stage.next_window(WINDOW).await;
        let mut spent = vec![0_u64; 24];
        for round in 0..400_u64 {
            // From nothing to far more than a 64th in a life, and back.
            let n = [0, 3, 40, 700, 5][usize::try_from(round / 16 % 5).expect("few")];
            spent.push(stage.admitted(0, ask, n).await);
            let leases = stage.leases(0);
            let gone = leases.spent + leases.given_back + leases.lapsed;
            let held = leases.drawn - gone;
            let lately: u64 = spent.iter().rev().take(24).sum();
            assert!(
                held <= (lately + 1).min(100_000 / 64 + 2),
                "{held} held, {lately} spent"
            );
            stage.pass(step).await;
        }
    });
}

#[test]
fn permits_outlive_the_store() {
    Stage::play(1, async |stage| {
        let many = fixed_window(100_000);
        let ask = charge(1, &many);
        stage.get_hot(0, ask).await;
        let in_hand = stage.leases(0).drawn - stage.leases(0).spent;
        stage.lose_store(true);
        assert_eq!(stage.admitted(0, ask, in_hand).await, in_hand);
        stage.ask(0, ask).await.expect_err("the store is gone");
        stage.lose_store(false);
        assert_eq!(stage.admitted(0, ask, 10).await, 10);
    });
}

/// Whatever was drawn before a reset is gone with the counter: nobody counts it any more.
#[test]
fn a_reset_takes_permits_along() {
    Stage::play(1, async |mut stage| {
        let hundred = fixed_window(10_000);
        let ask = charge(1, &hundred);
        stage.next_window(WINDOW).await;
        stage.get_hot(0, ask).await;
        let reset = stage
            .node(0)
            .shared
            .reset(ask.key, &hundred, Consistency::Leased);
        assert!(reset.await.expect("a reset"));
        assert_eq!(stage.leases(0).keys, 0);
        assert_eq!(stage.admitted(0, ask, 11_000).await, 10_000);
    });
}

/// After a reload permits drawn by the old numbers are not spent, but given back.
#[test]
fn permits_of_old_numbers_go_back() {
    Stage::play(1, async |mut stage| {
        let (many, ten) = (fixed_window(100_000), fixed_window(10));
        stage.next_window(WINDOW).await;
        stage.get_hot(0, charge(1, &many)).await;
        let first = stage.admitted(0, charge(1, &ten), 1).await;
        stage.pass(SECOND / 10).await;
        assert_eq!(
            first + stage.admitted(0, charge(1, &ten), 20).await,
            10 - TO_GET_HOT
        );
    });
}

#[test]
fn limits_that_cannot_be_lent_are_strict() {
    Stage::play(1, async |stage| {
        let queue = quota(1_000, Algorithm::LeakyBucket { queue: None });
        assert_eq!(stage.admitted(0, charge(1, &queue), 50).await, 50);
        assert_eq!((stage.draws(0), stage.calls(0)), (0, 50));
    });
}

/// Of all who find the purse empty at one moment one draws, and the others wait for it.
#[test]
fn nobody_stampedes() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let mut world = World::new();
        let slow = Fate::Arrives {
            there: 500,
            back: 500,
        };
        world.join((0, 0), Weather::new(vec![slow]));
        let many = Arc::new(fixed_window(1_000_000));
        for _ in 0..60 {
            world.ask(0, &many, 1);
            world.advance(2 * SECOND / 1_000).await;
        }
        let permits = {
            let sharing = world.nodes[0].shared.report().sharing;
            let leases = sharing.expect("a node that shares").leases;
            leases.drawn - leases.spent
        };
        let before = world.calls();
        for _ in 0..permits + 40 {
            world.ask(0, &many, 1);
        }
        settle().await;
        assert!(world.calls() - before <= 2, "{}", world.calls() - before);
        world.advance(SECOND / 100).await;
        let n_admitted = world.history().len() as u64;
        assert_eq!(n_admitted, 60 + permits + 40);
        assert!(world.calls() - before < 10, "{}", world.calls() - before);
    });
}

/// A clock that runs as slowly as a clock may: permits still end before their window does.
#[test]
fn a_slow_clock_does_not_carry_permits_over_an_edge() {
    Stage::play(1, async |mut stage| {
        stage.0.kill(0, (0, -500), Weather::default());
        let hundred = fixed_window(10_000);
        let ask = charge(1, &hundred);
        stage.next_window(WINDOW).await;
        stage.pass(9_900 * SECOND / 1_000).await;
        stage.get_hot(0, ask).await;
        // Used now and then, so that nothing is given back.
        stage.pass(49 * SECOND / 1_000).await;
        stage.admitted(0, ask, 1).await;
        stage.pass(49 * SECOND / 1_000).await;
        stage.admitted(0, ask, 1).await;
        stage.pass(SECOND / 500).await;
        // In the new window only what that window has is admitted.
        assert_eq!(stage.admitted(0, ask, 11_000).await, 10_000);
    });
}
