//! A store that does not answer, or answers late, and the end of a node meanwhile.

use std::fmt::{Debug, Formatter};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use tidegate_algorithms::Time;
use tidegate_share::{SharedConfig, SharedStore};
use tidegate_store::{
    Charge, Charging, Clock, Consistency, Decisions, EmbeddedStore, Store, StoreConfig,
};

use crate::stage::{Stage, TO_GET_HOT, WINDOW, charge, fixed_window};
use crate::wire::{Fate, PATIENCE, Weather};
use crate::world::START;

const MILLISECOND: Duration = Duration::from_millis(1);

/// A clock that stands still, and runs something the next time it is read.
#[derive(Clone, Default)]
struct InterruptedClock(Arc<Mutex<Option<Interrupt>>>);

type Interrupt = Box<dyn FnOnce() + Send>;

// === impl InterruptedClock ===

impl Clock for InterruptedClock {
    fn now(&self) -> Time {
        let interrupt = self.0.lock().expect("no panic").take();
        if let Some(interrupt) = interrupt {
            interrupt();
        }
        START
    }
}

impl Debug for InterruptedClock {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str("InterruptedClock")
    }
}

impl Stage {
    fn set_weather(&self, fates: Vec<Fate>) {
        let weather = Weather::new(fates);
        let wire = &self.node(0).wire;
        wire.with_events(|events| events.weather = weather);
    }
}

/// Requests that wait for a draw of another one do not ask a stalled store once more.
#[test]
fn a_request_waits_for_one_deadline_at_most() {
    const WAITERS: u64 = 40;
    Stage::play(1, async |mut stage| {
        let limit = Arc::new(fixed_window(1_000_000));
        stage.next_window(WINDOW).await;
        stage.admitted(0, charge(1, &limit), TO_GET_HOT).await;
        let leases = stage.node(0).shared.report().sharing.expect("").leases;
        stage.set_weather(vec![Fate::Lost]);
        for _ in 0..leases.drawn - leases.spent + WAITERS {
            stage.0.ask(0, &limit, 1);
        }
        stage.pass(PATIENCE).await;
        assert_eq!(*stage.0.failed.lock().expect("no panic"), WAITERS);
    });
}

/// Without a runtime nobody goes on with the draw of a caller that has gone away.
#[test]
fn a_request_asks_itself_if_the_one_that_draws_goes_away() {
    let limit = fixed_window(1_000_000);
    let charges = [charge(1, &limit)];
    let mut kept = None;
    Stage::play(1, async |mut stage| {
        stage.next_window(WINDOW).await;
        stage.admitted(0, charges[0], TO_GET_HOT - 1).await;
        kept = Some(stage);
    });
    let stage = kept.expect("it was played");
    let shared = &stage.node(0).shared;
    let mut poll = Context::from_waker(Waker::noop());
    stage.set_weather(vec![Fate::Lost]);
    let (mut first_decisions, mut decisions) = (Decisions::new(), Decisions::new());
    let mut first = Box::pin(shared.charge(&charges, Charging::AllOrNone, &mut first_decisions));
    let mut second = Box::pin(shared.charge(&charges, Charging::AllOrNone, &mut decisions));
    assert!(first.as_mut().poll(&mut poll).is_pending());
    stage.set_weather(vec![]);
    assert!(second.as_mut().poll(&mut poll).is_pending());
    drop(first);
    let decided = second.as_mut().poll(&mut poll);
    assert!(
        matches!(decided, std::task::Poll::Ready(Ok(_))),
        "{decided:?}"
    );
}

/// A draw lands, its permits are spent and the next draw fails, all before a request that waited for the first one
/// goes on.
#[test]
fn a_request_does_not_get_the_error_of_another_draw() {
    Stage::play(1, async |mut stage| {
        let limit = fixed_window(1_000_000);
        let charges = [charge(1, &limit)];
        stage.next_window(WINDOW).await;
        stage.admitted(0, charges[0], TO_GET_HOT - 1).await;
        let shared = Arc::clone(&stage.node(0).shared);
        let (mut first_decisions, mut decisions) = (Decisions::new(), Decisions::new());
        let mut first =
            Box::pin(shared.charge(&charges, Charging::AllOrNone, &mut first_decisions));
        let mut waiting = Box::pin(shared.charge(&charges, Charging::AllOrNone, &mut decisions));
        let mut poll = Context::from_waker(Waker::noop());
        stage.set_weather(vec![Fate::Arrives { there: 1, back: 0 }]);
        assert!(first.as_mut().poll(&mut poll).is_pending());
        assert!(waiting.as_mut().poll(&mut poll).is_pending());
        stage.pass(MILLISECOND).await;
        assert!(first.as_mut().poll(&mut poll).is_ready());
        stage.lose_store(true);
        let leases = shared.report().sharing.expect("").leases;
        for _ in leases.spent..=leases.drawn {
            let _ = stage.ask(0, charges[0]).await;
        }
        let n_draws = stage.node(0).wire.with_events(|events| events.draws);
        assert_eq!(n_draws, 2);
        stage.lose_store(false);
        let decided = waiting.as_mut().poll(&mut poll);
        assert!(
            matches!(decided, std::task::Poll::Ready(Ok(_))),
            "{decided:?}"
        );
    });
}

/// The node ends between the moment at which a request begins and the moment at which it finds that it must draw.
#[test]
fn a_request_that_begins_before_the_end_draws_nothing_after_it() {
    const LIMIT: u64 = 1_000_000;
    let runtime = || {
        let builder = &mut tokio::runtime::Builder::new_current_thread();
        builder.build().expect("a runtime")
    };
    let small = StoreConfig {
        max_memory: 1 << 20,
    };
    let clock = InterruptedClock::default();
    let store = || EmbeddedStore::with_clock(small, clock.clone());
    let config = SharedConfig::default();
    let shared = SharedStore::with_clock(store(), store(), config, clock.clone());
    let shared = Arc::new(shared);
    let limit = fixed_window(LIMIT);
    let charges = [charge(1, &limit)];
    runtime().block_on(async {
        let mut decisions = Decisions::new();
        for n in 1..=TO_GET_HOT {
            if n == TO_GET_HOT {
                let shared = Arc::clone(&shared);
                let end = move || runtime().block_on(shared.finish());
                let end = move || std::thread::spawn(end).join().expect("it ends");
                *clock.0.lock().expect("no panic") = Some(Box::new(end));
            }
            let charged = shared.charge(&charges, Charging::AllOrNone, &mut decisions);
            charged.await.expect("a decision");
        }
        let look = Charge::look(charges[0].key, &limit, Consistency::Strict);
        let peek = shared.remote().peek(&look);
        assert_eq!(peek.await.expect("a look").remaining, LIMIT - TO_GET_HOT);
    });
}

/// Hundreds of loans go back in little more than a round trip: the end of a node has a second.
#[test]
fn a_node_far_from_the_store_ends_quickly() {
    const KEYS: u64 = 256;
    const ROUND_TRIP: Duration = Duration::from_millis(20);
    Stage::play(1, async |mut stage| {
        let limit = fixed_window(1_000);
        stage.next_window(WINDOW).await;
        for key in 0..KEYS {
            stage
                .admitted(0, charge(key.into(), &limit), TO_GET_HOT)
                .await;
            // So that no loan is like another.
            stage.pass(MILLISECOND / 1_000).await;
        }
        stage.set_weather(vec![Fate::Arrives {
            there: 10_000,
            back: 10_000,
        }]);
        let shared = Arc::clone(&stage.node(0).shared);
        let end = tokio::spawn(async move { shared.finish().await });
        for _ in 0..30 {
            stage.pass(ROUND_TRIP / 20).await;
        }
        assert!(end.is_finished(), "within one and a half round trips");
    });
}
