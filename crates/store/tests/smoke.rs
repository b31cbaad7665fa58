//! Every algorithm through the embedded store.
use std::time::Duration;
use tidegate_algorithms::{
    Algorithm, Allowance, Headroom, Quota, QuotaSpec, Refill, Rounding, Time,
};
use tidegate_store::{
    Admission, Charge, Charging, CounterKey, Decisions, EmbeddedStore, LimitId, ManualClock, Mode,
    OnFull, StoreConfig,
};

#[test]
fn every_algorithm_admits_its_limit() {
    for algorithm in [
        Algorithm::TokenBucket {
            burst: None,
            refill: Refill::Continuous,
        },
        Algorithm::TokenBucket {
            burst: None,
            refill: Refill::Interval,
        },
        Algorithm::LeakyBucket { queue: Some(4) },
        Algorithm::FixedWindow,
        Algorithm::SlidingLog { log_refused: false },
        Algorithm::SlidingCounter {
            sub_windows: 1,
            rounding: Rounding::Down,
        },
        Algorithm::SlidingCounter {
            sub_windows: 60,
            rounding: Rounding::Down,
        },
    ] {
        let quota = Quota::new(&QuotaSpec {
            limit: 5,
            window: Duration::from_mins(1),
            algorithm,
            allowance: Allowance::Hard,
        })
        .unwrap();
        let store = EmbeddedStore::with_clock(
            StoreConfig::default(),
            ManualClock::at(Time::from_nanos(1_700_000_000_000_000_000)),
        );
        let mut decisions = Decisions::new();
        let mut admitted = 0;
        for _ in 0..20 {
            let charge = Charge {
                key: CounterKey {
                    limit: LimitId(1),
                    values: &["a"],
                },
                quota: &quota,
                cost: 1,
                mode: Mode::Enforce,
                headroom: Headroom::Absent,
                on_full: OnFull::Allow,
            };
            let receipt = store
                .charge_now(&[charge], Charging::AllOrNone, &mut decisions)
                .unwrap();
            admitted += u32::from(receipt.admission == Admission::Admitted);
        }
        assert_eq!(admitted, 5, "{algorithm:?}");
    }
}
