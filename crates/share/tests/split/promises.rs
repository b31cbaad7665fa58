//! What `split` promises, with several nodes in virtual time.

use std::time::Duration;

use tidegate_algorithms::{Algorithm, Quota, Refill, Rounding};
use tidegate_store::{Admission, Charge, Consistency, CounterKey, LimitId};

use crate::common_store::{fixed_window, quota, split};
use crate::fleet::{Fleet, HEARTBEAT};

const SECOND: Duration = Duration::from_secs(1);

const LOG: Algorithm = Algorithm::SlidingLog { log_refused: false };

const BUCKET: Algorithm = Algorithm::TokenBucket {
    burst: None,
    refill: Refill::Continuous,
};

const INTERVAL: Algorithm = Algorithm::TokenBucket {
    burst: None,
    refill: Refill::Interval,
};

fn counter(sub_windows: u16) -> Algorithm {
    Algorithm::SlidingCounter {
        sub_windows,
        rounding: Rounding::Down,
    }
}

fn all() -> [Algorithm; 6] {
    [
        Algorithm::FixedWindow,
        INTERVAL,
        BUCKET,
        LOG,
        counter(1),
        counter(10),
    ]
}

/// Issue 10: a sliding counter admitted 2,693 of 2,000 in a window of Redis' clock.
#[test]
fn a_sliding_counter_keeps_its_limit_in_each_window_of_the_stores_clock() {
    for sub_windows in [1, 10] {
        let quota = quota(counter(sub_windows), 200, SECOND * 2);
        let mut fleet = Fleet::new(4);
        for weights in [[1, 1, 1, 1], [8, 1, 1, 0], [0, 0, 0, 1]] {
            // Bursts, so that a window that is off by some of its length counts too few.
            for _ in 0..6 {
                fleet.drive(&quota, 400, &weights, SECOND);
                fleet.drive(&quota, 40, &weights, SECOND * 7 / 10);
            }
        }
        let from = fleet.admitted[0];
        let windows = fleet.windows(quota.window(), from);
        assert!(
            windows.iter().all(|count| *count <= 200),
            "{sub_windows}: {windows:?}"
        );
    }
}

/// Issue 10: with Redis killed, a log admitted 243 of 200 because the fallback began empty.
#[test]
fn the_fallback_counts_what_the_shares_admitted() {
    for algorithm in all() {
        let quota = quota(algorithm, 200, SECOND * 2);
        for lost_at in [0, 300, 700, 1_100, 1_900] {
            let mut fleet = Fleet::new(4);
            fleet.drive(&quota, 150, &[1; 4], SECOND * 20);
            let to_edge = fleet.to_edge(quota.window());
            fleet.drive(&quota, 150, &[1; 4], to_edge);
            fleet.drive(&quota, 150, &[1; 4], Duration::from_millis(lost_at));
            fleet.common.lose();
            fleet.drive(&quota, 150, &[1; 4], SECOND * 9);
            fleet.common.find();
            fleet.drive(&quota, 150, &[1; 4], SECOND * 9);
            check_limit(&fleet, &quota, &format!("{algorithm:?} lost at {lost_at}"));
        }
    }
}

/// Nodes that know the plan of an epoch keep it when the store loses it: what the reserve admitted before is
/// forgotten, and no more. Before, up to 1,409 of 1,000 passed here. Of a limit that remembers, up to 1,554 of 1,000
/// pass in a span over the end of that epoch, because the next plan follows from the second one.
#[test]
fn a_store_that_lost_its_data_costs_no_more_than_the_reserve() {
    for algorithm in all() {
        let quota = quota(algorithm, 1_000, SECOND * 4);
        for lost_at in [100, 1_500, 3_000, 3_900] {
            let mut fleet = Fleet::new(4);
            let weights = [8, 1, 1, 1];
            fleet.drive(&quota, 300, &weights, SECOND * 20);
            let to_edge = fleet.to_edge(quota.window());
            fleet.drive(&quota, 300, &weights, to_edge);
            let since = fleet.now();
            fleet.drive(&quota, 300, &weights, Duration::from_millis(lost_at));
            fleet.common.flush();
            // Traffic moves to a node that had little.
            fleet.drive(&quota, 900, &[0, 0, 0, 1], SECOND * 12);
            let windows = fleet.windows(quota.window(), since);
            let what = format!("{algorithm:?} lost at {lost_at}: {windows:?}");
            if !remembers(algorithm) {
                // The square root of each share, and a 32nd.
                let reserve = 27 + 3 * 10 + 32;
                assert!(
                    windows.iter().all(|count| *count <= 1_000 + reserve),
                    "{what}"
                );
                assert!(windows[2] >= 950, "{what}");
                continue;
            }
            let burst = if algorithm == BUCKET { 1_000 } else { 0 };
            fleet.admitted.retain(|at| *at >= since);
            let most = fleet.most_in_any(quota.window());
            assert!(most <= 2_000 + burst, "{most}, {what}");
            fleet
                .admitted
                .retain(|at| *at >= since.plus(quota.window()));
            check_limit(&fleet, &quota, &what);
        }
    }
}

/// Whether a limit remembers what was admitted before the edge of a window.
fn remembers(algorithm: Algorithm) -> bool {
    algorithm != Algorithm::FixedWindow && algorithm != INTERVAL
}

/// Checks the limit in windows of the store's clock, or in any span for a log; of a bucket the burst and
/// what refills in a window.
fn check_limit(fleet: &Fleet, quota: &Quota, what: &str) {
    let limit = usize::try_from(quota.limit()).unwrap();
    match quota.algorithm() {
        LOG => {
            let most = fleet.most_in_any(quota.window());
            assert!(most <= limit, "{what}: {most} of {limit}");
        }
        BUCKET => {
            let most = fleet.most_in_any(quota.window());
            assert!(most <= limit * 2, "{what}: {most} of {limit}");
            // In the long run no more than refills.
            let most = fleet.most_in_any(quota.window() * 4);
            assert!(most <= limit * 5, "{what}: {most} of {limit}");
        }
        _ => {
            let windows = fleet.windows(quota.window(), fleet.admitted[0]);
            let is_over = windows.iter().any(|count| *count > quota.limit());
            assert!(!is_over, "{what}: {windows:?}");
        }
    }
}

/// Issue 10: 10 per second on four nodes, all traffic on one: 70 % for ever; traffic that moved had
/// followed after three windows.
#[test]
fn the_limit_follows_traffic_to_one_node() {
    for algorithm in all() {
        for (limit, window) in [(16, 1), (100, 1), (1_000, 1), (16, 10), (200, 10)] {
            let window = SECOND * window;
            let quota = quota(algorithm, limit, window);
            let per_second = (limit * 6).div_ceil(u64::try_from(window.as_millis()).unwrap() / 200);
            let mut fleet = Fleet::new(4);
            for weights in [[1, 1, 1, 1], [0, 0, 1, 0], [1, 0, 0, 0]] {
                let settling = window * 2 + HEARTBEAT * 2;
                let epoch = if remembers(algorithm) {
                    window
                } else {
                    Duration::ZERO
                };
                fleet.drive(&quota, per_second, &weights, settling + epoch);
                let to_edge = fleet.to_edge(window);
                fleet.drive(&quota, per_second, &weights, to_edge);
                let since = fleet.now();
                fleet.drive(&quota, per_second, &weights, window * 8);
                let admitted = fleet.admitted.iter().filter(|at| **at >= since).count();
                let admitted = u64::try_from(admitted).unwrap();
                let least = (limit * 95).div_ceil(100).min(limit - 1) * 8;
                assert!(
                    admitted >= least,
                    "{algorithm:?} {limit} per {window:?} to {weights:?}: {admitted} of {}, {:?}",
                    limit * 8,
                    fleet.windows(window, fleet.admitted[0]),
                );
            }
            check_limit(&fleet, &quota, &format!("{algorithm:?} {limit}"));
        }
    }
}

/// Issue 10: requests that callers' own limits deny make nodes claim more of a shared limit. With 99 % of the traffic
/// denied so, honest callers get as much as from a strict pool, within 2 %, of a token bucket within 4 %.
#[test]
fn a_request_that_another_limit_denies_claims_nothing() {
    for algorithm in all() {
        let pool = quota(algorithm, 100, SECOND);
        let least = if algorithm == BUCKET { 96 } else { 98 };
        let strict = beside_abusers(&pool, Consistency::Strict, Consistency::Strict);
        for own in [Consistency::Split, Consistency::Strict] {
            let honest = beside_abusers(&pool, Consistency::Split, own);
            let what = format!("{algorithm:?} {own:?}: {honest} of {strict}");
            assert!(honest * 100 >= strict * least, "{what}");
        }
    }
}

/// Returns what honest callers, who ask for 1.2 times the pool on all nodes, are admitted in ten seconds, while an
/// abuser on each of three nodes sends a hundred times as much.
fn beside_abusers(pool: &Quota, shared_by: Consistency, own_by: Consistency) -> u64 {
    let own = fixed_window(2, SECOND);
    let mut fleet = Fleet::new(4);
    let request = |fleet: &mut Fleet, node: usize, caller: &str| {
        let values = [caller];
        let key = CounterKey {
            limit: LimitId(1),
            values: &values,
        };
        let own = Charge {
            key,
            consistency: own_by,
            ..split(&own, 1)
        };
        let pool = Charge {
            consistency: shared_by,
            ..split(pool, 1)
        };
        fleet.request(node, &[own, pool]) == Admission::Admitted
    };
    let mut honest = 0;
    // As long as a limit of 100 that remembers takes to settle.
    let begin = 90_000;
    let settled = begin + 4_000;
    for step in 0..settled + 10_000_u64 {
        let times = if step < begin { 0 } else { 4 };
        for (node, abuser) in ["x", "y", "z"].into_iter().enumerate() {
            for _ in 0..times {
                request(&mut fleet, node, abuser);
            }
        }
        // 120 a second, each caller below its own limit.
        if step * 12 / 100 < (step + 1) * 12 / 100 {
            let number = step * 12 / 100;
            let node = usize::try_from(number * 7_919 % 4).unwrap();
            let is_admitted = request(&mut fleet, node, &format!("honest {}", number % 120));
            honest += u64::from(is_admitted && step >= settled);
        }
        fleet.pass();
    }
    if shared_by == Consistency::Split {
        check_limit(&fleet, pool, "beside abusers");
    }
    honest
}

/// Issue 10: 1,001 calls to Redis for 1,000 denied requests.
#[test]
fn a_caller_who_hammers_an_exhausted_limit_costs_one_call_in_100_ms() {
    let cases = [
        fixed_window(100, SECOND * 10),
        // Strict with four nodes.
        fixed_window(5, SECOND * 10),
        // Never split.
        fixed_window(100, SECOND * 3_600),
        quota(LOG, 100, SECOND * 20),
        quota(counter(1), 100, SECOND * 20),
    ];
    for quota in cases {
        let mut fleet = Fleet::new(4);
        fleet.drive(&quota, 100, &[1, 0, 0, 0], SECOND * 12);
        fleet.common.take_calls();
        fleet.drive(&quota, 2_000, &[1, 0, 0, 0], SECOND);
        let calls = fleet.common.take_calls();
        let admitted = fleet.admitted.len();
        assert!(
            calls <= 12,
            "{calls} calls for {quota:?}, {admitted} admitted"
        );
    }
}

/// Issue 10: of 1,000 callers with 10 per second each, at 80/10/5/5 over four nodes, 76 % was admitted.
#[test]
fn many_callers_have_nearly_all_of_their_limits() {
    for limit in [10, 20, 100] {
        let quota = fixed_window(limit, SECOND);
        let mut fleet = Fleet::new(4);
        let callers: Vec<String> = (0..20).map(|caller| caller.to_string()).collect();
        let nodes = [0, 0, 0, 0, 1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 3];
        let mut requests = 0;
        let mut run = |fleet: &mut Fleet, seconds: u64| {
            for step in 0..seconds * 1_000 {
                // Each caller sends 1.2 times its limit, spread over the nodes in turn.
                while requests * 1_000 < step * limit * 12 / 10 {
                    let node = nodes[usize::try_from(requests).unwrap() % nodes.len()];
                    for caller in &callers {
                        let values = [caller.as_str()];
                        let limit = LimitId(9);
                        let key = CounterKey {
                            limit,
                            values: &values,
                        };
                        fleet.request(
                            node,
                            &[Charge {
                                key,
                                ..split(&quota, 1)
                            }],
                        );
                    }
                    requests += 1;
                }
                fleet.pass();
            }
            requests = 0;
        };
        run(&mut fleet, 8);
        let since = fleet.now();
        run(&mut fleet, 10);
        let admitted = fleet.admitted.iter().filter(|at| **at >= since).count();
        let most = usize::try_from(limit).unwrap() * callers.len() * 10;
        println!("{limit}: {admitted} of {most}");
        assert!(admitted * 100 >= most * 95, "{limit}: {admitted} of {most}");
        assert!(admitted <= most);
    }
}
