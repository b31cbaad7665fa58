//! Refunds with the receipt of their charge, however a limit is shared: they go to the window of the charge or are
//! lost, and never enlarge a later one.

use tidegate_algorithms::{ChargeStamp, Headroom, Quota, RefundTo, Time};
use tidegate_store::conformance::late_refunds_make_no_room_of_their_own;
use tidegate_store::{
    Charge, Charging, Consistency, CounterKey, Decisions, LimitId, Mode, OnFull, Store,
};

use crate::subject::{LoneNode, SharedSubject, Way, at_once, per_day};

macro_rules! ways {
    ($($name:ident),*) => {
        $(
            struct $name;

            impl Way for $name {
                fn consistency(_: CounterKey<'_>, _: &Quota) -> Consistency {
                    Consistency::$name
                }
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

// === impl LoneNode ===

impl LoneNode {
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

        node.set(Time::from_nanos(MIDNIGHT - SECOND));
        node.refund(&five, of_yesterday[0], consistency);
        check(1);

        node.set(Time::from_nanos(MIDNIGHT));
        let of_today = node.take(&five, consistency).unwrap();
        node.set(Time::from_nanos(MIDNIGHT + SECOND));
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

        node.set(Time::from_nanos(MIDNIGHT));
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
        node.set(Time::from_nanos(MIDNIGHT - 3_600 * SECOND + n * 1_000_000));
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

    node.set(Time::from_nanos(MIDNIGHT + SECOND));
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
