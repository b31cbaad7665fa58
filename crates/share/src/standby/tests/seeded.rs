//! What a node knows when it is left alone.

use tidegate_algorithms::{Refill, RefundTo};

use super::*;
use crate::node::Node;
use crate::noted::Noted;
use crate::reckoning::StoreClock;

const BUCKET: Algorithm = Algorithm::TokenBucket {
    burst: None,
    refill: Refill::Continuous,
};

/// By how much a clock is off: not by whole windows.
const WRONG: Duration = Duration::from_secs(3_630);

const LOG: Algorithm = Algorithm::SlidingLog { log_refused: false };

/// Asks the common store: what each limit says, as `remaining`, with a `!` for a refusal.
fn shared(store: &Shared, charges: &[Charge<'_>], charging: Charging) -> Vec<String> {
    store.remote().set(Fault::None);
    let mut decisions = Decisions::new();
    wait(store.charge(charges, charging, &mut decisions)).unwrap();
    store.remote().set(Fault::Lost);
    let text = |it: &Decision| {
        let refused = if it.is_allowed() { "" } else { "!" };
        format!("{}{refused}", it.remaining)
    };
    decisions.iter().map(text).collect()
}

/// Has `cost` admitted by the common store.
#[track_caller]
fn admit(store: &Shared, charge: Charge<'_>) {
    let said = shared(store, &[charge], Charging::AllOrNone);
    assert!(!said[0].ends_with('!'), "{said:?}");
}

/// What of its share a node has left, of a limit of 10 for two, after the store admitted `cost` of it.
#[track_caller]
fn left_after(algorithm: Algorithm, cost: u64) -> String {
    let store = store(StandbyLimit::Share, 2);
    let quota = quota(10, algorithm);
    admit(&store, charge(1, &quota, cost));
    let said = alone(&store, &[charge(1, &quota, 0)]).remove(0);
    // More than the share is used up, if there is a mark.
    said.trim_end_matches('!').to_owned()
}

#[test]
fn a_node_alone_has_the_rest_of_its_share() {
    for algorithm in [Algorithm::FixedWindow, LOG, BUCKET] {
        assert_eq!(left_after(algorithm, 3), "2/5");
        assert_eq!(left_after(algorithm, 5), "0/5");
        assert_eq!(left_after(algorithm, 9), "0/5");
    }
}

#[test]
fn a_window_ends_and_a_bucket_fills_for_notes_too() {
    let store = store(StandbyLimit::Share, 2);
    let (window, bucket) = (quota(10, Algorithm::FixedWindow), quota(10, BUCKET));
    admit(&store, charge(1, &window, 9));
    admit(&store, charge(2, &bucket, 9));
    store.local().clock().0.advance(MINUTE);
    assert_eq!(alone(&store, &[charge(1, &window, 0)]), ["5/5"]);
    assert_eq!(alone(&store, &[charge(2, &bucket, 0)]), ["5/5"]);
}

/// Counts are true beyond the share, so that a node that is the last one does not begin anew.
#[test]
fn notes_are_true_when_members_and_numbers_change() {
    let store = store(StandbyLimit::Share, 2);
    let (ten, thirty) = (
        quota(10, Algorithm::FixedWindow),
        quota(30, Algorithm::FixedWindow),
    );
    admit(&store, charge(1, &ten, 8));
    assert_eq!(alone(&store, &[charge(1, &thirty, 0)]), ["7/15"]);
    store.membership().receive(1, Time::MAX);
    assert_eq!(alone(&store, &[charge(1, &ten, 0)]), ["2/10"]);
}

/// What was admitted alone and then by the store may be more than the limit, and is noted all the same.
#[test]
fn notes_are_true_beyond_the_limit() {
    let counter = Algorithm::SlidingCounter {
        sub_windows: 1,
        rounding: tidegate_algorithms::Rounding::Down,
    };
    for algorithm in [Algorithm::FixedWindow, counter, LOG] {
        let store = store(StandbyLimit::Share, 1);
        let (ten, thirty) = (quota(10, algorithm), quota(30, algorithm));
        assert_eq!(alone(&store, &[charge(1, &ten, 8)]), ["2/10"]);
        admit(&store, charge(1, &ten, 9));
        let left = alone(&store, &[charge(1, &thirty, 0)]);
        assert_eq!(left, ["13/30"], "{algorithm:?}");
    }
}

#[test]
fn what_was_refused_or_only_looked_at_is_not_noted() {
    let store = store(StandbyLimit::Share, 1);
    let (ten, two) = (
        quota(10, Algorithm::FixedWindow),
        quota(2, Algorithm::FixedWindow),
    );
    let both = [charge(1, &ten, 3), charge(2, &two, 3)];
    assert_eq!(shared(&store, &both, Charging::AllOrNone), ["10", "2!"]);
    admit(&store, charge(1, &ten, 0));
    assert_eq!(alone(&store, &[charge(1, &ten, 0)]), ["10/10"]);
    assert_eq!(shared(&store, &both, Charging::EveryMatch)[0], "7");
    assert_eq!(alone(&store, &[charge(1, &ten, 0)]), ["7/10"]);
}

#[test]
fn limits_that_are_shared_otherwise_are_not_noted() {
    let store = store(StandbyLimit::Share, 1);
    let window = quota(100, Algorithm::FixedWindow);
    for (limit, consistency) in [(1, Consistency::Eventual), (2, Consistency::Split)] {
        let charge = Charge {
            consistency,
            ..charge(limit, &window, 1)
        };
        admit(&store, charge);
        let noted = store.local().peek_now(&charge).unwrap();
        assert_eq!(noted.remaining, 100, "{consistency:?}");
    }
}

#[test]
fn whom_the_store_refused_the_node_refuses_until_that_can_change() {
    let common = common();
    let [other, store] = [(); 2].map(|()| node(&common, StandbyLimit::Share, 2));
    let window = quota(10, Algorithm::FixedWindow);
    admit(&other, charge(1, &window, 8));
    let refused = shared(&store, &[charge(1, &window, 3)], Charging::AllOrNone);
    assert_eq!(refused, ["2!"]);
    store.local().clock().0.advance(MINUTE / 2);
    assert_eq!(alone(&store, &[charge(1, &window, 3)]), ["2/10!"]);
    assert_eq!(alone(&store, &[charge(1, &window, 4)]), ["2/10!"]);
    assert_eq!(alone(&store, &[charge(1, &window, 2)]), ["3/5"]);
    let twenty = quota(20, Algorithm::FixedWindow);
    assert_eq!(
        alone(&store, &[charge(1, &twenty, 3)]),
        ["5/10"],
        "the rules have changed"
    );
    store.local().clock().0.advance(MINUTE / 2);
    assert_eq!(alone(&store, &[charge(1, &window, 3)]), ["2/5"]);
}

#[test]
fn a_denial_is_answered_from_memory_for_a_moment_only() {
    let common = common();
    let [other, store] = [(); 2].map(|()| node(&common, StandbyLimit::Share, 2));
    let window = quota(10, Algorithm::FixedWindow);
    let whole = charge(1, &window, 10);
    admit(&other, whole);
    assert_eq!(shared(&store, &[whole], Charging::AllOrNone), ["0!"]);
    common.reset_now(whole.key, &window).unwrap();
    assert_eq!(shared(&store, &[whole], Charging::AllOrNone), ["0!"]);
    common.clock().0.advance(Duration::from_millis(100));
    assert_eq!(shared(&store, &[whole], Charging::AllOrNone), ["0"]);
}

#[test]
fn refunds_and_resets_reach_notes_and_refusals() {
    let store = store(StandbyLimit::Share, 1);
    let window = quota(10, Algorithm::FixedWindow);
    let nine = charge(1, &window, 9);
    admit(&store, nine);
    shared(&store, &[nine], Charging::AllOrNone);
    assert_eq!(alone(&store, &[nine]), ["1/10!"]);
    store.remote().set(Fault::None);
    wait(store.refund(nine.key, &window, 8, RefundTo::Current, Consistency::Strict)).unwrap();
    assert_eq!(alone(&store, &[charge(1, &window, 0)]), ["9/10"]);
    assert_eq!(alone(&store, &[nine]), ["0/10"]);
    assert_eq!(
        wait(store.reset(nine.key, &window, Consistency::Strict)),
        Ok(true)
    );
    assert_eq!(alone(&store, &[nine]), ["1/10"]);
}

/// A node whose clock is wrong knows what was admitted in the store's window, and forgets it when that ends.
#[test]
fn notes_go_by_the_stores_time() {
    let common = common();
    let clock = |time| OneClock(Arc::new(ManualClock::at(time)));
    for wall in [clock(NOON.plus(WRONG)), clock(Time::from_nanos(0))] {
        let own = clock(Time::from_nanos(7));
        let store = node_with(&common, wall.clone(), own.clone());
        let pass = |span| {
            for clock in [common.clock(), &wall, &own] {
                clock.0.advance(span);
            }
        };
        let window = quota(10, Algorithm::FixedWindow);
        let left = || alone(&store, &[charge(1, &window, 0)]);
        pass(MINUTE / 3);
        admit(&store, charge(1, &window, 4));
        pass(MINUTE / 3);
        assert_eq!(left(), ["6/10"]);
        pass(MINUTE / 3);
        assert_eq!(left(), ["10/10"]);
    }
}

/// A loan counts as a whole from when it is drawn, less what is given back in its window.
#[test]
fn loans_are_noted_as_they_are_drawn_and_given_back() {
    let common = common();
    let clock = common.clock().clone();
    let remote = losable(&common);
    // Whatever the machine's date is: the store tells its own.
    let reckoned = StoreClock::new(Arc::new(clock.clone()), NOON.plus(WRONG));
    let memory = EmbeddedStore::with_clock(SMALL, clock.clone());
    let alone = EmbeddedStore::with_clock(SMALL, reckoned);
    let membership =
        crate::Membership::new(crate::KnownMembers::default(), Duration::ZERO, Time::ZERO);
    let standby = Standby::new(StandbyLimit::Share, membership);
    let noted = Noted::new(remote, Node::new(memory), alone, standby);
    let window = quota(100, Algorithm::FixedWindow);
    let look = charge(1, &window, 0);
    let key = look.key;
    let left = || noted.alone().peek_now(&look).unwrap().remaining;
    let draw = Draw {
        least: 1,
        most: 40,
        one_in: 1,
        reserve: 0,
        life: Duration::from_secs(1),
    };
    let loan = wait(noted.draw(key, &window, draw)).unwrap();
    assert_eq!((loan.permits, left()), (40, 60));
    wait(noted.give_back(key, &window, &loan, 15)).unwrap();
    assert_eq!(left(), 75);
    clock.0.advance(MINUTE);
    let next = wait(noted.draw(key, &window, draw)).unwrap();
    wait(noted.give_back(key, &window, &loan, 25)).unwrap();
    assert_eq!((next.permits, left()), (40, 60), "another window by now");
}
