//! Memory is bounded whatever arrives: floods of invented keys against the smallest store, and against larger ones in
//! simulated time.

#[path = "../examples/flood/attack.rs"]
mod attack;

use std::time::Duration;

use attack::{Attack, Target};
use tidegate_algorithms::{
    Algorithm, Allowance, Decision, Headroom, Outcome, Quota, QuotaSpec, Refill, RefundTo, Retry,
    Rounding, Time,
};
use tidegate_store::{
    Charge, Charging, Consistency, CounterKey, Decisions, EmbeddedStore, LimitId, ManualClock,
    Mode, OnFull, StoreConfig, StoreStats,
};

const START: Time = Time::from_nanos(1_800_000_000_000_000_000);
const HOUR: Duration = Duration::from_hours(1);

/// Slots of the smallest store if it had nothing but slots.
const MOST_SLOTS: u64 = (1 << 20) / 16;

const TOKEN_BUCKET: Algorithm = Algorithm::TokenBucket {
    burst: None,
    refill: Refill::Continuous,
};

const SLIDING_LOG: Algorithm = Algorithm::SlidingLog { log_refused: false };

const SUB_WINDOWS: Algorithm = Algorithm::SlidingCounter {
    sub_windows: 60,
    rounding: Rounding::Down,
};

const ALGORITHMS: [Algorithm; 6] = [
    TOKEN_BUCKET,
    Algorithm::LeakyBucket { queue: None },
    Algorithm::FixedWindow,
    SLIDING_LOG,
    SUB_WINDOWS,
    Algorithm::SlidingCounter {
        sub_windows: 1,
        rounding: Rounding::Down,
    },
];

/// The smallest store, on a clock that stands still until it is moved.
struct Dam(EmbeddedStore<ManualClock>);

// === impl Dam ===

impl Dam {
    fn new() -> Self {
        let config = StoreConfig {
            max_memory: 1 << 20,
        };
        Self(EmbeddedStore::with_clock(config, ManualClock::at(START)))
    }

    /// Charges one caller, and checks that memory keeps within its cap.
    fn charge(&self, caller: &str, quota: &Quota, on_full: OnFull) -> Decision {
        let charge = Charge {
            key: CounterKey {
                limit: LimitId(1),
                values: &[caller],
            },
            quota,
            cost: 1,
            mode: Mode::Enforce,
            headroom: Headroom::Absent,
            on_full,
            consistency: Consistency::Strict,
        };
        let mut decisions = Decisions::new();
        let receipt = self
            .0
            .charge_now(&[charge], Charging::AllOrNone, &mut decisions);
        receipt.expect("a decision");
        let StoreStats {
            used_bytes,
            max_bytes,
            ..
        } = self.stats();
        assert!(used_bytes <= max_bytes, "{used_bytes} of {max_bytes}");
        decisions[0]
    }

    /// Lets so many callers come, each once; says how many are remembered in the end.
    fn flood(&self, name: &str, callers: u64, quota: &Quota) -> u64 {
        let before = self.stats();
        for n in 0..callers {
            self.charge(&format!("{name} {n}"), quota, OnFull::Allow);
        }
        let after = self.stats();
        callers - (after.untracked - before.untracked) - (after.evicted - before.evicted)
    }

    /// Lets so many callers come who ask until they are refused, and so must be remembered; says
    /// how many are.
    fn fill(&self, name: &str, callers: u64, quota: &Quota) -> usize {
        let is_remembered = |n: &u64| {
            let offender = format!("{name} {n}");
            let untracked = self.stats().untracked;
            while self.charge(&offender, quota, OnFull::Allow).is_allowed() {
                if self.stats().untracked > untracked {
                    return false;
                }
            }
            true
        };
        (0..callers).filter(is_remembered).count()
    }

    fn advance(&self, by: Duration) {
        self.0.clock().advance(by);
    }

    fn stats(&self) -> StoreStats {
        self.0.stats()
    }
}

/// `limit` an hour.
fn hourly(limit: u64, algorithm: Algorithm) -> Quota {
    quota(limit, HOUR, algorithm)
}

/// `limit` a day.
fn daily(limit: u64, algorithm: Algorithm) -> Quota {
    quota(limit, 24 * HOUR, algorithm)
}

fn quota(limit: u64, window: Duration, algorithm: Algorithm) -> Quota {
    Quota::new(&QuotaSpec {
        limit,
        window,
        algorithm,
        allowance: Allowance::Hard,
    })
    .expect("valid")
}

/// Two million keys that are asked for once, at 20,000 requests in a second, against 4 MiB: an offender stays denied,
/// a fresh caller gets at most twice its quota, honest ones get theirs, and a minute later everybody is counted.
#[test]
fn a_flood_of_keys_switches_no_limit_off() {
    check_attack(|_| Attack {
        keys: 2_000_000,
        requests_per_key: 1,
        rate: 20_000,
        max_memory: 4 << 20,
    });
}

/// The same with keys that are driven over their limit: two million requests.
#[test]
fn a_flood_of_denied_keys_switches_no_limit_off() {
    check_attack(|target| Attack {
        keys: 2_000_000 / target.to_be_denied(),
        requests_per_key: target.to_be_denied(),
        rate: 20_000,
        max_memory: 4 << 20,
    });
}

fn check_attack(attack: impl Fn(&Target) -> Attack) {
    for target in Target::all() {
        let outcome = target.attack(attack(&target));
        assert!(outcome.is_held(), "{}: {outcome:?}", target.name);
        assert!(outcome.stats.evicted > 0, "the store was full");
    }
}

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
        let dam = Dam::new();
        let three = hourly(3, algorithm);
        for n in 0..offenders {
            let offender = format!("offender {n}");
            dam.charge(&offender, &three, OnFull::Shared);
            dam.charge(&offender, &three, OnFull::Shared);
        }
        let before = dam.stats();
        let allowed = (0..CALLERS).map(|n| {
            let caller = format!("caller {n}");
            let asks = [(); 9].map(|()| dam.charge(&caller, &three, OnFull::Shared));
            asks.iter().filter(|decision| decision.is_allowed()).count()
        });
        let allowed: Vec<_> = allowed.collect();
        assert!(
            allowed.iter().all(|&n| n <= 3),
            "{algorithm:?}: {allowed:?}"
        );
        let untracked = dam.stats().untracked - before.untracked;
        assert!(untracked > 8_000, "{algorithm:?}: {untracked}");
        assert!(dam.stats().is_full);
    }
}

/// A refund finds the shared counter of a caller without room.
#[test]
fn a_refund_reaches_the_shared_counter() {
    for algorithm in [TOKEN_BUCKET, Algorithm::FixedWindow, SLIDING_LOG] {
        let dam = Dam::new();
        let (one, full) = (hourly(1, algorithm), hourly(1, Algorithm::FixedWindow));
        for n in 0..4 * MOST_SLOTS {
            let offender = format!("offender {n}");
            dam.charge(&offender, &full, OnFull::Allow);
            dam.charge(&offender, &full, OnFull::Allow);
        }
        let is_allowed = |n: &u64| {
            let caller = format!("caller {n}");
            dam.charge(&caller, &one, OnFull::Shared).is_allowed()
        };
        let caller = (0..100).find(is_allowed).expect("a counter that is free");
        assert!(!is_allowed(&caller), "{algorithm:?}");
        let name = format!("caller {caller}");
        let key = CounterKey {
            limit: LimitId(1),
            values: &[&name],
        };
        let refund = dam.0.refund_now(key, &one, 1, RefundTo::Current);
        refund.expect("a refund");
        assert!(is_allowed(&caller), "{algorithm:?}");
    }
}

/// A caller who was refused is refused again, whoever else comes and however many.
#[test]
fn an_offender_stays_refused() {
    for algorithm in ALGORITHMS {
        let dam = Dam::new();
        let three = hourly(3, algorithm);
        while dam.charge("offender", &three, OnFull::Allow).is_allowed() {}
        for wave in 0..10 {
            dam.flood(&format!("wave {wave}"), MOST_SLOTS / 4, &three);
            let again = dam.charge("offender", &three, OnFull::Allow);
            assert!(!again.is_allowed(), "{algorithm:?}, wave {wave}");
        }
        assert!(dam.stats().evicted > 0, "{algorithm:?}: {:?}", dam.stats());
    }
}

/// The same while the flood drives its own callers over their limit, and a caller that
/// comes then is counted: those whom nobody asks for any more make way, denied or not.
#[test]
fn an_offender_stays_denied_among_others() {
    for algorithm in ALGORITHMS {
        let dam = Dam::new();
        let day = daily(3, algorithm);
        while dam.charge("offender", &day, OnFull::Allow).is_allowed() {}
        for second in 0..30 {
            for n in 0..MOST_SLOTS / 16 {
                let key = format!("second {second}, {n}");
                for _ in 0..4 {
                    dam.charge(&key, &day, OnFull::Allow);
                }
            }
            dam.advance(Duration::from_secs(1));
            let again = dam.charge("offender", &day, OnFull::Allow);
            assert!(!again.is_allowed(), "{algorithm:?}, second {second}");
        }
        let admitted = |dam: &Dam| {
            let asks = [(); 9].map(|()| dam.charge("fresh", &day, OnFull::Allow));
            asks.iter().filter(|decision| decision.is_allowed()).count()
        };
        assert_eq!(admitted(&dam), admitted(&Dam::new()), "{algorithm:?}");
    }
}

/// A flood of millions of keys is all remembered for a while: those who came first make way.
#[test]
fn millions_of_keys_come_and_go() {
    let dam = Dam::new();
    let quota = hourly(3, Algorithm::FixedWindow);
    let remembered = dam.flood("caller", 2_000_000, &quota);
    // An eighth is kept for blocks, and a sixteenth for shared counters.
    assert!(remembered > MOST_SLOTS / 10 * 8, "{remembered}");
    let stats = dam.stats();
    assert_eq!(stats.untracked, 0);
    assert!(stats.used_bytes > stats.max_bytes / 10 * 8, "{stats:?}");
}

/// As long as there are callers of the hour before, nobody of this hour makes way.
#[test]
fn expired_state_is_used_first() {
    for algorithm in ALGORITHMS {
        let dam = Dam::new();
        let quota = hourly(3, algorithm);
        for hour in 0..40 {
            dam.flood(&format!("hour {hour}"), 4_000, &quota);
            dam.advance(2 * HOUR);
        }
        let stats = dam.stats();
        assert_eq!((stats.evicted, stats.untracked), (0, 0), "{algorithm:?}");
    }
}

/// Where one word is enough, memory does not even grow.
#[test]
fn expired_slots_are_used_before_new_ones() {
    let dam = Dam::new();
    let quota = hourly(3, TOKEN_BUCKET);
    dam.flood("first", 5_000, &quota);
    let first = dam.stats().used_bytes;
    for hour in 0..20 {
        dam.advance(2 * HOUR);
        dam.flood(&format!("hour {hour}"), 5_000, &quota);
    }
    // Other keys choose other sets, so a few shards may be fuller than before.
    let last = dam.stats().used_bytes;
    assert!(last <= first + first / 4, "{last} after {first}");
}

/// When all that could make way was refused and must stay, a new caller goes by `on_full`.
#[test]
fn a_store_full_of_offenders_goes_by_on_full() {
    // So many that no set is left with a free slot; a log takes four times the room of a slot.
    for (algorithm, offenders) in [
        (TOKEN_BUCKET, 4 * MOST_SLOTS),
        (Algorithm::FixedWindow, 4 * MOST_SLOTS),
        (SLIDING_LOG, MOST_SLOTS),
    ] {
        let dam = Dam::new();
        let one = hourly(1, algorithm);
        for n in 0..offenders {
            let offender = format!("offender {n}");
            dam.charge(&offender, &one, OnFull::Deny);
            dam.charge(&offender, &one, OnFull::Deny);
        }
        let before = dam.stats();
        for n in 0..100 {
            let caller = format!("caller {n}");
            let denied = dam.charge(&caller, &one, OnFull::Deny);
            assert!(wait(&denied) > Duration::ZERO, "{algorithm:?}: {denied:?}");
            for _ in 0..3 {
                assert!(dam.charge(&caller, &one, OnFull::Allow).is_allowed());
            }
        }
        let after = dam.stats();
        assert_eq!(after.evicted, before.evicted, "{algorithm:?}");
        assert_eq!(after.untracked, before.untracked + 400, "{algorithm:?}");
    }
}

/// A caller who is refused for want of room is admitted after the wait it was told.
#[test]
fn there_is_room_after_the_wait() {
    for algorithm in [TOKEN_BUCKET, Algorithm::FixedWindow] {
        let dam = Dam::new();
        let one = hourly(1, algorithm);
        for n in 0..4 * MOST_SLOTS {
            let offender = format!("offender {n}");
            dam.charge(&offender, &one, OnFull::Deny);
            dam.charge(&offender, &one, OnFull::Deny);
            dam.advance(Duration::from_micros(1));
        }
        let denied = dam.charge("caller", &one, OnFull::Deny);
        dam.advance(wait(&denied).saturating_sub(Duration::from_nanos(1)));
        let early = dam.charge("caller", &one, OnFull::Deny);
        assert_eq!(wait(&early), Duration::from_nanos(1), "{algorithm:?}");
        dam.advance(Duration::from_nanos(1));
        assert!(dam.charge("caller", &one, OnFull::Deny).is_allowed());
        assert!(
            !dam.charge("caller", &one, OnFull::Deny).is_allowed(),
            "and is counted"
        );
    }
}

/// When all logs (or sub-windows) have expired, as many fit as did at first, again and again.
#[test]
fn blocks_of_the_expired_are_used_again() {
    for algorithm in [SLIDING_LOG, SUB_WINDOWS] {
        let dam = Dam::new();
        let quota = hourly(20, algorithm);
        let first = dam.flood("first", 30_000, &quota);
        let used = dam.stats();
        assert!(used.evicted > 0, "the arena is used up: {used:?}");
        for hour in 0..10 {
            dam.advance(2 * HOUR);
            let again = dam.flood(&format!("hour {hour}"), 30_000, &quota);
            assert!(
                again >= first / 20 * 19,
                "{algorithm:?}, hour {hour}: {again} of {first}"
            );
        }
        assert!(dam.stats().used_bytes <= used.used_bytes);
    }
}

/// The blocks of small logs make large ones when they are free again, and the other way round: no
/// block is lost, and none remains too small for good.
#[test]
fn blocks_are_joined_again() {
    let dam = Dam::new();
    // More of either than there is room for.
    let sorts = [
        (20_000, hourly(4, SLIDING_LOG)),
        (500, hourly(500, SLIDING_LOG)),
    ];
    let fill = |day: u32| {
        [0, 1].map(|sort: usize| {
            dam.advance(2 * HOUR);
            let (callers, quota) = &sorts[sort];
            dam.fill(&format!("sort {sort}, day {day}"), *callers, quota)
        })
    };
    let first = fill(0);
    assert!(first[0] > 20 * first[1] && first[1] > 200, "{first:?}");
    for day in 1..6 {
        let again = fill(day);
        // The key of the store is random, and with it which blocks fit side by side. Of 1,200 days
        // the worst had 99 % of the small logs and 87 % of the large ones; none had fewer for age.
        assert!(
            again[0] >= first[0] / 20 * 19 && again[1] >= first[1] / 5 * 4,
            "day {day}: {again:?}, {first:?}"
        );
    }
}

/// Logs that grow and expire, hour by hour, take no more memory than those of two hours do.
#[test]
fn logs_that_come_and_go_take_no_more_memory() {
    let dam = Dam::new();
    let hundred = hourly(100, SLIDING_LOG);
    let mut used = Vec::new();
    for hour in 0..20 {
        for _ in 0..100 {
            dam.flood(&format!("hour {hour}"), 300, &hundred);
        }
        used.push(dam.stats().used_bytes);
        dam.advance(2 * HOUR);
    }
    // Logs of the hours before hold theirs until somebody comes upon their slots.
    assert!(used.iter().all(|&bytes| bytes <= 2 * used[0]), "{used:?}");
    assert_eq!(dam.stats().evicted, 0);
}

/// How long a caller is told to wait.
fn wait(decision: &Decision) -> Duration {
    match decision.outcome {
        Outcome::Denied {
            retry: Retry::After(wait),
        } => wait,
        _ => panic!("not a refusal for now: {decision:?}"),
    }
}
