//! Outages of all lengths, seen by an outside count of all admissions.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tidegate_algorithms::{Algorithm, Quota, Refill, Rounding, Time};
use tidegate_store::Clock;

use super::judge::{most_used, outside_overshoot};
use super::quota;
use super::world::World;
use crate::capacity::capacity;

const LIMIT: u64 = 1_000;

const WINDOW: Duration = Duration::from_secs(10);

/// Between two rounds of requests.
const TICK: Duration = Duration::from_millis(25);

/// Each node exchanges totals once in so many ticks.
const SYNC_TICKS: usize = 4;

/// Traffic over four nodes, in per cent.
const SPREADS: [[u64; 4]; 3] = [[25, 25, 25, 25], [80, 10, 5, 5], [100, 0, 0, 0]];

/// Limits of all algorithms: their name, the quota, and whether they count by the clock's windows.
fn limits() -> Vec<(&'static str, Quota, bool)> {
    let bucket = |burst, refill| Algorithm::TokenBucket { burst, refill };
    let counter = |sub_windows| Algorithm::SlidingCounter {
        sub_windows,
        rounding: Rounding::Up,
    };
    let log = Algorithm::SlidingLog { log_refused: false };
    let limits = [
        ("fixed window", Algorithm::FixedWindow, true),
        ("interval bucket", bucket(None, Refill::Interval), true),
        ("token bucket", bucket(None, Refill::Continuous), false),
        (
            "token bucket, burst",
            bucket(Some(2_000), Refill::Continuous),
            false,
        ),
        ("sliding log", log, false),
        ("sliding counter", counter(1), true),
        ("12 sub-windows", counter(12), false),
        ("60 sub-windows", counter(60), false),
    ];
    limits
        .into_iter()
        .map(|(name, algorithm, is_aligned)| (name, quota(LIMIT, algorithm), is_aligned))
        .collect()
}

/// Four nodes with traffic of a given spread, 1.3 times the limit.
struct Traffic {
    world: World,
    spread: [u64; 4],
    ticks: usize,
    /// In hundredths of a request.
    due: [u64; 4],
    cut: Cut,
}

/// What cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    None,
    /// No store.
    Store,
    /// The stores of other regions.
    Regions,
}

impl Traffic {
    fn new(quota: Quota, regions: &[usize; 4], spread: [u64; 4]) -> Self {
        let mut world = World::new(regions, quota);
        world.look_all();
        Self {
            world,
            spread,
            ticks: 0,
            due: [0; 4],
            cut: Cut::None,
        }
    }

    fn now(&self) -> Time {
        self.world.nodes[0].eventual.clock.now()
    }

    fn run(&mut self, span: Duration) {
        let per_tick = 13 * LIMIT / 10 * u64::try_from(TICK.as_millis()).unwrap();
        for _ in 0..span.as_millis() / TICK.as_millis() {
            for node in 0..4 {
                self.due[node] += per_tick * self.spread[node];
                let scale = 100 * u64::try_from(WINDOW.as_millis()).unwrap();
                while self.due[node] >= scale {
                    self.due[node] -= scale;
                    self.world.take(node, 1);
                }
                let regions = &self.world.nodes[node].eventual.regions;
                let is_awaited = regions[0].is_awaited.load(Ordering::Relaxed);
                if is_awaited || self.ticks % SYNC_TICKS == node {
                    self.sync(node);
                }
            }
            self.ticks += 1;
            self.world.advance(TICK);
        }
    }

    /// Syncs a node with all stores that it can reach.
    fn sync(&self, node: usize) {
        let region = self.world.nodes[node].region;
        for (other, link) in self.world.links.iter().enumerate() {
            let is_cut = match self.cut {
                Cut::None => false,
                Cut::Store => true,
                Cut::Regions => other != region,
            };
            link.is_cut.store(is_cut, Ordering::Relaxed);
        }
        self.world.sync_node(node);
    }

    /// What was admitted from one time to another.
    fn admitted(&self, from: Time, to: Time) -> u64 {
        let inside = self.world.admitted.iter();
        let inside = inside.filter(|(at, _)| (from..to).contains(at));
        inside.map(|(_, cost)| cost).sum()
    }

    /// What was admitted in the window before a time above the limit.
    fn owed(&self, at: Time) -> u64 {
        let from = Time::from_nanos(at.nanos() - u64::try_from(WINDOW.as_nanos()).unwrap());
        self.admitted(from, at).saturating_sub(LIMIT)
    }
}

/// The start of the first whole window from a time on.
fn whole_window(from: Time, is_aligned: bool) -> Time {
    let window = u64::try_from(WINDOW.as_nanos()).unwrap();
    if is_aligned {
        Time::from_nanos(from.nanos().div_ceil(window) * window)
    } else {
        from
    }
}

/// An outage, and what the first whole window after it admits.
fn check(name: &str, quota: &Quota, is_aligned: bool, spread: [u64; 4], cut: Cut, outage: u64) {
    let regions = match cut {
        Cut::Regions => [0, 0, 1, 1],
        _ => [0; 4],
    };
    let mut traffic = Traffic::new(quota.clone(), &regions, spread);
    traffic.run(Duration::from_millis(23_700));
    traffic.cut = cut;
    traffic.run(Duration::from_millis(outage));
    traffic.cut = Cut::None;
    let back = traffic.now();
    let owed = traffic.owed(back);
    traffic.run(3 * WINDOW);
    let from = whole_window(back, is_aligned);
    let admitted = traffic.admitted(from, from.plus(WINDOW));
    let most = most_used(quota, &traffic.world.admitted);
    let what =
        format!("{name}, {spread:?}, {cut:?} {outage} ms: {admitted}, {owed} owed, {most} used");
    assert!(admitted + owed >= LIMIT * 9 / 10, "{what}");
    assert!(most <= capacity(quota) * 5 / 4, "{what}");
    let seen = outside_overshoot(quota, &traffic.world.admitted);
    for node in &traffic.world.nodes {
        let report = node.eventual.report();
        let what = format!("{what}: {seen:?} seen, {report:?}");
        let tolerance = capacity(quota) / 50;
        // What counts in windows of its own may be a little above the limit in each of them.
        let n_windows = if is_aligned { 1 } else { 5 };
        // A node that is not asked knows nothing.
        if report.counters > 0 {
            let total = seen.total.abs_diff(report.overshoot);
            assert!(total <= tolerance * n_windows, "{what}");
            let worst = seen.worst.abs_diff(report.worst_overshoot);
            assert!(worst <= tolerance, "{what}");
        }
    }
}

/// After an outage of a second, a window and three windows, the first whole window admits at least 90 % of
/// the limit, less what was truly admitted above it; it keeps to the bound; and every node reports the
/// overshoot to within 2 % of the limit (of a bucket, its capacity): the most at one time, and the total, for
/// limits that do not count in the clock's windows in each of their windows.
#[test]
fn windows_that_are_over_are_not_paid_for_after_an_outage() {
    for (name, quota, is_aligned) in limits() {
        for spread in SPREADS {
            for outage in [1_000, 10_000, 30_000] {
                check(name, &quota, is_aligned, spread, Cut::Store, outage);
            }
        }
    }
}

/// Nor after two regions could not reach each other.
#[test]
fn windows_that_are_over_are_not_paid_for_after_a_cut() {
    for (name, quota, is_aligned) in limits() {
        for spread in SPREADS {
            check(name, &quota, is_aligned, spread, Cut::Regions, 20_000);
        }
    }
}
