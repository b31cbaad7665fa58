mod bounds;
mod seeded;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_algorithms::{Algorithm, Allowance, Headroom, QuotaSpec, RefundTo, Time};
use tidegate_store::report::StoreHealth;
use tidegate_store::{
    Consistency, Cursor, Draw, Lender, LimitId, Loan, ManualClock, Mode, OnFull, Page, Receipt,
    Store, StoreConfig,
};

use super::*;
use crate::{EventualConfig, SharedConfig, SharedStore, SplitConfig};

/// 2026-11-15 12:00:00 UTC.
const NOON: Time = Time::from_micros(1_794_744_000_000_000);

const MINUTE: Duration = Duration::from_mins(1);

const SMALL: StoreConfig = StoreConfig {
    max_memory: 1 << 20,
};

/// A node's way to the common store, which can be lost.
#[derive(Debug)]
struct Losable {
    store: Arc<EmbeddedStore<OneClock>>,
    fault: Mutex<Fault>,
}

/// What is wrong with the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// The store does not hear.
    Lost,
    /// The store hears, and is not heard.
    Late,
}

/// One clock for everybody.
#[derive(Clone, Debug)]
struct OneClock(Arc<ManualClock>);

type Shared = SharedStore<Losable, OneClock, OneClock>;

// === impl OneClock ===

impl Clock for OneClock {
    fn now(&self) -> Time {
        self.0.now()
    }
}

// === impl Losable ===

impl Losable {
    fn set(&self, fault: Fault) {
        *self.fault.lock().unwrap() = fault;
    }

    fn there(&self) -> Result<&EmbeddedStore<OneClock>, StoreError> {
        match *self.fault.lock().unwrap() {
            Fault::Lost => Err(StoreError::Open),
            Fault::None | Fault::Late => Ok(&self.store),
        }
    }

    fn back<T>(&self, reply: T) -> Result<T, StoreError> {
        match *self.fault.lock().unwrap() {
            Fault::Late => Err(StoreError::Timeout {
                after: Duration::from_millis(5),
            }),
            Fault::None | Fault::Lost => Ok(reply),
        }
    }
}

impl Store for Losable {
    async fn charge(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        let receipt = self.there()?.charge_now(charges, charging, decisions)?;
        self.back(receipt)
    }

    async fn peek(&self, charge: &Charge<'_>) -> Result<Decision, StoreError> {
        self.there()?.peek_now(charge)
    }

    async fn refund(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
        to: RefundTo,
        _: Consistency,
    ) -> Result<(), StoreError> {
        self.there()?.refund_now(key, quota, cost, to)
    }

    async fn reset(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        _: Consistency,
    ) -> Result<bool, StoreError> {
        self.there()?.reset_now(key, quota)
    }

    async fn now(&self) -> Result<Time, StoreError> {
        Ok(self.there()?.clock().now())
    }

    async fn list(&self, cursor: Cursor, most: usize) -> Result<Page, StoreError> {
        Ok(self.there()?.list_now(cursor, most))
    }
}

impl Lender for Losable {
    async fn draw(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        draw: Draw,
    ) -> Result<Loan, StoreError> {
        let loan = self.there()?.draw(key, quota, draw).await?;
        self.back(loan)
    }

    async fn give_back(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        loan: &Loan,
        permits: u64,
    ) -> Result<u64, StoreError> {
        self.there()?.give_back(key, quota, loan, permits).await
    }
}

/// A node that has lost the common store.
fn store(standby: StandbyLimit, members: u32) -> Shared {
    let store = node(&common(), standby, members);
    store.remote().set(Fault::Lost);
    store
}

fn common() -> Arc<EmbeddedStore<OneClock>> {
    let clock = OneClock(Arc::new(ManualClock::at(NOON)));
    Arc::new(EmbeddedStore::with_clock(SMALL, clock))
}

/// One of the nodes that have `common` in common.
fn node(common: &Arc<EmbeddedStore<OneClock>>, standby: StandbyLimit, members: u32) -> Shared {
    let clock = common.clock();
    let shared = SharedStore::with_clock(
        losable(common),
        EmbeddedStore::with_clock(SMALL, clock.clone()),
        small(standby),
        clock.clone(),
    );
    shared.membership().receive(members, Time::ZERO);
    shared
}

/// A node whose date is `wall`, and which measures spans by `own`.
fn node_with(common: &Arc<EmbeddedStore<OneClock>>, wall: OneClock, own: OneClock) -> Shared {
    let local = EmbeddedStore::with_clock(SMALL, wall);
    SharedStore::with_clock(losable(common), local, small(StandbyLimit::Share), own)
}

/// How a node with little memory shares.
fn small(standby: StandbyLimit) -> SharedConfig {
    SharedConfig {
        standby,
        standby_memory: SMALL,
        eventual: EventualConfig {
            memory: SMALL,
            ..EventualConfig::default()
        },
        split: SplitConfig {
            store: SMALL,
            ..SplitConfig::default()
        },
        ..SharedConfig::default()
    }
}

fn losable(common: &Arc<EmbeddedStore<OneClock>>) -> Losable {
    Losable {
        store: Arc::clone(common),
        fault: Mutex::new(Fault::None),
    }
}

fn quota(limit: u64, algorithm: Algorithm) -> Quota {
    let spec = QuotaSpec {
        limit,
        window: MINUTE,
        algorithm,
        allowance: Allowance::Hard,
    };
    Quota::new(&spec).unwrap()
}

fn charge(limit: u128, quota: &Quota, cost: u64) -> Charge<'_> {
    Charge {
        key: CounterKey {
            limit: LimitId(limit),
            values: &["x"],
        },
        quota,
        cost,
        mode: Mode::Enforce,
        headroom: Headroom::Absent,
        on_full: OnFull::Allow,
        consistency: Consistency::Strict,
    }
}

/// Decides alone: what each limit says, as `remaining/limit`, with a `!` for a refusal.
fn alone(store: &Shared, charges: &[Charge<'_>]) -> Vec<String> {
    let mut decisions = Decisions::new();
    store
        .charge_alone(charges, Charging::AllOrNone, &mut decisions)
        .unwrap();
    let text = |it: &Decision| {
        let refused = if it.is_allowed() { "" } else { "!" };
        format!("{}/{}{refused}", it.remaining, it.limit)
    };
    decisions.iter().map(text).collect()
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    use std::task::{Context, Poll, Waker};
    match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("nothing here waits"),
    }
}

#[test]
fn a_node_alone_enforces_its_share() {
    let store = store(StandbyLimit::Share, 3);
    let window = quota(100, Algorithm::FixedWindow);
    assert_eq!(alone(&store, &[charge(1, &window, 30)]), ["3/33"]);
    assert_eq!(alone(&store, &[charge(1, &window, 4)]), ["3/33!"]);
    assert_eq!(alone(&store, &[charge(1, &window, 3)]), ["0/33"]);
    let bucket = Algorithm::TokenBucket {
        burst: Some(10),
        refill: tidegate_algorithms::Refill::Continuous,
    };
    assert_eq!(alone(&store, &[charge(2, &quota(60, bucket), 1)]), ["2/3"]);
    let report = store.report().sharing.unwrap();
    assert_eq!(report.members, 3);
    let expected = StandbyReport {
        requests: 4,
        refused: 1,
        divided_by: 3,
        ..report.standby
    };
    assert_eq!(report.standby, expected);
}

/// Callers that find no room while the node is alone are counted, and seen in its health. Notes that find none while
/// the common store answers are not, because they decide nothing.
#[test]
fn only_charges_alone_are_reported_without_room() {
    // A log that is larger than all memory.
    let limit = 300_000;
    let log = quota(limit, Algorithm::SlidingLog { log_refused: false });
    let store = node(&common(), StandbyLimit::Share, 1);
    let seen = || (store.report().untracked(), store.health());
    let mut decisions = Decisions::new();
    let charges = [charge(1, &log, limit)];
    let charged = store.charge(&charges, Charging::AllOrNone, &mut decisions);
    assert_eq!(wait(charged).unwrap().admission, Admission::Admitted);
    assert_eq!(seen(), (0, StoreHealth::Whole));
    store.remote().set(Fault::Lost);
    for (on_full, expected) in [(OnFull::Allow, 1), (OnFull::Deny, 2), (OnFull::Shared, 3)] {
        let [charge] = charges;
        alone(&store, &[Charge { on_full, ..charge }]);
        assert_eq!(seen(), (expected, StoreHealth::Full), "{on_full:?}");
    }
    assert!(store.report().sharing.unwrap().standby.used_bytes > 0);
}

#[test]
fn a_share_is_never_nothing_but_of_nothing() {
    let store = store(StandbyLimit::Share, 7);
    let (one, none) = (
        quota(1, Algorithm::FixedWindow),
        quota(0, Algorithm::FixedWindow),
    );
    assert_eq!(alone(&store, &[charge(1, &one, 1)]), ["0/1"]);
    assert_eq!(alone(&store, &[charge(2, &none, 1)]), ["0/0!"]);
}

/// However many nodes are alone, together they admit no more than the limit, or one request each.
#[test]
fn nodes_that_are_alone_admit_one_limit_together() {
    let bucket = Algorithm::TokenBucket {
        burst: None,
        refill: tidegate_algorithms::Refill::Continuous,
    };
    for algorithm in [Algorithm::FixedWindow, bucket] {
        for (limit, members) in [(1, 3), (7, 3), (9, 3), (10, 4), (12, 1), (5, 8), (64, 7)] {
            let whole = quota(limit, algorithm);
            let admitted = (0..members).map(|_| {
                let node = store(StandbyLimit::Share, members);
                let admits = |_: &u64| !alone(&node, &[charge(1, &whole, 1)])[0].ends_with('!');
                (0..=limit).take_while(admits).count() as u64
            });
            let admitted: u64 = admitted.sum();
            assert!(
                admitted <= limit.max(members.into()),
                "{admitted} of {limit}"
            );
        }
    }
}

#[test]
fn a_node_may_enforce_the_whole_limit() {
    let store = store(StandbyLimit::Whole, 3);
    let window = quota(100, Algorithm::FixedWindow);
    assert_eq!(alone(&store, &[charge(1, &window, 30)]), ["70/100"]);
}

#[test]
fn a_share_follows_the_members_and_the_rules() {
    let store = store(StandbyLimit::Share, 2);
    let (hundred, ten) = (
        quota(100, Algorithm::FixedWindow),
        quota(10, Algorithm::FixedWindow),
    );
    assert_eq!(alone(&store, &[charge(1, &hundred, 1)]), ["49/50"]);
    store.membership().receive(4, Time::ZERO);
    assert_eq!(alone(&store, &[charge(1, &hundred, 1)]), ["23/25"]);
    assert_eq!(alone(&store, &[charge(1, &ten, 0)]), ["0/2"]);
}

#[test]
fn what_is_too_much_for_a_share_may_come_again() {
    let store = store(StandbyLimit::Share, 4);
    let window = quota(100, Algorithm::FixedWindow);
    let retry = |cost| {
        let mut decisions = Decisions::new();
        store
            .charge_alone(
                &[charge(1, &window, cost)],
                Charging::AllOrNone,
                &mut decisions,
            )
            .unwrap();
        decisions[0].outcome
    };
    let soon = Retry::After(Duration::from_secs(1));
    assert_eq!(retry(26), Outcome::Denied { retry: soon });
    let never = Retry::Never;
    assert_eq!(retry(101), Outcome::Denied { retry: never });
}

#[test]
fn a_nodes_own_limit_is_not_divided_and_all_are_charged_or_none() {
    let store = store(StandbyLimit::Share, 2);
    let window = quota(10, Algorithm::FixedWindow);
    let own = |cost| Charge {
        consistency: Consistency::Node,
        ..charge(1, &window, cost)
    };
    assert_eq!(
        alone(&store, &[own(4), charge(2, &window, 4)]),
        ["6/10", "1/5"]
    );
    assert_eq!(
        alone(&store, &[own(4), charge(2, &window, 4)]),
        ["6/10", "1/5!"]
    );
    assert_eq!(
        alone(&store, &[own(7), charge(2, &window, 1)]),
        ["6/10!", "1/5"]
    );
}

#[test]
fn refunds_and_resets_reach_what_was_counted_alone() {
    let store = store(StandbyLimit::Share, 2);
    let window = quota(10, Algorithm::FixedWindow);
    let key = charge(1, &window, 0).key;
    assert_eq!(alone(&store, &[charge(1, &window, 5)]), ["0/5"]);
    let refunded = wait(store.refund(key, &window, 2, RefundTo::Current, Consistency::Strict));
    assert_eq!(
        refunded,
        Err(StoreError::Open),
        "the store has still to hear of it"
    );
    assert_eq!(alone(&store, &[charge(1, &window, 0)]), ["2/5"]);
    let reset = wait(store.reset(key, &window, Consistency::Strict));
    assert_eq!(reset, Err(StoreError::Open));
    assert_eq!(alone(&store, &[charge(1, &window, 0)]), ["5/5"]);
}

#[test]
fn time_goes_on_while_the_store_is_lost() {
    let store = store(StandbyLimit::Share, 1);
    store.remote().set(Fault::None);
    assert_eq!(wait(store.now()), Ok(NOON));
    store.remote().set(Fault::Lost);
    store.local().clock().0.advance(MINUTE);
    assert_eq!(wait(store.now()), Ok(NOON.plus(MINUTE)));
}

#[test]
fn the_store_counts_on_where_it_was_when_it_is_back() {
    let store = store(StandbyLimit::Share, 1);
    let window = quota(10, Algorithm::FixedWindow);
    let charges = [charge(1, &window, 4)];
    let shared = || {
        let mut decisions = Decisions::new();
        wait(store.charge(&charges, Charging::AllOrNone, &mut decisions))?;
        Ok(decisions[0].remaining)
    };
    store.remote().set(Fault::None);
    assert_eq!(shared(), Ok(6));
    store.remote().set(Fault::Lost);
    assert_eq!(shared(), Err(StoreError::Open));
    assert_eq!(
        alone(&store, &charges),
        ["2/10"],
        "alone, it goes on from there"
    );
    store.remote().set(Fault::None);
    assert_eq!(shared(), Ok(2), "what was counted alone is not told");
}

#[test]
fn the_cuts_kept_are_bounded() {
    let cuts = Cuts::default();
    let window = quota(100, Algorithm::FixedWindow);
    for limit in 0..20_000 {
        cuts.find(LimitId(limit), &window, 2);
    }
    assert!(cuts.len() <= 16_384);
}
