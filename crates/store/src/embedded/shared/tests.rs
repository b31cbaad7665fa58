use std::time::Duration;

use tidegate_algorithms::{Percent, Refill};

use super::super::layout::LayoutId;
use super::*;

fn quota(limit: u64, window: Duration, algorithm: Algorithm, allowance: Allowance) -> Quota {
    Quota::new(&QuotaSpec {
        limit,
        window,
        algorithm,
        allowance,
    })
    .expect("valid")
}

/// Every quota has a substitute that fits one word, allows no more, and has a layout that evicted counters of the quota
/// are folded into.
#[test]
fn a_substitute_is_folded_into_and_allows_no_more() {
    let soft_for = Allowance::Soft {
        over: Percent(50),
        only_for: Some(Duration::from_secs(1)),
    };
    let postpaid = Allowance::Postpaid { max_debt: None };
    let bucket = |refill| Algorithm::TokenBucket {
        burst: None,
        refill,
    };
    let counter = |sub_windows| Algorithm::SlidingCounter {
        sub_windows,
        rounding: Rounding::Down,
    };
    let log = Algorithm::SlidingLog { log_refused: false };
    for algorithm in [
        bucket(Refill::Continuous),
        bucket(Refill::Interval),
        Algorithm::FixedWindow,
        log,
        counter(60),
        counter(1),
    ] {
        for allowance in [Allowance::Hard, soft_for, postpaid] {
            for limit in [0, 1, 7, 1_000, 1_000_000] {
                for window in [Duration::from_millis(1), Duration::from_hours(24)] {
                    // A log cannot be so long.
                    if algorithm == log && limit > 1_000 {
                        continue;
                    }
                    let quota = quota(limit, window, algorithm, allowance);
                    let substitute = substitute(&quota);
                    let shared = Layout::of(&substitute);
                    let is_bucket = shared.shape == Shape::Instant;
                    assert!(is_bucket || fits_narrow(&substitute, shared), "{quota:?}");
                    assert!(!substitute.tracks_soft_period());
                    let layout = Layout::of(&quota);
                    let form = if fits_narrow(&quota, layout) {
                        Form::Narrow
                    } else {
                        Form::Boxed
                    };
                    assert!(
                        shared_layouts(layout, form).any(|it| it == shared),
                        "{quota:?}"
                    );
                    assert_eq!(substitute.window(), window);
                    assert_eq!(substitute.is_postpaid(), quota.is_postpaid());
                    assert!(substitute.limit() <= limit);
                    let is_cut = limit > LARGEST_LIMIT && window < Duration::from_secs(1);
                    assert!(is_cut || substitute.limit() == limit, "{quota:?}");
                }
            }
        }
    }
}

/// The callers of a limit are spread over all of its counters, and other algorithms have others.
#[test]
fn callers_are_spread_over_all_counters() {
    let tag = |n: u64| Tag::new(n.wrapping_mul(0x9E37_79B9_7F4A_7C15), LayoutId::new(1));
    for counters in [FEWEST_COUNTERS, 16 * FEWEST_COUNTERS] {
        let hashes = |shape, window| {
            let layout = Layout { shape, window };
            let hash = |n| shared_hash(layout, tag(n), counters);
            let mut hashes: Vec<_> = (0..50 * counters).map(hash).collect();
            hashes.sort_unstable();
            hashes.dedup();
            hashes
        };
        let kinds = [
            hashes(Shape::Log, 1_000_000_000),
            hashes(Shape::Window, 1_000_000_000),
            hashes(Shape::Window, 60_000_000_000),
        ];
        assert!(kinds.iter().all(|it| it.len() as u64 == counters));
        let mut all = kinds.concat();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len() as u64, 3 * counters, "others for each kind");
    }
}

/// There are more shared counters where there is more memory, and never fewer than the docs promise.
#[test]
fn shared_counters_grow_with_memory() {
    let counters_in = |mebibytes: usize| {
        let core = Core::with_shared(mebibytes << 20).expect("memory");
        core.shared.expect("shared counters").shared_counters
    };
    assert_eq!(counters_in(1), FEWEST_COUNTERS);
    assert_eq!(counters_in(256), 16 * FEWEST_COUNTERS);
}
