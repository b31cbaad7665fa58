//! Refunds with the receipt of their charge, however a limit is shared: they go to the window of the charge or are
//! lost, and never enlarge a later one.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::future::Future;
use std::marker::PhantomData;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tidegate_algorithms::{
    Algorithm, Allowance, ChargeStamp, Decision, Headroom, Quota, QuotaSpec, RefundTo, Time,
};
use tidegate_share::{EventualConfig, LeaseConfig, SharedConfig, SharedStore, SplitConfig};
use tidegate_store::conformance::{Subject, late_refunds_make_no_room_of_their_own};
use tidegate_store::{
    Charge, Charging, Clock, Consistency, CounterKey, Cursor, Decisions, EmbeddedStore, LimitId,
    ManualClock, Mode, OnFull, Page, Receipt, Store, StoreConfig, StoreError,
};

/// One clock for the common store and the node.
#[derive(Clone)]
struct OneClock(Arc<ManualClock>);

/// One node and its common store.
struct LoneNode {
    store: SharedStore<EmbeddedStore<OneClock>, OneClock, OneClock>,
    clock: OneClock,
}

/// A node all of whose limits are shared in one way.
struct SharedSubject<W>(LoneNode, PhantomData<W>);

/// A way of sharing.
trait Way: Send + Sync {
    const CONSISTENCY: Consistency;
}

macro_rules! ways {
    ($($name:ident),*) => {
        $(
            struct $name;

            impl Way for $name {
                const CONSISTENCY: Consistency = Consistency::$name;
            }
        )*
    };
}

ways!(Node, Strict, Leased, Split);

/// Midnight of a day in the year 2027.
const MIDNIGHT: u64 = 1_800_057_600_000_000_000;

const SECOND: u64 = 1_000_000_000;

const KEY: CounterKey<'static> = CounterKey {
    limit: LimitId(7),
    values: &["caller"],
};

/// All but `eventual`, which has a clock of its own and its own tests.
const ALL: [Consistency; 4] = [
    Consistency::Node,
    Consistency::Strict,
    Consistency::Leased,
    Consistency::Split,
];

// === impl OneClock ===

impl Clock for OneClock {
    fn now(&self) -> Time {
        self.0.now()
    }
}

// === impl LoneNode ===

impl LoneNode {
    fn at(now: Time) -> Self {
        let clock = OneClock(Arc::new(ManualClock::at(now)));
        let small = StoreConfig {
            max_memory: 4 << 20,
        };
        let config = SharedConfig {
            leases: LeaseConfig {
                remember_denials: Duration::ZERO,
                ..LeaseConfig::default()
            },
            standby_memory: small,
            eventual: EventualConfig {
                memory: small,
                ..EventualConfig::default()
            },
            split: SplitConfig {
                store: small,
                ..SplitConfig::default()
            },
            ..SharedConfig::default()
        };
        let store = || EmbeddedStore::with_clock(small, clock.clone());
        Self {
            store: SharedStore::with_clock(store(), store(), config, clock.clone()),
            clock,
        }
    }

    fn set(&self, nanos: u64) {
        self.clock.0.set(Time::from_nanos(nanos));
    }

    /// Charges one; the stamp, if it is allowed.
    fn take(&self, quota: &Quota, consistency: Consistency) -> Option<ChargeStamp> {
        let charges = [charge(quota, consistency)];
        let mut decisions = Decisions::new();
        let charged = self
            .store
            .charge(&charges, Charging::AllOrNone, &mut decisions);
        let receipt = at_once(charged).unwrap();
        let decision = &decisions[0];
        decision.is_allowed().then(|| receipt.stamp(0, decision))
    }

    fn take_alone(&self, quota: &Quota, consistency: Consistency) -> Option<ChargeStamp> {
        let charges = [charge(quota, consistency)];
        let mut decisions = Decisions::new();
        let charged = self
            .store
            .charge_alone(&charges, Charging::AllOrNone, &mut decisions);
        let receipt = charged.unwrap();
        let decision = &decisions[0];
        decision.is_allowed().then(|| receipt.stamp(0, decision))
    }

    fn refund(&self, quota: &Quota, stamp: ChargeStamp, consistency: Consistency) {
        let to = RefundTo::Charge(stamp);
        at_once(self.store.refund(KEY, quota, 1, to, consistency)).unwrap();
    }

    fn remaining(&self, quota: &Quota, consistency: Consistency) -> u64 {
        let look = Charge::look(KEY, quota, consistency);
        at_once(self.store.peek(&look)).unwrap().remaining
    }

    /// What is left in the common store alone.
    fn remaining_there(&self, quota: &Quota) -> u64 {
        let look = Charge::look(KEY, quota, Consistency::Strict);
        let looked = self.store.remote().peek_now(&look);
        looked.unwrap().remaining
    }
}

// === impl SharedSubject ===

impl<W: Way> Store for SharedSubject<W> {
    async fn charge(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        let consistency = W::CONSISTENCY;
        let charges: Vec<_> = charges
            .iter()
            .map(|charge| Charge {
                consistency,
                ..*charge
            })
            .collect();
        self.0.store.charge(&charges, charging, decisions).await
    }

    async fn peek(&self, charge: &Charge<'_>) -> Result<Decision, StoreError> {
        let look = Charge {
            consistency: W::CONSISTENCY,
            ..*charge
        };
        self.0.store.peek(&look).await
    }

    async fn refund(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
        to: RefundTo,
        _: Consistency,
    ) -> Result<(), StoreError> {
        let store = &self.0.store;
        store.refund(key, quota, cost, to, W::CONSISTENCY).await
    }

    async fn reset(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        _: Consistency,
    ) -> Result<bool, StoreError> {
        self.0.store.reset(key, quota, W::CONSISTENCY).await
    }

    async fn now(&self) -> Result<Time, StoreError> {
        self.0.store.now().await
    }

    async fn list(&self, cursor: Cursor, most: usize) -> Result<Page, StoreError> {
        self.0.store.list(cursor, most).await
    }
}

impl<W: Way> Subject for SharedSubject<W> {
    type Store = Self;

    fn new(now: Time) -> Self {
        Self(LoneNode::at(now), PhantomData)
    }

    fn store(&self) -> &Self {
        self
    }

    fn set_time(&self, now: Time) {
        self.0.set(now.nanos());
    }

    fn wait<T>(&self, answer: impl Future<Output = T>) -> T {
        at_once(answer)
    }

    fn cases(many: u32) -> u32 {
        many / 10
    }
}

fn at_once<T>(answer: impl Future<Output = T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(answer).poll(&mut context) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("stores in memory wait for nothing"),
    }
}

/// Charges until it is denied, which is after five times at the latest.
fn take_all(mut take: impl FnMut() -> Option<ChargeStamp>) -> Vec<ChargeStamp> {
    let stamps: Vec<_> = std::iter::from_fn(&mut take).take(6).collect();
    assert!(stamps.len() <= 5);
    stamps
}

fn charge(quota: &Quota, consistency: Consistency) -> Charge<'_> {
    Charge {
        key: KEY,
        quota,
        cost: 1,
        mode: Mode::Enforce,
        headroom: Headroom::Absent,
        on_full: OnFull::Deny,
        consistency,
    }
}

fn per_day(limit: u64) -> Quota {
    Quota::new(&QuotaSpec {
        limit,
        window: Duration::from_hours(24),
        algorithm: Algorithm::FixedWindow,
        allowance: Allowance::Hard,
    })
    .unwrap()
}

/// In each way of sharing: a charge of 23:59:58 that is refunded a second later is there again, and one that is
/// refunded at 00:00:01 does not enlarge the new day.
#[test]
fn a_refund_does_not_enlarge_the_next_day() {
    let five = per_day(5);
    for consistency in ALL {
        let node = LoneNode::at(Time::from_nanos(MIDNIGHT - 2 * SECOND));
        let check = |expected: u64| {
            assert_eq!(
                node.remaining(&five, consistency),
                expected,
                "{consistency:?}"
            );
        };
        let of_yesterday = take_all(|| node.take(&five, consistency));
        assert_eq!(of_yesterday.len(), 5, "{consistency:?}");

        node.set(MIDNIGHT - SECOND);
        node.refund(&five, of_yesterday[0], consistency);
        check(1);

        node.set(MIDNIGHT);
        let of_today = node.take(&five, consistency).unwrap();
        node.set(MIDNIGHT + SECOND);
        for stamp in &of_yesterday[1..] {
            node.refund(&five, *stamp, consistency);
        }
        check(4);
        node.refund(&five, of_today, consistency);
        check(5);
    }
}

/// What a node charged alone is refunded to the node alone, and not after the edge either.
#[test]
fn a_charge_made_alone_is_refunded_alone() {
    let five = per_day(5);
    // A node that never heard of the store does not know when it charged a split limit.
    for consistency in ALL.into_iter().filter(|it| *it != Consistency::Split) {
        let node = LoneNode::at(Time::from_nanos(MIDNIGHT - 2 * SECOND));
        let take = || node.take_alone(&five, consistency);
        let refund = |stamp| {
            let refunded = node.store.refund_alone(KEY, &five, 1, stamp, consistency);
            refunded.unwrap();
        };
        let of_yesterday = take_all(take);
        refund(of_yesterday[0]);
        assert_eq!(take_all(take).len(), 1, "{consistency:?}");
        assert_eq!(
            node.remaining_there(&five),
            5,
            "the common store was not asked"
        );

        node.set(MIDNIGHT);
        assert_eq!(take_all(take).len(), 5, "{consistency:?}");
        of_yesterday[1..].iter().for_each(|stamp| refund(*stamp));
        assert!(take().is_none(), "{consistency:?}");
    }
}

/// A permit of a loan goes back to it, without a call, as long as the loan is held; and to nobody when its day
/// is over.
#[test]
fn a_permit_goes_back_to_its_loan() {
    let many = per_day(1_000_000);
    let consistency = Consistency::Leased;
    let node = LoneNode::at(Time::from_nanos(MIDNIGHT - 3_600 * SECOND));
    let mut stamps = Vec::new();
    for n in 0..100 {
        node.set(MIDNIGHT - 3_600 * SECOND + n * 1_000_000);
        stamps.push(node.take(&many, consistency).unwrap());
    }
    let leases = node.store.report().sharing.unwrap().leases;
    assert!(leases.spent > 50, "the key is hot: {leases:?}");
    let (here, there) = (
        node.remaining(&many, consistency),
        node.remaining_there(&many),
    );
    node.refund(&many, stamps.pop().unwrap(), consistency);
    assert_eq!(node.remaining(&many, consistency), here + 1);
    assert_eq!(node.remaining_there(&many), there);

    node.set(MIDNIGHT + SECOND);
    node.take(&many, consistency).unwrap();
    let there = node.remaining_there(&many);
    for stamp in stamps {
        node.refund(&many, stamp, consistency);
    }
    assert_eq!(node.remaining_there(&many), there);
}

/// Whatever is charged and refunded late, no window gets more than the algorithm promises.
#[test]
fn late_refunds_make_no_room_in_any_way_of_sharing() {
    late_refunds_make_no_room_of_their_own::<SharedSubject<Node>>();
    late_refunds_make_no_room_of_their_own::<SharedSubject<Strict>>();
    late_refunds_make_no_room_of_their_own::<SharedSubject<Leased>>();
    late_refunds_make_no_room_of_their_own::<SharedSubject<Split>>();
}
