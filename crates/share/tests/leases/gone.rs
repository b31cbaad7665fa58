//! Callers who go away before they have an answer, and answers that come late.

use std::sync::Arc;
use std::time::Duration;

use tidegate_algorithms::Quota;
use tidegate_store::{Charge, Charging, Consistency, Decisions, Store};
use tokio::task::JoinHandle;

use crate::stage::{Stage, TO_GET_HOT, WINDOW, charge, fixed_window};
use crate::wire::{Fate, Weather};
use crate::world::settle;

const MILLISECOND: Duration = Duration::from_millis(1);

/// A leased limit, and one beside it.
type Limits = [(Arc<Quota>, Consistency); 2];

impl Stage {
    /// The calls of a node take so long from now on.
    fn slow_down(&self, back: Duration) {
        let back = u64::try_from(back.as_micros()).expect("short");
        let weather = Weather::new(vec![Fate::Arrives { there: 0, back }]);
        let wire = &self.node(0).wire;
        wire.with_events(|events| events.weather = weather);
    }

    /// Sends a request for two limits, and lets it come as far as it can now.
    async fn send(&self, limits: &Limits) -> JoinHandle<()> {
        let (shared, limits) = (Arc::clone(&self.node(0).shared), limits.clone());
        let request = tokio::spawn(async move {
            let charges: Vec<Charge<'_>> = (1..)
                .zip(&limits)
                .map(|(limit, (quota, consistency))| Charge {
                    consistency: *consistency,
                    ..charge(limit, quota)
                })
                .collect();
            let mut decisions = Decisions::new();
            let charged = shared.charge(&charges, Charging::AllOrNone, &mut decisions);
            charged.await.expect("a decision");
        });
        settle().await;
        request
    }
}

/// What a draw has charged is spent by those who come later, whatever becomes of who asked for it.
#[test]
fn a_draw_outlives_who_asked_for_it() {
    Stage::play(1, async |mut stage| {
        let many = fixed_window(100_000);
        let ask = charge(1, &many);
        stage.next_window(WINDOW).await;
        stage.admitted(0, ask, TO_GET_HOT - 1).await;
        stage.slow_down(MILLISECOND);
        tokio::select! {
            biased;
            _ = stage.ask(0, ask) => panic!("a draw takes a while"),
            () = settle() => {}
        }
        stage.pass(2 * MILLISECOND).await;
        let leases = stage
            .node(0)
            .shared
            .report()
            .sharing
            .expect("a node")
            .leases;
        assert_eq!((leases.draws, leases.keys), (1, 1), "{leases:?}");
        let calls = stage.calls(0);
        assert_eq!(stage.admitted(0, ask, 3).await, 3);
        assert_eq!(stage.calls(0), calls, "they are held");
    });
}

/// Else whoever is refused by the one could use up the other by going away in time.
#[test]
fn who_goes_away_puts_back_what_memory_took() {
    Stage::play(1, async |stage| {
        let (ten, none) = (Arc::new(fixed_window(10)), Arc::new(fixed_window(0)));
        let limits = [
            (Arc::clone(&ten), Consistency::Node),
            (none, Consistency::Strict),
        ];
        stage.slow_down(MILLISECOND);
        let left = || {
            let local = stage.node(0).shared.local();
            let look = local.peek_now(&charge(1, &ten));
            look.expect("a decision").remaining
        };
        let request = stage.send(&limits).await;
        assert_eq!(left(), 9);
        request.abort();
        request.await.expect_err("it was cut short");
        assert_eq!(left(), 10);
    });
}

/// A permit of one window is never spent in the next.
#[test]
fn a_permit_put_back_late_goes_into_no_other_loan() {
    Stage::play(1, async |mut stage| {
        let (hundred, none) = (Arc::new(fixed_window(10_000)), Arc::new(fixed_window(0)));
        let ask = charge(1, &hundred);
        stage.next_window(WINDOW).await;
        stage.pass(99 * WINDOW / 100).await;
        stage.admitted(0, ask, TO_GET_HOT).await;
        stage.slow_down(400 * MILLISECOND);
        let limits = [
            (Arc::clone(&hundred), Consistency::Leased),
            (none, Consistency::Strict),
        ];
        let request = stage.send(&limits).await;
        stage.slow_down(Duration::ZERO);
        stage.pass(200 * MILLISECOND).await;
        let first = stage.admitted(0, ask, TO_GET_HOT + 1).await;
        assert!(!request.is_finished());
        stage.pass(250 * MILLISECOND).await;
        request.await.expect("it is refused");
        assert_eq!(first + stage.admitted(0, ask, 11_000).await, 10_000);
    });
}

/// The same of what a node counts by itself: what was taken before an edge is charged to nobody after it.
#[test]
fn what_was_taken_before_an_edge_is_not_put_back_after_it() {
    Stage::play(1, async |mut stage| {
        let (ten, none) = (Arc::new(fixed_window(10)), Arc::new(fixed_window(0)));
        let own = Charge {
            consistency: Consistency::Node,
            ..charge(1, &ten)
        };
        stage.next_window(WINDOW).await;
        stage.pass(99 * WINDOW / 100).await;
        stage.slow_down(400 * MILLISECOND);
        let limits = [
            (Arc::clone(&ten), Consistency::Node),
            (none, Consistency::Strict),
        ];
        let request = stage.send(&limits).await;
        stage.pass(200 * MILLISECOND).await;
        assert_eq!(stage.admitted(0, own, 3).await, 3);
        stage.pass(250 * MILLISECOND).await;
        request.await.expect("it is refused");
        assert_eq!(stage.admitted(0, own, 20).await, 7);
    });
}

/// More than are given back at a time, so that some have not begun.
#[test]
fn what_is_given_back_half_way_is_given_back_later() {
    const KEYS: u128 = 300;
    Stage::play(1, async |mut stage| {
        let hundred = fixed_window(1_000);
        stage.next_window(WINDOW).await;
        for key in 0..KEYS {
            stage.admitted(0, charge(key, &hundred), TO_GET_HOT).await;
            // So that no loan is like another.
            stage.pass(MILLISECOND / 1_000).await;
        }
        stage.slow_down(MILLISECOND);
        let shared = Arc::clone(&stage.node(0).shared);
        tokio::select! {
            biased;
            () = shared.finish() => panic!("a return takes a while"),
            () = settle() => {}
        }
        stage.slow_down(Duration::ZERO);
        stage.pass(2 * MILLISECOND).await;
        shared.finish().await;
        for key in 0..KEYS {
            let key = charge(key, &hundred).key;
            let look = Charge::look(key, &hundred, Consistency::Strict);
            let peek = shared.peek(&look).await;
            let left = peek.expect("a decision").remaining;
            assert_eq!(left, 1_000 - TO_GET_HOT, "of {key:?}");
        }
    });
}

/// Nobody counts it any more.
#[test]
fn a_reset_takes_along_what_is_drawn_while_it_is_on_its_way() {
    Stage::play(1, async |mut stage| {
        let hundred = Arc::new(fixed_window(10_000));
        let ask = charge(1, &hundred);
        stage.next_window(WINDOW).await;
        let fates = [1_000, 0, 0, 0, 0, 0, 0, 0].map(|there| Fate::Arrives { there, back: 0 });
        let weather = Weather::new(fates.to_vec());
        stage
            .node(0)
            .wire
            .with_events(|events| events.weather = weather);
        let reset = {
            let (shared, hundred) = (Arc::clone(&stage.node(0).shared), Arc::clone(&hundred));
            tokio::spawn(async move {
                let key = charge(1, &hundred).key;
                shared.reset(key, &hundred, Consistency::Leased).await
            })
        };
        settle().await;
        stage.admitted(0, ask, TO_GET_HOT).await;
        stage.slow_down(Duration::ZERO);
        stage.pass(2 * MILLISECOND).await;
        assert!(reset.await.expect("it ends").expect("a reset"));
        assert_eq!(stage.admitted(0, ask, 11_000).await, 10_000);
    });
}

#[test]
fn the_end_of_a_node_waits_for_what_it_draws() {
    Stage::play(2, async |mut stage| {
        let hundred = Arc::new(fixed_window(10_000));
        let ask = charge(1, &hundred);
        stage.next_window(WINDOW).await;
        stage.admitted(0, ask, TO_GET_HOT - 1).await;
        stage.slow_down(MILLISECOND);
        let request = {
            let (shared, hundred) = (Arc::clone(&stage.node(0).shared), Arc::clone(&hundred));
            tokio::spawn(async move {
                let mut decisions = Decisions::new();
                let charges = [charge(1, &hundred)];
                let charged = shared.charge(&charges, Charging::AllOrNone, &mut decisions);
                charged.await.expect("a decision");
            })
        };
        settle().await;
        let shared = Arc::clone(&stage.node(0).shared);
        let finish = tokio::spawn(async move { shared.finish().await });
        stage.pass(5 * MILLISECOND).await;
        finish.await.expect("it ends");
        request.await.expect("it is decided");
        assert_eq!(stage.admitted(1, ask, 11_000).await, 10_000 - TO_GET_HOT);
    });
}
