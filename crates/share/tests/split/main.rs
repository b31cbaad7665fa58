//! Split limits through the store of a node: what callers are told, also when the common store is gone,
//! and nodes that come and go under load, through a real Redis.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common_store;
mod fleet;
mod promises;
mod redis;

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use allocation_counter::measure;
use tidegate_algorithms::{Outcome, Quota, RefundTo, Retry, Time};
use tidegate_share::{SharedStore, SplitConfig};
use tidegate_store::{
    Admission, Charge, Charging, CounterKey, Decisions, EmbeddedStore, LimitId, ManualClock, Store,
    StoreError,
};

use self::common_store::{Common, fixed_window, shared, small, split};

const SECOND: Duration = Duration::from_secs(1);

type Clock = Arc<ManualClock>;

/// One node in virtual time. All clocks are one.
struct Node {
    store: SharedStore<Common<Clock>, Clock, Clock>,
}

// === impl Node ===

impl Node {
    fn new(common: &Common<Clock>, clock: &Clock) -> Self {
        let config = shared(SplitConfig::default());
        let local = EmbeddedStore::with_clock(small(), Arc::clone(clock));
        let store = SharedStore::with_clock(common.clone(), local, config, Arc::clone(clock));
        Self { store }
    }

    async fn beat(&self) {
        let _ = self.store.split().beat(self.store.remote()).await;
    }

    async fn charge(&self, quota: &Quota) -> Result<(Admission, Decisions), StoreError> {
        let mut decisions = Decisions::new();
        let charges = [split(quota, 1)];
        let charged = self
            .store
            .charge(&charges, Charging::AllOrNone, &mut decisions);
        Ok((charged.await?.admission, decisions))
    }

    /// How many of so many requests are admitted.
    async fn admitted(&self, quota: &Quota, requests: u64) -> u64 {
        let mut admitted = 0;
        for _ in 0..requests {
            let (admission, _) = self.charge(quota).await.unwrap();
            admitted += u64::from(admission == Admission::Admitted);
        }
        admitted
    }
}

fn at(second: u64) -> Clock {
    let time =
        Time::from_micros(1_800_000_000_500_000).plus(SECOND * u32::try_from(second).unwrap());
    Arc::new(ManualClock::at(time))
}

#[tokio::test]
async fn one_node_has_all_of_a_limit_once_it_is_a_member() {
    let (clock, quota) = (at(0), fixed_window(100, SECOND));
    let common = Common::new(Arc::clone(&clock));
    let node = Node::new(&common, &clock);
    // No plan names it yet: there is the least reserve.
    assert_eq!(node.admitted(&quota, 10).await, 3);
    node.beat().await;
    // The denial is remembered that long.
    clock.advance(Duration::from_millis(100));
    assert_eq!(node.admitted(&quota, 200).await, 97);
    let (admission, decisions) = node.charge(&quota).await.unwrap();
    assert_eq!(admission, Admission::Refused);
    assert_eq!((decisions[0].limit, decisions[0].remaining), (100, 0));
    let retry = Retry::After(Duration::from_millis(400));
    assert_eq!(decisions[0].outcome, Outcome::Denied { retry });
    assert_eq!(node.store.membership().members(), 1);
    let report = node.store.report().sharing.unwrap();
    assert_eq!((report.members, report.split.counters), (1, 1));
    assert_eq!((report.split.heartbeats, report.split.failures), (1, 0));
}

#[tokio::test]
async fn a_node_that_joins_has_the_reserve_and_then_a_share() {
    let (clock, quota) = (at(0), fixed_window(100, SECOND));
    let common = Common::new(Arc::clone(&clock));
    let (first, second) = (Node::new(&common, &clock), Node::new(&common, &clock));
    for _ in 0..3 {
        first.admitted(&quota, 120).await;
        clock.advance(SECOND);
        first.beat().await;
    }
    first.admitted(&quota, 120).await;
    second.admitted(&quota, 1).await;
    second.beat().await;
    // The plans of this second and of the next were made before it joined, for a node with all the demand.
    common.take_calls();
    assert_eq!(second.admitted(&quota, 200).await, 0);
    clock.advance(SECOND);
    for _ in 0..3 {
        first.beat().await;
        second.beat().await;
        second.admitted(&quota, 120).await;
        clock.advance(SECOND);
    }
    first.beat().await;
    second.beat().await;
    common.take_calls();
    assert_eq!(second.admitted(&quota, 120).await, 100);
    // The reserve is the square root of the share, and a 32nd; one more call finds it used up.
    assert_eq!(common.take_calls(), 9 + 3 + 1);
}

#[tokio::test]
async fn a_node_without_the_store_has_its_share_until_the_epoch_ends() {
    let (clock, quota) = (at(0), fixed_window(100, SECOND));
    let common = Common::new(Arc::clone(&clock));
    let node = Node::new(&common, &clock);
    for _ in 0..3 {
        node.admitted(&quota, 120).await;
        clock.advance(SECOND);
        node.beat().await;
    }
    common.lose();
    node.beat().await;
    // This epoch and the next are planned. Above the share the limit goes by `on_failure`.
    for _ in 0..2 {
        assert_eq!(node.admitted(&quota, 88).await, 88);
        assert_eq!(node.charge(&quota).await.unwrap_err(), StoreError::Open);
        clock.advance(SECOND);
    }
    assert_eq!(node.charge(&quota).await.unwrap_err(), StoreError::Open);
    let report = node.store.report().sharing.unwrap().split;
    assert_eq!((report.heartbeats, report.failures), (3, 1));
    common.find();
    node.beat().await;
    assert_eq!(node.admitted(&quota, 200).await, 100);
}

/// A charge from a share is refunded to it without a call while its window lasts; after the edge it is lost.
#[tokio::test]
async fn a_late_refund_does_not_enlarge_the_next_window_of_a_share() {
    let (clock, quota) = (at(0), fixed_window(100, SECOND));
    let common = Common::new(Arc::clone(&clock));
    let node = Node::new(&common, &clock);
    for _ in 0..3 {
        node.admitted(&quota, 120).await;
        clock.advance(SECOND);
        node.beat().await;
    }
    let Charge {
        key, consistency, ..
    } = split(&quota, 1);
    let (charges, mut decisions) = ([split(&quota, 1)], Decisions::new());
    let charged = node
        .store
        .charge(&charges, Charging::AllOrNone, &mut decisions);
    let stamp = charged.await.unwrap().stamp(0, &decisions[0]);
    let refund = || {
        let to = RefundTo::Charge(stamp);
        node.store.refund(key, &quota, 1, to, consistency)
    };
    common.take_calls();
    refund().await.unwrap();
    assert_eq!(common.take_calls(), 0);
    assert_eq!(node.admitted(&quota, 200).await, 100);

    clock.advance(SECOND);
    node.beat().await;
    assert_eq!(node.admitted(&quota, 50).await, 50);
    for _ in 0..20 {
        refund().await.unwrap();
    }
    assert_eq!(node.admitted(&quota, 200).await, 50);
}

/// A reset or a refund on this node ends the memory of a denial at once; one on another node is noticed within
/// 100 ms.
#[tokio::test]
async fn a_denial_is_remembered_until_something_changes() {
    let (clock, quota) = (at(0), fixed_window(100, SECOND * 30));
    let common = Common::new(Arc::clone(&clock));
    let (node, other) = (Node::new(&common, &clock), Node::new(&common, &clock));
    node.admitted(&quota, 1).await;
    node.beat().await;
    assert_eq!(node.admitted(&quota, 200).await, 99);
    common.take_calls();
    assert_eq!(node.admitted(&quota, 100).await, 0);
    assert_eq!(common.take_calls(), 0);

    let Charge {
        key, consistency, ..
    } = split(&quota, 1);
    let refund = node
        .store
        .refund(key, &quota, 3, RefundTo::Current, consistency);
    refund.await.unwrap();
    assert_eq!(node.admitted(&quota, 100).await, 3);

    let refund = other
        .store
        .refund(key, &quota, 2, RefundTo::Current, consistency);
    refund.await.unwrap();
    clock.advance(Duration::from_millis(101));
    assert_eq!(node.admitted(&quota, 100).await, 2);

    assert!(node.store.reset(key, &quota, consistency).await.unwrap());
    assert_eq!(node.admitted(&quota, 200).await, 100);
}

/// A request that reaches the store in the next epoch, where nodes have shares, was an error and charged.
#[tokio::test]
async fn a_call_over_the_edge_of_an_epoch_is_decided_and_charged_once() {
    let (clock, quota) = (at(0), fixed_window(100, SECOND));
    let common = Common::new(Arc::clone(&clock));
    let node = Node::new(&common, &clock);
    // Both plans are made before there is demand: all of the limit is in the store.
    node.admitted(&quota, 1).await;
    node.beat().await;
    node.admitted(&quota, 100).await;
    clock.advance(SECOND);
    node.beat().await;
    clock.advance(Duration::from_millis(480));
    let over = Arc::clone(&clock);
    common.before_next_charge(move || over.advance(Duration::from_millis(30)));
    common.take_calls();
    let (admission, _) = node.charge(&quota).await.unwrap();
    assert_eq!((admission, common.take_calls()), (Admission::Admitted, 2));
    assert_eq!(node.admitted(&quota, 200).await, 99);
}

/// The refunds of such a call do not take a timeout each.
#[tokio::test(start_paused = true)]
async fn a_call_over_the_edge_of_an_epoch_takes_the_time_of_two() {
    let (clock, quota) = (at(0), fixed_window(100, SECOND));
    let common = Common::new(Arc::clone(&clock));
    let node = Node::new(&common, &clock);
    let other = |limit| Charge {
        key: CounterKey {
            limit: LimitId(limit),
            ..split(&quota, 1).key
        },
        ..split(&quota, 1)
    };
    let charges = [other(1), other(2), other(3)];
    let mut decisions = Decisions::new();
    let mut charge = async || {
        let charged = node
            .store
            .charge(&charges, Charging::AllOrNone, &mut decisions);
        charged.await.unwrap().admission
    };
    charge().await;
    node.beat().await;
    for _ in 0..100 {
        charge().await;
    }
    clock.advance(SECOND);
    node.beat().await;
    clock.advance(Duration::from_millis(480));
    let over = Arc::clone(&clock);
    common.before_next_charge(move || over.advance(Duration::from_millis(30)));
    common.take_calls();
    common.slow_down(Duration::from_millis(10));
    let began = tokio::time::Instant::now();
    assert_eq!(
        (charge().await, common.take_calls()),
        (Admission::Admitted, 2)
    );
    assert_eq!(began.elapsed(), Duration::from_millis(20));
}

#[tokio::test]
async fn a_node_that_leaves_is_not_counted() {
    let (clock, quota) = (at(0), fixed_window(100, SECOND));
    let common = Common::new(Arc::clone(&clock));
    let (first, second) = (Node::new(&common, &clock), Node::new(&common, &clock));
    first.beat().await;
    second.beat().await;
    assert_eq!(second.store.membership().members(), 2);
    first.store.split().leave(&common).await.unwrap();
    second.admitted(&quota, 1).await;
    second.beat().await;
    assert_eq!(second.admitted(&quota, 200).await, 99);
    // A node that restarts is back soon; without the store it would have its share.
    assert_eq!(second.store.membership().members(), 2);
}

/// A store that was away for long has forgotten everybody. Who is back first does not take himself for the only
/// one: were the store lost again, each node would admit the whole limit.
#[tokio::test]
async fn who_is_back_first_does_not_forget_the_others() {
    let clock = at(0);
    let common = Common::new(Arc::clone(&clock));
    let nodes = [(); 3].map(|()| Node::new(&common, &clock));
    for _ in 0..2 {
        for node in &nodes {
            node.beat().await;
        }
    }
    common.lose();
    for _ in 0..20 {
        clock.advance(SECOND);
        nodes[0].beat().await;
    }
    common.find();
    nodes[0].beat().await;
    let members = || nodes[0].store.membership().members();
    assert_eq!(members(), 3);
    // The others do not come back.
    for _ in 0..5 {
        assert_eq!(members(), 3);
        clock.advance(SECOND);
        nodes[0].beat().await;
    }
    assert_eq!(members(), 1);
}

/// A decision from memory waits for nobody and allocates nothing, whatever it is.
#[test]
fn a_decision_from_memory_is_ready_and_allocates_nothing() {
    let (clock, quota) = (at(0), fixed_window(1_000, SECOND));
    let common = Common::new(Arc::clone(&clock));
    let node = Node::new(&common, &clock);
    for _ in 0..3 {
        at_once(node.admitted(&quota, 1_200));
        clock.advance(SECOND);
        at_once(node.beat());
    }
    at_once(node.charge(&quota)).unwrap();
    let admitted = || {
        let (admission, _) = at_once(node.charge(&quota)).unwrap();
        admission == Admission::Admitted
    };
    let allocated = measure(|| assert!((0..900).all(|_| admitted())));
    assert_eq!(allocated.count_total, 0);
    assert!((0..100).filter(|_| admitted()).count() < 100);
    let allocated = measure(|| assert!((0..100).all(|_| !admitted())));
    assert_eq!(allocated.count_total, 0);
}

fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it waits"),
    }
}
