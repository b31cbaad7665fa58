//! How often a node talks to its store: seldom when it has nothing to say, and soon when it has.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tidegate_algorithms::Algorithm;
use tidegate_store::conformance::totals::ModelTotals;
use tidegate_store::{
    Charge, Charging, Consistency, CounterKey, CounterSums, CounterUpdate, ExchangeReply, LimitId,
    ManualClock, Mode, OnFull, StoreError, Totals, TotalsSender,
};
use tokio::time::timeout;

use super::world::{KEY, START, World};
use super::{quota, quotas};
use crate::eventual::{Eventual, EventualConfig};
use crate::memory::FromMemory;

const SECOND: Duration = Duration::from_secs(1);

/// A store that counts what it is told.
#[derive(Debug)]
struct Counting {
    totals: ModelTotals,
    exchanges: AtomicU32,
    updates: AtomicU32,
}

// === impl Counting ===

impl Counting {
    fn new() -> Self {
        Self {
            totals: ModelTotals::at(START),
            exchanges: AtomicU32::new(0),
            updates: AtomicU32::new(0),
        }
    }

    /// Exchanges, and counters told of, since this was last asked.
    fn take(&self) -> (u32, u32) {
        let take = |count: &AtomicU32| count.swap(0, Ordering::Relaxed);
        (take(&self.exchanges), take(&self.updates))
    }
}

impl Totals for Counting {
    async fn exchange(
        &self,
        sender: TotalsSender,
        updates: &[CounterUpdate<'_>],
        replies: &mut Vec<CounterSums>,
    ) -> Result<ExchangeReply, StoreError> {
        self.exchanges.fetch_add(1, Ordering::Relaxed);
        let sent = u32::try_from(updates.len()).unwrap();
        self.updates.fetch_add(sent, Ordering::Relaxed);
        Ok(self.totals.exchange_now(sender, updates, replies))
    }
}

/// A node that runs, in time that is moved, while `story` is told.
async fn run(story: impl AsyncFnOnce(&Eventual<Arc<ManualClock>>, &Counting)) {
    let clock = Arc::new(ManualClock::at(START));
    let eventual = Eventual::with_clock(EventualConfig::default(), clock);
    let store = Counting::new();
    tokio::select! {
        _ = eventual.run(&store, &[]) => {}
        () = story(&eventual, &store) => {}
    }
}

/// Lets time pass, which moves as soon as nobody has anything to do.
async fn pass(span: Duration) {
    let _ = timeout(span, std::future::pending::<()>()).await;
}

fn ask(eventual: &Eventual<Arc<ManualClock>>) {
    let quota = quota(1_000_000, Algorithm::FixedWindow);
    let charge = Charge {
        key: KEY,
        quota: &quota,
        cost: 1,
        mode: Mode::Enforce,
        headroom: tidegate_algorithms::Headroom::Absent,
        on_full: OnFull::Allow,
        consistency: Consistency::Eventual,
    };
    let took = eventual.take(&charge, Charging::AllOrNone).unwrap();
    assert!(took.unwrap().decision.is_allowed());
}

/// The others believe it for three seconds.
#[tokio::test(start_paused = true)]
async fn an_idle_node_says_once_a_second_that_it_is_there() {
    run(async |_, store| {
        pass(60 * SECOND).await;
        let (exchanges, updates) = store.take();
        assert!((58..=62).contains(&exchanges), "{exchanges}");
        assert_eq!(updates, 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_first_to_ask_is_told_of_at_the_next_beat() {
    run(async |eventual, store| {
        for _ in 0..10 {
            // Between two words that it is there.
            pass(2 * SECOND + SECOND / 3).await;
            store.take();
            ask(eventual);
            // And a bit, for who comes first of two at one instant is anybody's guess.
            pass(EventualConfig::default().beat() + SECOND / 500).await;
            assert_eq!(store.take(), (1, 1));
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_busy_node_tells_once_in_an_interval() {
    run(async |eventual, store| {
        for _ in 0..10_000 {
            ask(eventual);
            pass(SECOND / 1_000).await;
        }
        let (exchanges, _) = store.take();
        assert!((95..=105).contains(&exchanges), "{exchanges}");
    })
    .await;
}

/// A store that takes so many counters at once, and fails for more.
#[derive(Debug)]
struct SlowStore(ModelTotals);

impl Totals for SlowStore {
    async fn exchange(
        &self,
        sender: TotalsSender,
        updates: &[CounterUpdate<'_>],
        replies: &mut Vec<CounterSums>,
    ) -> Result<ExchangeReply, StoreError> {
        if updates.len() > 1_000 {
            return Err(StoreError::Unavailable {
                reason: "too slow".into(),
            });
        }
        Ok(self.0.exchange_now(sender, updates, replies))
    }
}

/// More counters than a store can exchange in time are exchanged in smaller batches.
#[tokio::test(start_paused = true)]
async fn a_slow_store_gets_smaller_batches() {
    let clock = Arc::new(ManualClock::at(START));
    let eventual = Eventual::with_clock(EventualConfig::default(), clock);
    let store = SlowStore(ModelTotals::at(START));
    assert!(eventual.sync_now(&store).await.is_ok());
    let quota = quota(1_000, Algorithm::FixedWindow);
    for limit in 0..3_000 {
        let charge = Charge {
            key: CounterKey {
                limit: LimitId(limit),
                ..KEY
            },
            quota: &quota,
            cost: 1,
            mode: Mode::Enforce,
            headroom: tidegate_algorithms::Headroom::Absent,
            on_full: OnFull::Allow,
            consistency: Consistency::Eventual,
        };
        eventual.take(&charge, Charging::AllOrNone).unwrap();
    }
    assert_eq!(eventual.report().pending, 3_000);
    for _ in 0..20 {
        let _ = eventual.sync_now(&store).await;
    }
    assert_eq!(eventual.report().pending, 0);
}

/// A counter that was evicted while it waited, and is asked about again, is exchanged once.
#[test]
fn a_counter_that_comes_back_is_exchanged_once() {
    let mut world = World::new(&[0], quotas(1_000)[0].clone());
    world.take(0, 1);
    let eventual = &world.nodes[0].eventual;
    for mut part in eventual.table.each() {
        part.retain(|_| false);
    }
    world.take(0, 1);
    let mut taken = 0;
    for mut part in world.nodes[0].eventual.table.each() {
        part.take_queue(0, |_| taken += 1);
    }
    assert_eq!(taken, 1);
}
