//! Never more than the limit.

use std::fmt::Write as _;

use super::count::{at, degraded, inside, windows};
use super::{Finding, Measured};
use crate::fault::Action;
use crate::record::Record;
use crate::scenario::{Algorithm, Consistency};

/// What may be allowed above a limit.
#[derive(Clone, Copy)]
struct Bound {
    /// How many times the limit, or the burst.
    times: f64,
    /// Whether what a node allowed without Redis counts.
    counts_degraded: bool,
}

/// No window has more than the limit, a bucket no more than its bound. What a node allowed without
/// Redis does not count.
pub(super) fn never_over(measured: &Measured<'_>) -> Finding {
    check(
        measured,
        Bound {
            times: 1.0,
            counts_degraded: false,
        },
    )
}

/// No window has more than so many times the limit, whoever allowed it; before the first outage as `never_over` has it.
pub(super) fn outage_bound(measured: &Measured<'_>, times: f64) -> Finding {
    check(
        measured,
        Bound {
            times,
            counts_degraded: true,
        },
    )
}

fn check(measured: &Measured<'_>, bound: Bound) -> Finding {
    let mut finding = match measured.scenario.limit.algorithm {
        Algorithm::TokenBucket | Algorithm::LeakyBucket => bucket(measured, bound),
        Algorithm::SlidingLog => any_span(measured, bound),
        _ => clock_windows(measured, bound),
    };
    let alone = degraded(&measured.judged, (measured.start, measured.end));
    if alone > 0 {
        let _ = write!(finding.measured, ", {alone} allowed without Redis in all");
    }
    finding
}

/// What `eventual` may have above the limit while Redis is well: 25 %, at least one for each node.
fn slack(measured: &Measured<'_>, bound: Bound) -> u64 {
    if measured.scenario.consistency != Consistency::Eventual || bound.counts_degraded {
        return 0;
    }
    let nodes = measured.nodes as u64;
    nodes * (measured.scenario.limit.limit.div_ceil(4)).div_ceil(nodes)
}

fn clock_windows(measured: &Measured<'_>, bound: Bound) -> Finding {
    let limit = &measured.scenario.limit;
    let (allowed, bound) = (bound, bound.of(limit.limit) + slack(measured, bound));
    let windows = windows(measured.start, measured.end, limit.window());
    let mut worst = 0;
    let mut over = Vec::new();
    for window in &windows {
        let count = inside(&measured.judged, *window);
        let alone = allowed.degraded(measured, *window);
        let bound = (bound as f64 * measured.largest_factor(*window)) as u64;
        let bound = bound + measured.given_in(*window);
        worst = worst.max(count);
        if count > bound + alone {
            let when = at(window.0, measured.start);
            let most = bound + alone;
            let by_node = by_node(measured, *window);
            over.push(format!(
                "window at {when}: {count} ({by_node}), at most {most}"
            ));
        }
    }
    let is_changed = measured
        .faults_of(Action::Reload)
        .any(|span| (span.factor - 1.0).abs() > f64::EPSILON);
    let is_given = measured.given_in((measured.start, measured.end)) > 0;
    let or_else = match (is_changed, is_given) {
        (true, _) => ", or what it was changed to,",
        (_, true) => " and what was given back",
        _ => "",
    };
    let promise = format!("at most {bound}{or_else} in each window");
    let count = windows.len();
    Finding::new(promise, format!("at most {worst} in {count} windows"), over)
}

/// What each node allowed in a window, and how long after its edge the first of it was sent.
fn by_node(measured: &Measured<'_>, (from, to): (u64, u64)) -> String {
    let of_node = |node: usize| {
        let records = measured.judged.iter().filter(|record| record.node == node);
        let records = records.filter(|record| record.is_inside(from, to) && record.taken() > 0);
        let records: Vec<&Record> = records.collect();
        let count: u64 = records.iter().map(|record| record.taken()).sum();
        let first = records.first().map_or(0, |record| record.sent - from);
        format!("{count} from {} ms on", first / 1_000)
    };
    let texts: Vec<String> = (0..measured.nodes).map(of_node).collect();
    format!("by node {}", texts.join(", "))
}

fn any_span(measured: &Measured<'_>, bound: Bound) -> Finding {
    let limit = measured.scenario.limit.limit;
    let (permitted, bound) = (bound, bound.of(limit) + slack(measured, bound));
    let window = measured.scenario.limit.window();
    let allowed: Vec<&Record> = taken(&measured.judged);
    let mut worst = 0;
    let mut over = Vec::new();
    for (place, first) in allowed.iter().enumerate() {
        let to = first.sent + window;
        let later = allowed[place..]
            .iter()
            .take_while(|record| record.sent <= to);
        let span = later.filter(|record| record.received <= to);
        let count: u64 = span.map(|record| record.taken()).sum();
        if count > worst {
            worst = count;
            let alone = permitted.degraded(measured, (first.sent, to));
            if count > bound + alone {
                let when = at(first.sent, measured.start);
                over = vec![format!("from {when} on: {count} of {bound} in a window")];
            }
        }
    }
    let promise = format!("at most {bound} in any span of a window");
    Finding::new(promise, format!("at most {worst}"), over)
}

/// Over any time at most burst + rate x time, and for `leased` rate x a loan's life more.
fn bucket(measured: &Measured<'_>, bound: Bound) -> Finding {
    let limit = &measured.scenario.limit;
    let life = match measured.scenario.consistency {
        Consistency::Leased => (limit.window / 16.0).min(1.0_f64.max(limit.window / 64.0)),
        _ => 0.0,
    };
    let queue = u64::from(limit.algorithm == Algorithm::LeakyBucket);
    let alone = bound.degraded(measured, (measured.start, measured.end));
    let bound = bound.of(limit.capacity() + queue) + slack(measured, bound);
    let bound = bound + (limit.rate() * life).ceil() as u64;
    let (excess, when) = largest_excess(&measured.judged, limit.rate());
    let promise = format!("at most {bound} above the rate over any time");
    let mut over = Vec::new();
    if excess > (bound + alone) as f64 + 0.5 {
        let when = at(when, measured.start);
        over.push(format!(
            "until {when}: {excess:.0} above the rate, bound {bound}, {alone} degraded"
        ));
    }
    Finding::new(promise, format!("at most {excess:.0}"), over)
}

/// The most that was allowed above rate x time over any time, and when that time ended.
pub(super) fn largest_excess(records: &[Record], rate: f64) -> (f64, u64) {
    let rate = rate / 1e6;
    let Some(origin) = records.first().map(|record| record.sent) else {
        return (0.0, 0);
    };
    // The largest rate x time - count so far is the best moment to begin.
    let mut best_start = f64::MIN;
    let (mut count, mut worst, mut when) = (0.0, 0.0, 0);
    for record in taken(records) {
        let start = rate * (record.sent - origin) as f64 - count;
        best_start = best_start.max(start);
        count += record.taken() as f64;
        let excess = count + best_start - rate * (record.received - origin) as f64;
        if excess > worst {
            (worst, when) = (excess, record.received);
        }
    }
    (worst, when)
}

// === impl Bound ===

impl Bound {
    fn of(self, limit: u64) -> u64 {
        (self.times * limit as f64 - 1e-6).ceil() as u64
    }

    /// What degraded answers allowed in a span, if that does not count. Before the first outage it does not: that is not
    /// what an outage costs.
    fn degraded(self, measured: &Measured<'_>, span: (u64, u64)) -> u64 {
        let first = measured.outages().map(|outage| outage.from).min();
        let is_before = first.is_some_and(|first| span.1 < first);
        if self.counts_degraded && !is_before {
            0
        } else {
            degraded(&measured.judged, span)
        }
    }
}

fn taken(records: &[Record]) -> Vec<&Record> {
    let taken = records.iter().filter(|record| record.taken() > 0);
    taken.collect()
}
