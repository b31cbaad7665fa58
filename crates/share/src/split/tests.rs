mod world;

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tidegate_algorithms::{
    Algorithm, Allowance, Decision, Outcome, Quota, QuotaSpec, Refill, Retry, Rounding, Standing,
    Time,
};
use tidegate_store::{
    Charging, Clock, EmbeddedStore, LimitId, ManualClock, Mode, Plan, Plans, Pulse,
};

use self::world::{EXPIRY, HEARTBEAT, Random, State, Weather, World};
use super::cut::{Fraction, Indivisible, cut, divisible, memory, parts, strict_from};
use super::denied::{DeniedRequests, SLOTS};
use super::{Split, SplitAlone, SplitConfig};
use crate::capacity::capacity;
use crate::membership::KnownMembers;
use crate::memory::FromMemory;
use crate::reckoning::StoreClock;
use crate::standby::{Standby, StandbyLimit};

const SECOND: Duration = Duration::from_secs(1);

/// By how much a span of a node's clock may be short.
const DRIFT: u32 = 1_000;

fn quota(algorithm: Algorithm, limit: u64, window: Duration) -> Quota {
    let spec = QuotaSpec {
        limit,
        window,
        algorithm,
        allowance: Allowance::Hard,
    };
    Quota::new(&spec).expect("it is valid")
}

fn bucket(burst: Option<u64>, refill: Refill) -> Algorithm {
    Algorithm::TokenBucket { burst, refill }
}

const LOG: Algorithm = Algorithm::SlidingLog { log_refused: false };

const COUNTER: Algorithm = Algorithm::SlidingCounter {
    sub_windows: 1,
    rounding: Rounding::Down,
};

fn any_quota() -> impl Strategy<Value = Quota> {
    let algorithm = prop_oneof![
        3 => Just(Algorithm::FixedWindow),
        2 => Just(LOG),
        2 => prop::option::of(1_u64..400).prop_map(|burst| bucket(burst, Refill::Continuous)),
        1 => Just(bucket(None, Refill::Interval)),
        1 => Just(COUNTER),
    ];
    let window = prop_oneof![Just(300_u64), Just(1_000), Just(2_500)];
    let limit = prop_oneof![1_u64..10, 10_u64..300];
    (algorithm, limit, window).prop_map(|(algorithm, limit, window)| {
        quota(algorithm, limit, Duration::from_millis(window))
    })
}

fn any_weather() -> impl Strategy<Value = Weather> {
    (1_u64..30, 10_u64..200).prop_map(|(delay, bad_one_in)| Weather {
        delay: Duration::from_millis(delay),
        bad_one_in,
        drift: 400,
    })
}

/// A busy time with nodes that come and go: everybody wants more than there is, now here, now there.
fn live(world: &mut World, seed: u64, quota: &Quota) {
    let mut random = Random::new(seed);
    world.join();
    // In steps that are no part of any window.
    let step = Duration::from_micros(9_700);
    let share = quota.window().as_nanos() / step.as_nanos();
    let burst = 1 + quota.limit() * 3 / u64::try_from(share).expect("it is small");
    let mut hot = 0;
    for _ in 0..1_500 {
        let nodes = u64::try_from(world.nodes.len()).expect("there are few");
        match random.below(150) {
            0 if nodes < 9 => world.join(),
            1 => hot = random.below(nodes),
            2 => change(world, random.below(nodes), random.below(4)),
            _ => {}
        }
        for _ in 0..random.below(burst * 2) {
            let node = match random.below(2) {
                0 => hot,
                _ => random.below(nodes),
            };
            let node = usize::try_from(node).expect("there are few");
            world.request(node, 1 + random.below(3) / 2);
        }
        world.pass(step);
    }
}

fn change(world: &mut World, node: u64, what: u64) {
    let node = usize::try_from(node).expect("there are few");
    let state = world.nodes[node].state;
    match (state, what) {
        (State::Up, 0) => world.leave(node),
        (State::Up, 1) => world.nodes[node].state = State::Gone,
        (State::Up, _) => world.nodes[node].state = State::CutOff,
        (State::CutOff, _) => world.nodes[node].state = State::Up,
        (State::Gone, _) => {}
    }
}

/// What all nodes together admitted is no more than one node would have.
fn check_promise(world: &mut World, quota: &Quota) {
    world.admitted.sort_unstable();
    let admitted = &world.admitted;
    match quota.algorithm() {
        // A counter may admit twice its limit where windows meet, but not in one of them.
        Algorithm::FixedWindow | Algorithm::SlidingCounter { .. } => check_windows(admitted, quota),
        Algorithm::TokenBucket { refill, .. } => check_bucket(admitted, quota, refill),
        _ => check_sliding(admitted, quota),
    }
}

fn check_windows(admitted: &[(Time, u64)], quota: &Quota) {
    let mut counts = std::collections::BTreeMap::<u128, u64>::new();
    for (at, cost) in admitted {
        let window = u128::from(at.nanos()) / quota.window().as_nanos();
        *counts.entry(window).or_default() += cost;
    }
    for (window, count) in counts {
        assert!(count <= quota.limit(), "{count} in window {window}");
    }
}

fn check_sliding(admitted: &[(Time, u64)], quota: &Quota) {
    let window = quota.window().saturating_sub(quota.window() / DRIFT);
    let (mut first, mut count) = (0, 0);
    for (at, cost) in admitted {
        count += cost;
        while admitted[first].0.plus(window) <= *at {
            count -= admitted[first].1;
            first += 1;
        }
        let limit = quota.limit();
        assert!(count <= limit, "{count} in the window that ends at {at:?}");
    }
}

/// The level of the whole bucket never falls below empty, in millionths of a token.
fn check_bucket(admitted: &[(Time, u64)], quota: &Quota, refill: Refill) {
    let million = 1_000_000_u128;
    let full = u128::from(capacity(quota)) * million;
    let window = quota.window().as_nanos();
    let (mut level, mut last) = (full, None);
    for (at, cost) in admitted {
        let at = u128::from(at.nanos());
        let last = last.replace(at).unwrap_or(at);
        let windows = match refill {
            Refill::Continuous => {
                let passed = (at - last) * (u128::from(DRIFT) + 1) / u128::from(DRIFT);
                passed * million / window + 1
            }
            Refill::Interval => (at / window - last / window) * million,
        };
        level = full.min(level + windows * u128::from(quota.limit()));
        let cost = u128::from(*cost) * million;
        assert!(cost <= level, "{level} left at {at}");
        level -= cost;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whoever comes, goes, dies or is cut off, whatever the clocks show and however late messages are:
    /// all nodes together admit no more than the limit.
    #[test]
    fn shares_are_never_more_than_the_limit(
        quota in any_quota(), weather in any_weather(), seed: u64,
    ) {
        let mut world = World::new(quota.clone(), weather, seed);
        live(&mut world, seed, &quota);
        prop_assert!(!world.admitted.is_empty());
        check_promise(&mut world, &quota);
    }
}

/// Fine weather.
const CALM: Weather = Weather {
    delay: Duration::from_millis(1),
    bad_one_in: u64::MAX,
    drift: 100,
};

/// Has requests come evenly, three times as many as there may be, to nodes in proportion to `weights`.
fn hammer(world: &mut World, quota: &Quota, weights: &[u64], span: Duration) {
    let total: u64 = weights.iter().sum();
    let step = Duration::from_millis(1);
    let in_step = |steps: u64| {
        let asked = u128::from(steps * 3 * quota.limit()) * step.as_nanos();
        u64::try_from(asked / quota.window().as_nanos()).expect("it is not that many")
    };
    let steps = u64::try_from(span.as_millis()).expect("it is not that long");
    for at in 0..steps {
        for request in in_step(at)..in_step(at + 1) {
            let mut place = request % total;
            let node = weights.iter().position(|weight| {
                let is_it = place < *weight;
                place = place.saturating_sub(*weight);
                is_it
            });
            world.request(node.expect("it is below the total"), 1);
        }
        world.pass(step);
    }
}

fn admitted_since(world: &World, since: Time) -> u64 {
    let late = world.admitted.iter().filter(|(at, _)| *at >= since);
    late.map(|(_, cost)| cost).sum()
}

/// When nodes come and go, nearly all of the limit is in use again as soon as shares have followed: in the
/// first whole window after the expiry and three heartbeats, and after what counters remember. All along,
/// no more than the limit is.
fn check_use(quota: &Quota, weights: &[u64]) {
    let mut world = World::new(quota.clone(), CALM, 11);
    // One node, then eight, then three, then each of those dies and another starts in its place.
    for (joins, dies) in [(1, 0), (7, 0), (0, 5), (3, 3)] {
        let up = world.nodes.iter_mut();
        let up = up.filter(|node| node.state == State::Up);
        up.take(dies).for_each(|node| node.state = State::Gone);
        for _ in 0..joins {
            world.join();
        }
        let is_up = world.nodes.iter().map(|node| node.state == State::Up);
        let weights = weights.iter().cycle().zip(is_up);
        let weights: Vec<u64> = weights
            .map(|(weight, is_up)| weight * u64::from(is_up))
            .collect();
        let settled = EXPIRY + HEARTBEAT * 3 + memory(quota);
        hammer(&mut world, quota, &weights, settled);
        let to_edge = to_edge(&world, quota.window());
        hammer(&mut world, quota, &weights, to_edge);
        let (since, asked) = (world.now(), world.asked);
        hammer(&mut world, quota, &weights, quota.window() * 4);
        let used = admitted_since(&world, since);
        let due = quota.limit() * 4;
        assert!(
            used * 100 >= due * 95,
            "{used} of {due} with {joins} more, {dies} less"
        );
        let asked = world.asked - asked;
        // Of three times as many requests: the reserve, and to learn that it is used up.
        println!(
            "{used} of {due} used, {asked} asked, {:?}",
            quota.algorithm()
        );
    }
    check_promise(&mut world, quota);
}

/// How long until the next window begins.
fn to_edge(world: &World, window: Duration) -> Duration {
    let since = u128::from(world.now().nanos()) % window.as_nanos();
    let since = u64::try_from(since).expect("it is below the window");
    window.saturating_sub(Duration::from_nanos(since))
}

#[test]
fn nearly_all_of_a_limit_is_used() {
    let even = [1; 8];
    let uneven = [20, 1, 0, 3, 3, 3, 0, 1];
    for weights in [even, uneven] {
        check_use(&quota(Algorithm::FixedWindow, 1_000, SECOND), &weights);
        check_use(&quota(Algorithm::FixedWindow, 200, SECOND / 5), &weights);
        check_use(&quota(LOG, 1_000, SECOND), &weights);
        check_use(
            &quota(bucket(Some(200), Refill::Continuous), 1_000, SECOND),
            &weights,
        );
        check_use(
            &quota(bucket(None, Refill::Interval), 1_000, SECOND),
            &weights,
        );
        check_use(&quota(COUNTER, 1_000, SECOND), &weights);
    }
}

#[test]
fn a_limit_smaller_than_the_number_of_members_is_strict() {
    let quota = quota(Algorithm::FixedWindow, 5, SECOND);
    let mut world = World::new(quota.clone(), CALM, 5);
    for _ in 0..8 {
        world.join();
    }
    hammer(&mut world, &quota, &[1; 8], SECOND * 6);
    let since = world.now();
    // Slowly, so that who is refused comes again.
    hammer(&mut world, &quota, &[1; 8], SECOND * 4);
    assert_eq!(admitted_since(&world, since), 20);
    check_promise(&mut world, &quota);
}

#[test]
fn what_cannot_be_split_is_told() {
    let minute = Duration::from_mins(1);
    assert_eq!(
        divisible(&quota(Algorithm::FixedWindow, 10, minute)),
        Ok(())
    );
    assert_eq!(divisible(&quota(COUNTER, 10, minute)), Ok(()));
    assert_eq!(
        divisible(&quota(LOG, 10, minute + SECOND)),
        Err(Indivisible::LongWindow)
    );
    assert_eq!(
        divisible(&quota(
            bucket(Some(1_000), Refill::Continuous),
            10,
            SECOND * 2
        )),
        Err(Indivisible::LongMemory)
    );
    let refilled = bucket(Some(20), Refill::Interval);
    assert_eq!(
        divisible(&quota(refilled, 10, SECOND)),
        Err(Indivisible::LargeBucket)
    );
    assert_eq!(
        divisible(&quota(Algorithm::LeakyBucket { queue: None }, 10, SECOND)),
        Err(Indivisible::Queue)
    );
}

#[test]
fn from_how_many_nodes_on_a_limit_is_strict_is_told() {
    let fixed = |limit| strict_from(&quota(Algorithm::FixedWindow, limit, SECOND));
    assert_eq!([1, 4, 15, 16, 64].map(fixed), [1, 2, 4, 5, 17]);
    // A bucket has no more parts than it holds tokens.
    let small = quota(bucket(Some(4), Refill::Continuous), 1_000, SECOND);
    assert_eq!(strict_from(&small), 2);
    // Each part of a bucket fills in the same time.
    let odd = quota(bucket(Some(1_001), Refill::Continuous), 1_000, SECOND);
    assert_eq!(strict_from(&odd), 1);
}

proptest! {
    /// Parts that are no more than the whole together are quotas that are no more than it together.
    #[test]
    fn cuts_are_no_more_than_the_whole(
        limit in 1_u64..5_000, burst in prop::option::of(1_u64..5_000),
        shares in prop::collection::vec(0_u32..500, 1..12),
    ) {
        let quota = quota(bucket(burst, Refill::Continuous), limit, SECOND);
        let parts = parts(&quota).max(shares.iter().sum());
        let cuts: Vec<Quota> = shares
            .iter()
            .filter_map(|of| cut(&quota, Fraction { of: *of, parts }))
            .collect();
        let sum = |number: fn(&Quota) -> u64| cuts.iter().map(number).sum::<u64>();
        prop_assert!(sum(Quota::limit) <= quota.limit());
        prop_assert!(sum(capacity) <= capacity(&quota));
    }
}

/// A plan for a second of a limit of 100.
fn plan(second: u64, reserve: u32, share: u32) -> Plan {
    Plan {
        starts: Time::from_micros(second * 1_000_000),
        ends: Time::from_micros((second + 1) * 1_000_000),
        parts: 100,
        share,
        reserve,
        members: 1,
    }
}

/// What was taken in one window is not put back in the next, where others would spend it, however long the request
/// waited for another of its limits; in its own window it is, and be that just after the edge.
#[test]
fn nothing_is_put_back_after_an_edge() {
    let quota = quota(Algorithm::FixedWindow, 100, SECOND);
    let clock = Arc::new(ManualClock::at(Time::from_micros(500_000)));
    let split = Split::with_clock(SplitConfig::default(), Arc::clone(&clock));
    let charge = world::charge(&quota, 1);
    let take = || split.take(&charge, Charging::AllOrNone).expect("no error");
    assert_eq!(take(), None);
    let pulse = Pulse {
        now: clock.now(),
        members: 1,
        previous: None,
        plans: vec![Plans {
            current: Some(plan(0, 3, 97)),
            next: Some(plan(1, 3, 97)),
        }],
    };
    split.hear(clock.now(), &split.wants(), &pulse);
    let before = take().expect("a share");
    clock.set(Time::from_micros(1_010_000));
    for _ in 0..96 {
        assert!(take().is_some());
    }
    let after = take().expect("the last");
    clock.set(Time::from_micros(1_020_000));
    split.put_back(&charge, &after);
    assert!(take().is_some(), "it is there again");
    clock.set(Time::from_micros(1_900_000));
    split.put_back(&charge, &before);
    assert_eq!(take(), None);
}

/// A caller who repeats a denied request claims as much of a limit, whether or not another limit denies it as well.
#[test]
fn a_denied_request_counts_once() {
    let quota = quota(Algorithm::FixedWindow, 100, SECOND);
    let denied = Decision {
        outcome: Outcome::Denied {
            retry: Retry::After(SECOND),
        },
        limit: 100,
        remaining: 0,
        reset_after: SECOND,
    };
    let demand = |modes: &[Mode]| {
        let clock = Arc::new(ManualClock::at(Time::from_micros(500_000)));
        let split = Split::with_clock(SplitConfig::default(), Arc::clone(&clock));
        let limits = (1..).map(LimitId).zip(modes);
        let charges: Vec<_> = limits
            .map(|(limit, mode)| {
                let mut charge = world::charge(&quota, 1);
                (charge.key.limit, charge.mode) = (limit, *mode);
                charge
            })
            .collect();
        for charge in &charges {
            split.meet(charge);
        }
        let decisions = vec![denied; charges.len()];
        for _ in 0..1_000 {
            // As with `charging: every_match`.
            split.note_demand(&charges, &decisions, true);
        }
        clock.advance(SECOND);
        let wants = split.wants();
        wants.iter().map(|want| want.demand).collect::<Vec<_>>()
    };
    assert_eq!(demand(&[Mode::Enforce]), [100]);
    assert_eq!(demand(&[Mode::Enforce; 2]), [100; 2]);
    assert_eq!(
        demand(&[Mode::Shadow, Mode::Shadow, Mode::Enforce]),
        [100; 3]
    );
}

/// More callers than there are slots claim no more than the slots do, whatever their windows.
#[test]
fn callers_who_share_a_slot_share_its_limit() {
    let quotas = [SECOND * 60, SECOND].map(|window| quota(Algorithm::FixedWindow, 2, window));
    let denied = DeniedRequests::new();
    let mut within = 0;
    for second in 1..=10 {
        for caller in 0..3 * SLOTS {
            let name = caller.to_string();
            let values = [name.as_str()];
            let mut charge = world::charge(&quotas[caller % 2], 1);
            charge.key.values = &values;
            let now = Time::from_micros(second * 1_000_000);
            within += usize::from(denied.count(&charge, now));
        }
    }
    // A slot of callers with short windows only, about one in six, begins anew each second.
    assert!(within <= SLOTS * 6, "{within}");
}

/// A refund that may reach the store after an edge would be taken from what others were charged. The store's timeout says how
/// late that is.
#[test]
fn nothing_is_refunded_that_may_arrive_after_an_edge() {
    let quota = quota(Algorithm::FixedWindow, 100, SECOND * 2);
    let clock = Arc::new(ManualClock::at(Time::from_micros(200_000)));
    let config = SplitConfig {
        store_timeout: SECOND,
        ..SplitConfig::default()
    };
    let split = Split::with_clock(config, Arc::clone(&clock));
    let pulse = Pulse {
        now: clock.now(),
        members: 1,
        previous: None,
        plans: Vec::new(),
    };
    split.hear(clock.now(), &[], &pulse);
    let then = clock.now();
    clock.set(Time::from_micros(900_000));
    assert!(split.is_refundable(&quota, then));
    clock.set(Time::from_micros(1_100_000));
    assert!(!split.is_refundable(&quota, then));
}

/// What the share admitted before the store failed is among the notes that the next process restores.
#[test]
fn a_restart_without_the_store_does_not_renew_the_share() {
    let quota = quota(Algorithm::FixedWindow, 100, SECOND);
    let charge = world::charge(&quota, 1);
    let clock = Arc::new(ManualClock::at(Time::from_micros(500_000)));
    let node = |members| {
        let config = SplitConfig {
            members,
            ..SplitConfig::default()
        };
        let split = Split::with_clock(config, Arc::clone(&clock));
        let standby = Standby::new(StandbyLimit::Share, split.membership().clone());
        (split, standby)
    };
    let notes_clock = StoreClock::new(Arc::clone(&clock), clock.now());
    let notes = EmbeddedStore::with_clock(SplitConfig::default().store, notes_clock);
    let (split, standby) = node(KnownMembers::default());
    let take = || split.take(&charge, Charging::AllOrNone).expect("no error");
    assert_eq!(take(), None);
    let pulse = Pulse {
        now: clock.now(),
        members: 4,
        previous: None,
        plans: vec![Plans {
            current: Some(plan(0, 3, 60)),
            next: None,
        }],
    };
    split.hear(clock.now(), &split.wants(), &pulse);
    assert!((0..24).all(|_| take().is_some()));
    let allows = |split: &Split<_>, standby: &Standby| {
        let alone = SplitAlone::new(split, standby, &notes);
        let took = alone.take(&charge, Charging::AllOrNone).expect("no error");
        let took = took.expect("decided from memory");
        took.decision.is_allowed().then_some(took)
    };
    let took = allows(&split, &standby).expect("a share");
    assert!(allows(&split, &standby).is_some());
    SplitAlone::new(&split, &standby, &notes).put_back(&charge, &took);

    // 25 were admitted, which is all of an even part.
    let remembered = Some(4);
    let (split, standby) = node(KnownMembers {
        remembered,
        floor: None,
    });
    assert_eq!(allows(&split, &standby), None);
}

/// A node that asked for all of a limit while it was strict must not count on that after the edge, when
/// the others have shares again.
#[test]
fn what_the_store_admits_after_the_plan_has_ended_does_not_count() {
    let quota = quota(Algorithm::FixedWindow, 100, SECOND);
    let clock = Arc::new(ManualClock::at(Time::from_micros(500_000)));
    let split = Split::with_clock(SplitConfig::default(), Arc::clone(&clock));
    let charges = [world::charge(&quota, 1)];
    assert_eq!(split.take(&charges[0], Charging::AllOrNone), Ok(None));
    let pulse = Pulse {
        now: clock.now(),
        members: 99,
        previous: None,
        plans: vec![Plans {
            current: Some(plan(0, 100, 0)),
            next: Some(plan(1, 3, 97)),
        }],
    };
    let wants = split.wants();
    split.hear(clock.now(), &wants, &pulse);

    let reserves = split.reserves(&charges);
    assert_eq!(reserves.apply(&charges)[0].quota.limit(), 100);
    let decisions = [Decision {
        outcome: Outcome::Allowed {
            standing: Standing::Within,
            delay: Duration::ZERO,
        },
        limit: 100,
        remaining: 0,
        reset_after: SECOND,
    }];
    let is_outdated = |micros| {
        let at = Time::from_micros(micros);
        split.is_outdated(&charges, &reserves, at, &decisions)
    };
    assert!(!is_outdated(999_999));
    assert!(is_outdated(1_000_000));
    // Nobody knows of this one: there may be shares.
    assert!(is_outdated(2_000_000));

    // Where the edge may be past, no more is asked for than is there after it.
    clock.set(Time::from_micros(999_999));
    let reserves = split.reserves(&charges);
    assert_eq!(reserves.apply(&charges)[0].quota.limit(), 3);
}
