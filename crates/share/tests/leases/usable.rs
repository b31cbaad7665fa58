//! What is lost to leases: with more traffic than the limit, wherever it arrives and whatever else is denied, all
//! nodes together admit what one counter in Redis would. The scripts are the real ones, in virtual time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_algorithms::{Algorithm, Allowance, Quota, QuotaSpec, Refill, Rounding, Time};
use tidegate_store::{Clock, Consistency, LimitId};

use crate::wire::{Fate, Weather};
use crate::world::{START, World};

/// A network within one data centre.
const FATE: Fate = Fate::Arrives {
    there: 200,
    back: 200,
};

/// How the clocks of the nodes are set, and how they run.
const CLOCKS: [(u64, i64); 4] = [(0, -150), (700_000_000, -50), (1_400_000_000, 50), (9, 150)];

/// The part of the traffic that each node gets.
const EVEN: [u64; 4] = [25, 25, 25, 25];
const UNEVEN: [u64; 4] = [80, 10, 5, 5];
const ONE: [u64; 4] = [100, 0, 0, 0];

const POOL: LimitId = LimitId(1);

/// Callers that are far over a limit of their own, one for each of the first nodes.
const ABUSERS: u128 = 3;

#[derive(Clone, Copy, Debug)]
struct Scene {
    algorithm: Algorithm,
    limit: u64,
    window: Duration,
    spread: [u64; 4],
    /// Requests of abusers for each request of an honest caller.
    abuse: u64,
}

/// What came of a scene.
#[derive(Debug)]
#[expect(dead_code, reason = "all of it is shown when a check fails")]
struct Outcome {
    /// Honest requests admitted in each window of the clock.
    windows: Vec<u64>,
    calls_per_1000: u64,
    /// The largest difference between `remaining` and the limit less all that was admitted, for fixed windows.
    worst_remaining: u64,
}

const WARM_UP: usize = 2;
const COUNTED: usize = 10;

fn quota(limit: u64, window: Duration, algorithm: Algorithm) -> Arc<Quota> {
    let spec = QuotaSpec {
        limit,
        window,
        algorithm,
        allowance: Allowance::Hard,
    };
    Arc::new(Quota::new(&spec).expect("valid"))
}

/// Offers 1.2 times the limit, in steps of equal time to nodes by chance.
fn run(scene: Scene, consistency: Consistency) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(play(scene, consistency))
}

async fn play(scene: Scene, consistency: Consistency) -> Outcome {
    let pool = quota(scene.limit, scene.window, scene.algorithm);
    let own = quota(10, Duration::from_secs(1), Algorithm::FixedWindow);
    let mut world = World::on_redis();
    for clock in CLOCKS {
        world.join(clock, Weather::new(vec![FATE]));
    }
    let n_windows = u32::try_from(WARM_UP + COUNTED).expect("few");
    let ends = START.plus(scene.window * n_windows);
    let gap = scene.window * 10 / 12 / u32::try_from(scene.limit).expect("small");
    let admitted = Arc::new(Mutex::new(Vec::<Time>::new()));
    // The window that counts now, and the number admitted in it.
    let current = Arc::new(Mutex::new((START, 0_u64)));
    let worst = Arc::new(Mutex::new(0));
    let (mut n_asked, mut dice) = (0_u64, 1_u64);
    while world.clock.now() < ends {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let place = place(scene.spread, (dice >> 33) % 100);
        let (clock, admitted) = (world.clock.clone(), Arc::clone(&admitted));
        let (current, worst, window) = (Arc::clone(&current), Arc::clone(&worst), scene.window);
        let limit = scene.limit;
        let limits = vec![(POOL, Arc::clone(&pool), consistency)];
        world.ask_all(place, limits, 1, move |decisions| {
            if decisions[0].is_allowed() {
                let now = clock.now();
                admitted.lock().expect("no panic").push(now);
                let begins = Time::from_nanos(now.nanos() - now.nanos() % nanos(window));
                let mut current = current.lock().expect("no panic");
                if current.0 != begins {
                    *current = (begins, 0);
                }
                current.1 += 1;
                let left = limit.saturating_sub(current.1);
                let mut worst = worst.lock().expect("no panic");
                *worst = decisions[0].remaining.abs_diff(left).max(*worst);
            }
        });
        n_asked += 1;
        for n in 0..scene.abuse {
            let abuser = u128::from(n) % ABUSERS;
            let limits = vec![
                (LimitId(2 + abuser), Arc::clone(&own), consistency),
                (POOL, Arc::clone(&pool), consistency),
            ];
            let place = usize::try_from(abuser).expect("few");
            world.ask_all(place, limits, 1, |_| {});
        }
        world.advance(gap).await;
    }
    let admitted = admitted.lock().expect("no panic");
    let window = |n: usize| {
        let from = START.plus(scene.window * u32::try_from(n).expect("few"));
        let to = from.plus(scene.window);
        admitted.iter().filter(|at| (from..to).contains(at)).count() as u64
    };
    Outcome {
        windows: (WARM_UP..WARM_UP + COUNTED).map(window).collect(),
        calls_per_1000: world.calls() * 1_000 / n_asked,
        worst_remaining: *worst.lock().expect("no panic"),
    }
}

fn place(spread: [u64; 4], percent: u64) -> usize {
    let mut sum = 0;
    let is_it = |part: &u64| {
        sum += part;
        percent < sum
    };
    spread.iter().position(is_it).expect("a hundred in all")
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).expect("short")
}

/// At least 98 % of what the store alone admits on average, and 95 % in each window; never more than the limit.
#[track_caller]
fn check(scene: Scene) {
    let strict = run(scene, Consistency::Strict);
    let leased = run(scene, Consistency::Leased);
    let sum = |outcome: &Outcome| outcome.windows.iter().sum::<u64>();
    assert!(
        sum(&leased) * 100 >= sum(&strict) * 98,
        "{scene:?}: {leased:?}, but strict {strict:?}"
    );
    for (ours, theirs) in leased.windows.iter().zip(&strict.windows) {
        assert!(
            ours * 100 >= theirs * 95,
            "{scene:?}: {leased:?}, but strict {strict:?}"
        );
        let is_window = matches!(scene.algorithm, Algorithm::FixedWindow);
        assert!(!is_window || *ours <= scene.limit, "{scene:?}: {leased:?}");
    }
    if matches!(scene.algorithm, Algorithm::FixedWindow) {
        assert!(
            leased.worst_remaining * 10 <= scene.limit,
            "{scene:?}: {leased:?}"
        );
    }
}

const SECOND: Duration = Duration::from_secs(1);

/// Uneven traffic beside abusers in short windows, and without them in longer ones.
#[track_caller]
fn check_both(algorithm: Algorithm) {
    let (spread, window) = (UNEVEN, SECOND);
    check(Scene {
        algorithm,
        limit: 1_500,
        window,
        spread,
        abuse: 3,
    });
    check(Scene {
        algorithm,
        limit: 3_000,
        window: 10 * window,
        spread,
        abuse: 0,
    });
}

#[test]
fn of_a_fixed_window() {
    check_both(Algorithm::FixedWindow);
    for spread in [EVEN, ONE] {
        check(Scene {
            algorithm: Algorithm::FixedWindow,
            limit: 10_000,
            window: SECOND,
            spread,
            abuse: 0,
        });
    }
}

#[test]
fn of_a_token_bucket() {
    check_both(Algorithm::TokenBucket {
        burst: None,
        refill: Refill::Continuous,
    });
}

#[test]
fn of_an_interval_bucket() {
    check_both(Algorithm::TokenBucket {
        burst: None,
        refill: Refill::Interval,
    });
}

#[test]
fn of_a_sliding_counter() {
    for sub_windows in [1, 10] {
        check_both(Algorithm::SlidingCounter {
            sub_windows,
            rounding: Rounding::Down,
        });
    }
}

#[test]
fn of_a_sliding_log() {
    check_both(Algorithm::SlidingLog { log_refused: false });
}
