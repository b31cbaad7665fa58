//! The order in which fleets run: those that bear others beside them in lanes, then the rest one by one.

use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::fleet::ScenarioReport;
use crate::report;
use crate::scenario::FleetSpec;

/// As many fleets run at the same time, if all of them are marked `beside`.
const LANES: usize = 2;

/// As many runs of a fleet are judged if one broke a promise.
const RUNS_IF_BROKEN: u32 = 3;

/// A fleet takes so many seconds beyond its traffic: servers and nodes start and end.
const START_AND_END: f64 = 3.0;

/// One run of one fleet.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// The place of the fleet in the list.
    fleet: usize,
    /// Which of its runs it is.
    number: u32,
}

/// Runs all fleets, each as often as it says. Returns the joined reports in the order of the list.
///
/// What was not kept beside other fleets is measured again alone, and that counts. A run with invalid results is
/// repeated at most `retries` times, unless it broke a promise. A fleet that ran once and broke a promise runs [`RUNS_IF_BROKEN`] times in all,
/// and the median counts. A window with too many stays one, and nothing is repeated because of it.
pub fn run_all(
    fleets: &[FleetSpec],
    retries: u32,
    measure: impl Fn(&FleetSpec) -> Vec<ScenarioReport> + Sync,
) -> Vec<ScenarioReport> {
    let beside = run_beside(fleets, &measure);
    let mut reports = Vec::new();
    for (place, spec) in fleets.iter().enumerate() {
        let of_fleet = beside.iter().filter(|(run, _)| run.fleet == place);
        let mut before = of_fleet.map(|(_, reports)| reports.clone());
        let mut run = || {
            let is_final = |reports: &Vec<ScenarioReport>| {
                let count = report::count(reports);
                count.is_all_kept() || count.has_too_many()
            };
            let beside = before.next().filter(is_final);
            beside.unwrap_or_else(|| measure_valid(spec, retries, &measure))
        };
        let mut runs: Vec<_> = (0..spec.runs).map(|_| run()).collect();
        let is_doubtful = |reports: &Vec<ScenarioReport>| {
            let count = report::count(reports);
            count.has_broken() && !count.has_too_many()
        };
        if runs.len() == 1 && runs.iter().any(is_doubtful) {
            println!("  a promise was broken; the median of {RUNS_IF_BROKEN} runs counts");
            runs.extend((1..RUNS_IF_BROKEN).map(|_| measure_valid(spec, retries, &measure)));
        }
        reports.extend(report::join_runs(runs));
    }
    reports
}

/// Measures a fleet, and again if noise made results invalid.
fn measure_valid(
    spec: &FleetSpec,
    retries: u32,
    measure: impl Fn(&FleetSpec) -> Vec<ScenarioReport>,
) -> Vec<ScenarioReport> {
    let mut reports = measure(spec);
    for _ in 0..retries {
        let count = report::count(&reports);
        if !count.has_invalid() || count.has_broken() {
            break;
        }
        println!("  results are invalid; running the fleet again");
        reports = measure(spec);
    }
    reports
}

/// Runs the fleets that are marked `beside`, several at the same time.
fn run_beside(
    fleets: &[FleetSpec],
    measure: &(impl Fn(&FleetSpec) -> Vec<ScenarioReport> + Sync),
) -> Vec<(Run, Vec<ScenarioReport>)> {
    let mut waiting = runs_beside(fleets);
    waiting.reverse();
    let (waiting, done) = (Mutex::new(waiting), Mutex::new(Vec::new()));
    let take = || {
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.pop()
    };
    let work = || {
        while let Some(run) = take() {
            let reports = measure(&fleets[run.fleet]);
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.push((run, reports));
        }
    };
    thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(work);
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(run, _)| run.number);
    done
}

/// The runs that may have others beside them, the longest first, so that the lanes end together.
fn runs_beside(fleets: &[FleetSpec]) -> Vec<Run> {
    let marked = fleets.iter().enumerate().filter(|(_, spec)| spec.beside);
    let runs = marked.flat_map(|(fleet, spec)| {
        let numbers = 0..spec.runs;
        numbers.map(move |number| Run { fleet, number })
    });
    let mut runs: Vec<Run> = runs.collect();
    runs.sort_by(|a, b| fleets[b.fleet].seconds.total_cmp(&fleets[a.fleet].seconds));
    runs
}

/// About how many seconds all fleets take together, if no run is repeated.
pub fn estimate(fleets: &[FleetSpec]) -> f64 {
    let seconds = |spec: &FleetSpec| spec.seconds + START_AND_END;
    let mut lanes = [0.0_f64; LANES];
    for run in runs_beside(fleets) {
        lanes.sort_by(f64::total_cmp);
        lanes[0] += seconds(&fleets[run.fleet]);
    }
    let alone = fleets.iter().filter(|spec| !spec.beside);
    let alone: f64 = alone.map(|spec| f64::from(spec.runs) * seconds(spec)).sum();
    lanes.into_iter().fold(0.0, f64::max) + alone
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::judge::Finding;
    use crate::yaml;

    fn fleets(text: &str) -> Vec<FleetSpec> {
        serde_json::from_value(yaml::parse(text).unwrap()).unwrap()
    }

    #[test]
    fn marked_fleets_share_the_time_and_the_others_do_not() {
        let text = "[{ fleet: a, seconds: 97, beside: true, scenarios: [] },
            { fleet: b, seconds: 47, runs: 2, beside: true, scenarios: [] },
            { fleet: c, seconds: 17, runs: 3, scenarios: [] }]";
        assert!((estimate(&fleets(text)) - 160.0).abs() < 1e-6);
    }

    /// How often a fleet is measured whose only promise comes out like this every time.
    fn count_runs(text: &str, retries: u32, findings: &[Finding]) -> usize {
        let runs = AtomicUsize::new(0);
        run_all(&fleets(text), retries, |spec| {
            runs.fetch_add(1, Ordering::SeqCst);
            vec![ScenarioReport {
                name: spec.fleet.clone(),
                subject: String::new(),
                findings: findings.to_vec(),
                degraded: 0.0,
                requests: 0,
            }]
        });
        runs.into_inner()
    }

    fn broken(is_for_every_run: bool) -> Finding {
        let mut finding = Finding::new(String::new(), String::new(), vec![String::new()]);
        finding.is_for_every_run = is_for_every_run;
        finding
    }

    #[test]
    fn what_failed_beside_others_is_measured_alone_unless_there_were_too_many() {
        let text = "[{ fleet: a, seconds: 1, beside: true, scenarios: [] }]";
        assert_eq!(count_runs(text, 0, &[broken(false)]), 4);
        assert_eq!(count_runs(text, 0, &[broken(true)]), 1);
    }

    #[test]
    fn noise_is_forgiven_as_often_as_it_is_said_and_too_many_never() {
        let text = "[{ fleet: a, seconds: 1, scenarios: [] }]";
        let invalid = Finding::nothing(String::new(), "noise");
        assert_eq!(count_runs(text, 2, std::slice::from_ref(&invalid)), 3);
        assert_eq!(count_runs(text, 2, &[invalid, broken(true)]), 1);
    }

    #[test]
    fn a_broken_promise_is_judged_by_three_runs_and_too_many_by_one() {
        let text = "[{ fleet: a, seconds: 1, scenarios: [] }]";
        assert_eq!(count_runs(text, 0, &[broken(false)]), 3);
        assert_eq!(count_runs(text, 0, &[broken(false), broken(true)]), 1);
        let thrice = "[{ fleet: a, seconds: 1, runs: 3, scenarios: [] }]";
        assert_eq!(count_runs(thrice, 0, &[broken(false)]), 3);
    }

    #[test]
    fn nothing_runs_beside_a_fleet_that_is_not_marked() {
        let text = "[{ fleet: alone, seconds: 1, runs: 2, scenarios: [] },
            { fleet: x, seconds: 2, runs: 3, beside: true, scenarios: [] },
            { fleet: y, seconds: 3, beside: true, scenarios: [] }]";
        let (now, most, runs) = (
            AtomicUsize::new(0),
            AtomicUsize::new(0),
            AtomicUsize::new(0),
        );
        run_all(&fleets(text), 0, |spec| {
            let count = now.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(count, Ordering::SeqCst);
            assert!(
                spec.beside || count == 1,
                "{count} run beside {}",
                spec.fleet
            );
            runs.fetch_add(1, Ordering::SeqCst);
            crate::clock::sleep(0.02);
            now.fetch_sub(1, Ordering::SeqCst);
            Vec::new()
        });
        assert_eq!(runs.load(Ordering::SeqCst), 6);
        assert_eq!(most.load(Ordering::SeqCst), LANES);
    }
}
