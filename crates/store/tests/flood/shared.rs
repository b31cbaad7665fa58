//! Callers without room: charges, looks, refunds and evicted counts in shared counters.

use std::time::Duration;

use tidegate_algorithms::{Algorithm, Allowance, Decision, Quota, QuotaSpec, Refill, RefundTo};
use tidegate_store::{Charge, LimitId, OnFull};

use crate::small_store::{
    ALGORITHMS, HOUR, MOST_SLOTS, SLIDING_LOG, SUB_WINDOWS, SmallStore, TOKEN_BUCKET, charge,
    daily, hourly, quota,
};

/// A store full of counters that are in use counts new callers in shared counters: none gets more than the quota.
#[test]
fn callers_without_room_share_counters() {
    const CALLERS: usize = 1_000;
    for (algorithm, offenders) in [
        (TOKEN_BUCKET, 4 * MOST_SLOTS),
        (Algorithm::FixedWindow, 4 * MOST_SLOTS),
        (SLIDING_LOG, MOST_SLOTS),
        (SUB_WINDOWS, MOST_SLOTS),
    ] {
        let store = SmallStore::new();
        let three = hourly(3, algorithm);
        for n in 0..offenders {
            let offender = format!("offender {n}");
            store.charge(&offender, &three, OnFull::Shared);
            store.charge(&offender, &three, OnFull::Shared);
        }
        let before = store.stats();
        let allowed = (0..CALLERS).map(|n| {
            let caller = format!("caller {n}");
            let asks = [(); 9].map(|()| store.charge(&caller, &three, OnFull::Shared));
            asks.iter().filter(|decision| decision.is_allowed()).count()
        });
        let allowed: Vec<_> = allowed.collect();
        assert!(
            allowed.iter().all(|&n| n <= 3),
            "{algorithm:?}: {allowed:?}"
        );
        let untracked = store.stats().untracked - before.untracked;
        assert!(untracked > 8_000, "{algorithm:?}: {untracked}");
        assert!(store.stats().is_full);
    }
}

/// Nine in ten of 1,000 callers without room are allowed half their quota, if only they use the shared counters.
#[test]
fn honest_callers_without_room_get_half_their_quota() {
    let store = full_store();
    for (n, algorithm) in (0..).zip(ALGORITHMS) {
        // Windows of their own, because algorithms with the same state have shared counters in common.
        let four = quota(4, HOUR + n * Duration::from_mins(1), algorithm);
        let before = store.stats().untracked;
        let is_served = |n: &u64| {
            let caller = format!("honest {n}");
            let asks = [(); 2].map(|()| store.charge(&caller, &four, OnFull::Shared));
            asks.iter().all(Decision::is_allowed)
        };
        let served = (0..1_000).filter(is_served).count();
        assert!(served >= 900, "{algorithm:?}: {served}");
        assert!(store.stats().untracked >= before + 1_990, "{algorithm:?}");
    }
}

/// A caller without room that looks first and is charged later is denied when its shared counter is exhausted.
#[test]
fn a_look_sees_the_shared_counter() {
    for postpaid in [false, true] {
        let store = full_store();
        for algorithm in ALGORITHMS {
            let allowance = if postpaid {
                Allowance::Postpaid { max_debt: None }
            } else {
                Allowance::Hard
            };
            // A leaky bucket cannot be postpaid.
            let Some(one) = hourly_with(1, algorithm, allowance) else {
                continue;
            };
            let caller = caller_of_a_free_counter(&store, &one);
            check_looks(&store, &caller, &one);
        }
    }
}

/// A look finds the room that a charge finds, also where all counters nearby are in use and only those further off are
/// not.
#[test]
fn a_look_finds_the_room_that_a_charge_finds() {
    let store = full_store();
    store.advance(Duration::from_secs(3));
    // Five in six of all.
    let day = daily(3, Algorithm::FixedWindow);
    for n in 0..MOST_SLOTS * 7 / 10 {
        let name = format!("in use {n}");
        store.charge(&name, &day, OnFull::Allow);
        store.charge(&name, &day, OnFull::Allow);
    }
    let one = hourly(1, Algorithm::FixedWindow);
    for n in 0..500 {
        let caller = format!("fresh {n}");
        let values = [caller.as_str()];
        let look = store.0.peek_now(&charge(&values, &one, OnFull::Deny));
        let charged = store.charge(&caller, &one, OnFull::Deny);
        let is_found = look.expect("a look").is_allowed();
        assert_eq!(is_found, charged.is_allowed(), "{caller}");
    }
}

/// The same where there are slots, but no blocks.
#[test]
fn a_look_sees_the_shared_counter_without_blocks() {
    for algorithm in [SLIDING_LOG, SUB_WINDOWS] {
        let store = SmallStore::new();
        store.use_up(&daily(8, algorithm));
        let one = hourly(1, algorithm);
        let caller = caller_of_a_free_counter(&store, &one);
        check_looks(&store, &caller, &one);
    }
}

/// A caller that is only new is not looked up in a shared counter.
#[test]
fn a_look_of_a_new_caller_sees_nothing() {
    let store = full_store();
    let one = hourly(1, Algorithm::FixedWindow);
    let caller = caller_of_a_free_counter(&store, &one);
    // Nothing is in use any more, so a charge would find room.
    store.advance(Duration::from_secs(3));
    let caller = [caller.as_str()];
    let look = charge(&caller, &one, OnFull::Shared);
    assert!(store.0.peek_now(&look).expect("a look").is_allowed());
}

/// A look beside a charge of the same counter goes where the charge goes.
#[test]
fn a_look_beside_a_charge_without_room_is_answered_with_it() {
    let store = full_store();
    for algorithm in ALGORITHMS {
        let two = hourly(2, algorithm);
        let caller = caller_of_a_free_counter(&store, &two);
        let caller = [caller.as_str()];
        let ask = charge(&caller, &two, OnFull::Shared);
        let (_, decisions) = store.charge_all(&[ask, Charge { cost: 0, ..ask }]);
        let is_allowed = [0, 1].map(|n: usize| decisions[n].is_allowed());
        assert_eq!(is_allowed, [true; 2], "{algorithm:?}");
    }
}

/// A refund of a charge that went to a shared counter goes there too.
#[test]
fn a_refund_reaches_the_shared_counter() {
    let store = full_store();
    for algorithm in ALGORITHMS {
        let one = hourly(1, algorithm);
        let is_allowed = |n: &u64| {
            let caller = format!("caller {n}");
            let (receipt, decisions) =
                store.charge_all(&[charge(&[&caller], &one, OnFull::Shared)]);
            let stamp = receipt.stamp(0, &decisions[0]);
            decisions[0].is_allowed().then_some((*n, stamp))
        };
        let (n, stamp) = (0..100).find_map(|n| is_allowed(&n)).expect("a free one");
        while is_allowed(&n).is_some() {}
        let caller = format!("caller {n}");
        let refund = |to| {
            let refunded =
                store
                    .0
                    .refund_now(charge(&[&caller], &one, OnFull::Shared).key, &one, 1, to);
            refunded.expect("a refund");
        };
        refund(RefundTo::Current);
        assert!(is_allowed(&n).is_none(), "{algorithm:?}: no own counter");
        if !matches!(algorithm, Algorithm::LeakyBucket { .. }) {
            refund(RefundTo::Charge(stamp));
            assert!(is_allowed(&n).is_some(), "{algorithm:?}");
        }
    }
}

/// A refund of a charge that was counted nowhere leaves the shared counter of other callers alone.
#[test]
fn a_refund_of_an_uncounted_charge_changes_nothing() {
    let store = full_store();
    for algorithm in ALGORITHMS {
        let one = hourly(1, algorithm);
        let caller = caller_of_a_free_counter(&store, &one);
        while store.charge(&caller, &one, OnFull::Shared).is_allowed() {}
        let caller_values = [caller.as_str()];
        let uncounted = charge(&caller_values, &one, OnFull::Allow);
        let (receipt, decisions) = store.charge_all(&[uncounted]);
        assert!(decisions[0].is_allowed(), "{algorithm:?}");
        let to = RefundTo::Charge(receipt.stamp(0, &decisions[0]));
        let refunded = store.0.refund_now(uncounted.key, &one, 1, to);
        refunded.expect("a refund");
        let again = store.charge(&caller, &one, OnFull::Shared);
        assert!(!again.is_allowed(), "{algorithm:?}");
    }
}

/// A caller that used up its quota and was evicted is denied by its shared counter when it finds no room.
#[test]
fn an_evicted_count_is_charged_to_the_shared_counter() {
    const WIDE: u64 = 7_000_003;
    const CALLERS: u64 = 50;
    let deep = Algorithm::TokenBucket {
        burst: Some(3_000),
        refill: Refill::Interval,
    };
    let counter = ALGORITHMS[5];
    for (limit, used, algorithm) in [
        (3, 3, SLIDING_LOG),
        (3, 3, SUB_WINDOWS),
        (WIDE, WIDE, SUB_WINDOWS),
        (WIDE, WIDE, counter),
        // No whole nanoseconds for a token.
        (WIDE, WIDE, TOKEN_BUCKET),
        (WIDE, WIDE, Algorithm::LeakyBucket { queue: None }),
        // More periods until it is full than fit a word.
        (10, 3_000, deep),
    ] {
        let store = SmallStore::new();
        let quota = hourly(limit, algorithm);
        let callers = (0..CALLERS).map(|n| format!("caller {n}"));
        let callers: Vec<_> = callers.collect();
        for caller in &callers {
            let caller = [caller.as_str()];
            let all = Charge {
                cost: used,
                ..charge(&caller, &quota, OnFull::Shared)
            };
            assert!(store.charge_all(&[all]).1[0].is_allowed(), "{algorithm:?}");
        }
        store.advance(Duration::from_secs(3));
        store.use_up(&daily(3, Algorithm::FixedWindow));
        let before = store.stats();
        assert_eq!(before.unfolded, 0);
        for caller in &callers {
            let again = store.charge(caller, &quota, OnFull::Shared);
            // A leaky bucket drains meanwhile.
            assert!(
                again.remaining < limit / 100 + 1,
                "{algorithm:?}: {again:?}"
            );
        }
        let untracked = store.stats().untracked - before.untracked;
        assert_eq!(untracked, CALLERS, "{algorithm:?}: none found room");
    }
}

/// A caller that used up its quota, paused and was evicted starts anew where it finds room, and gets one quota for each
/// time that this happens. Where it finds none, its shared counter knows what it used.
#[test]
fn an_evicted_caller_starts_anew_only_where_it_finds_room() {
    for algorithm in [Algorithm::FixedWindow, SLIDING_LOG, SUB_WINDOWS] {
        let store = SmallStore::new();
        let three = hourly(3, algorithm);
        let callers: Vec<_> = (0..50).map(|n| format!("caller {n}")).collect();
        let allowed = || {
            let ask = |caller: &&String| store.charge(caller, &three, OnFull::Shared).is_allowed();
            (0..6)
                .map(|_| callers.iter().filter(ask).count())
                .collect::<Vec<_>>()
        };
        let quota = [50, 50, 50, 0, 0, 0];
        assert_eq!(allowed(), quota, "{algorithm:?}");
        store.advance(Duration::from_secs(3));
        // Of another window, so that nothing of it is added to the shared counters of the callers.
        store.flood("flood", 4 * MOST_SLOTS, &daily(3, Algorithm::FixedWindow));
        store.advance(Duration::from_secs(3));
        assert_eq!(allowed(), quota, "{algorithm:?}: with room");
        store.advance(Duration::from_secs(3));
        store.use_up(&daily(3, Algorithm::FixedWindow));
        let without_room = callers.iter().filter(|caller| {
            let before = store.stats().untracked;
            let is_allowed = store.charge(caller, &three, OnFull::Shared).is_allowed();
            let has_room = store.stats().untracked == before;
            assert!(has_room || !is_allowed, "{algorithm:?}: without room");
            !has_room
        });
        // Chance may leave room for one or two.
        assert!(without_room.count() > 40, "{algorithm:?}");
    }
}

/// Limits of the same algorithm and window have their shared counters in common: each is held, and callers of the
/// smaller limit are denied where callers of the larger one have used their counter.
#[test]
fn two_limits_of_one_window_are_both_held() {
    const LARGE_CALLERS: u64 = 200;
    for algorithm in [Algorithm::FixedWindow, SLIDING_LOG] {
        let store = full_store();
        let allowed = |limit, quota: &Quota, caller: &str, requests| {
            let caller = [caller];
            let mut ask = charge(&caller, quota, OnFull::Shared);
            ask.key.limit = limit;
            let is_allowed = |_: &u64| store.charge_all(&[ask]).1[0].is_allowed();
            (0..requests).filter(is_allowed).count()
        };
        let (small, large) = (hourly(4, algorithm), hourly(40, algorithm));
        for n in 0..LARGE_CALLERS {
            let most = allowed(LimitId(2), &large, &format!("large {n}"), 80);
            assert!(most <= 40, "{algorithm:?}: {most}");
        }
        let callers = (0..1_000).map(|n| format!("small {n}"));
        let counts = callers.map(|caller| allowed(LimitId(3), &small, &caller, 2));
        let served = counts.filter(|&n| n == 2).count();
        // 2,048 counters: 200 callers use a tenth of them, and one in thirty is the third on its counter.
        assert!((800..950).contains(&served), "{algorithm:?}: {served}");
        let greedy = (0..100).map(|n| format!("greedy {n}"));
        let most = greedy
            .map(|caller| allowed(LimitId(3), &small, &caller, 20))
            .max();
        assert!(most <= Some(4), "{algorithm:?}: {most:?}");
    }
}

/// A store whose slots are all in use.
fn full_store() -> SmallStore {
    let store = SmallStore::new();
    store.use_up(&daily(3, Algorithm::FixedWindow));
    store
}

fn hourly_with(limit: u64, algorithm: Algorithm, allowance: Allowance) -> Option<Quota> {
    let spec = QuotaSpec {
        limit,
        window: HOUR,
        algorithm,
        allowance,
    };
    Quota::new(&spec).ok()
}

/// A caller that was just allowed one request by a shared counter that nobody else had used.
fn caller_of_a_free_counter(store: &SmallStore, quota: &Quota) -> String {
    let mut callers = (0..1_000).map(|n| format!("caller {n}"));
    let is_free = |caller: &String| {
        let before = store.stats().untracked;
        let decision = store.charge(caller, quota, OnFull::Shared);
        let is_shared = store.stats().untracked > before;
        is_shared && decision.is_allowed() && decision.remaining + 1 >= quota.limit()
    };
    callers.find(is_free).expect("a free counter")
}

/// Checks the looks of a caller that has used up its shared counter.
fn check_looks(store: &SmallStore, caller: &str, quota: &Quota) {
    while store.charge(caller, quota, OnFull::Shared).is_allowed() {}
    let before = store.stats().untracked;
    let caller = [caller];
    let look = |on_full| Charge {
        cost: 0,
        ..charge(&caller, quota, on_full)
    };
    let (_, decisions) = store.charge_all(&[look(OnFull::Shared)]);
    let algorithm = quota.algorithm();
    assert_eq!(decisions[0].remaining, 0, "{algorithm:?}");
    assert_eq!(decisions[0].is_allowed(), !quota.is_postpaid());
    for (on_full, is_allowed) in [
        (OnFull::Shared, false),
        (OnFull::Allow, true),
        (OnFull::Deny, false),
    ] {
        let peeked = store.0.peek_now(&look(on_full)).expect("a look");
        assert_eq!(
            peeked.is_allowed(),
            is_allowed,
            "{algorithm:?}, {on_full:?}"
        );
    }
    assert_eq!(store.stats().untracked, before, "a look is no charge");
}
