use std::sync::Arc;

use tidegate_algorithms::{Allowance, Quota, QuotaSpec, Refill, Rounding};
use tidegate_store::{
    Charging, Clock, Consistency, Decisions, EmbeddedStore, LimitId, ManualClock, Mode, OnFull,
    StoreConfig,
};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

const LIFETIME: Lifetime = Lifetime {
    least: Duration::ZERO,
    most: Duration::MAX,
};

fn charge(quota: &Quota, cost: u64) -> Charge<'_> {
    Charge {
        key: CounterKey {
            limit: LimitId(7),
            values: &["caller"],
        },
        quota,
        cost,
        mode: Mode::Enforce,
        headroom: Headroom::Absent,
        on_full: OnFull::Allow,
        consistency: Consistency::Strict,
    }
}

/// A caller who was denied a cost of 1 and then asks for more is not asked to come again too early, nor at all if the cost
/// never fits.
#[test]
fn a_larger_cost_waits_no_shorter_than_the_store_would_say() {
    let bucket = |refill| Algorithm::TokenBucket {
        burst: Some(20),
        refill,
    };
    let counter = |sub_windows| Algorithm::SlidingCounter {
        sub_windows,
        rounding: Rounding::Down,
    };
    let algorithms = [
        Algorithm::FixedWindow,
        bucket(Refill::Continuous),
        bucket(Refill::Interval),
        Algorithm::SlidingLog { log_refused: false },
        counter(1),
        counter(10),
    ];
    for algorithm in algorithms {
        let spec = QuotaSpec {
            limit: 10,
            window: SECOND,
            algorithm,
            allowance: Allowance::Hard,
        };
        let quota = Quota::new(&spec).expect("it is valid");
        let clock = Arc::new(ManualClock::at(Time::from_micros(1_800_000_000_000_000)));
        let config = StoreConfig {
            max_memory: 2 << 20,
        };
        let store = EmbeddedStore::with_clock(config, Arc::clone(&clock));
        let decide = |cost| {
            let charges = [charge(&quota, cost)];
            let mut decisions = Decisions::new();
            let charged = store.charge_now(&charges, Charging::AllOrNone, &mut decisions);
            charged.expect("a decision");
            decisions[0]
        };
        let mut denial = decide(1);
        while denial.is_allowed() {
            clock.advance(SECOND / 500);
            denial = decide(1);
        }
        let cache = ReplyCache::new();
        cache.remember(&charge(&quota, 1), denial, clock.now(), LIFETIME);
        clock.advance(SECOND / 1_000);
        for cost in 1..=21 {
            let now = clock.now();
            let told = cache.denial(&charge(&quota, cost), now).expect("denied");
            let truth = decide(cost);
            match (told.outcome, truth.outcome) {
                (
                    Outcome::Denied {
                        retry: Retry::After(told),
                    },
                    Outcome::Denied {
                        retry: Retry::After(truth),
                    },
                ) => assert!(told >= truth, "{algorithm:?} {cost}: {told:?} {truth:?}"),
                (told, truth) => assert_eq!(told, truth, "{algorithm:?} {cost}"),
            }
        }
    }
}
