//! Never more than the limit.

use std::fmt::Write as _;

use super::count::{at, degraded, inside, windows};
use super::{Finding, Measured};
use crate::fault::Action;
use crate::record::Record;
use crate::scenario::{Algorithm, Consistency};

/// What may be allowed.
#[derive(Clone, Copy)]
struct Bound {
    /// How many times the limit, or the burst, while Redis is away and shortly after. What a node allowed without
    /// Redis counts then; else it does not.
    in_outages: Option<f64>,
}

/// No window has more than the limit, a bucket no more than its bound. What a node allowed without
/// Redis does not count.
pub(super) fn never_over(measured: &Measured<'_>) -> Finding {
    check(measured, Bound { in_outages: None })
}

/// No window of an outage has more than so many times the limit, whoever allowed it; the others as `never_over` has it.
pub(super) fn outage_bound(measured: &Measured<'_>, times: f64) -> Finding {
    let in_outages = Some(times);
    check(measured, Bound { in_outages })
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
fn slack(measured: &Measured<'_>) -> u64 {
    if measured.scenario.consistency != Consistency::Eventual {
        return 0;
    }
    let nodes = measured.nodes as u64;
    nodes * (measured.scenario.limit.limit.div_ceil(4)).div_ceil(nodes)
}

fn clock_windows(measured: &Measured<'_>, bound: Bound) -> Finding {
    let limit = &measured.scenario.limit;
    let windows = windows(measured.start, measured.end, limit.window());
    let mut worst = 0;
    let mut over = Vec::new();
    for window in &windows {
        let count = inside(&measured.judged, *window);
        worst = worst.max(count);
        let limit = (limit.limit as f64 * measured.largest_factor(*window)) as u64;
        let most = bound.most(measured, *window, limit) + measured.given_in(*window);
        if count > most {
            let when = at(window.0, measured.start);
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
    let most = bound.text(measured, limit.limit);
    let promise = format!("at most {most}{or_else} in each window");
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
    let window = measured.scenario.limit.window();
    let allowed: Vec<&Record> = taken(&measured.judged);
    let (mut worst, mut worst_over) = (0, 0);
    let mut over = Vec::new();
    for (place, first) in allowed.iter().enumerate() {
        let to = first.sent + window;
        let later = allowed[place..]
            .iter()
            .take_while(|record| record.sent <= to);
        let span = later.filter(|record| record.received <= to);
        let count: u64 = span.map(|record| record.taken()).sum();
        worst = worst.max(count);
        if count <= limit {
            continue;
        }
        let most = bound.most(measured, (first.sent, to), limit);
        if count > most + worst_over {
            worst_over = count - most;
            let when = at(first.sent, measured.start);
            over = vec![format!("from {when} on: {count} of {most} in a window")];
        }
    }
    let most = bound.text(measured, limit);
    let promise = format!("at most {most} in any span of a window");
    Finding::new(promise, format!("at most {worst}"), over)
}

/// Over any time at most burst + rate x time, and for `leased` rate x a loan's life more.
fn bucket(measured: &Measured<'_>, bound: Bound) -> Finding {
    let limit = &measured.scenario.limit;
    let life = match measured.scenario.consistency {
        Consistency::Leased => (limit.window / 64.0).min(60.0),
        _ => 0.0,
    };
    let queue = u64::from(limit.algorithm == Algorithm::LeakyBucket);
    let more = (limit.rate() * life).ceil() as u64;
    let burst = limit.capacity() + queue;
    let mut over = Vec::new();
    let mut check = |(from, to): (u64, u64)| {
        let sent = |time: u64| measured.judged.partition_point(|record| record.sent < time);
        let records = &measured.judged[sent(from)..sent(to)];
        let (excess, when) = largest_excess(records, limit.rate());
        let most = bound.most(measured, (from, to), burst) + more;
        if excess > most as f64 + 0.5 {
            let when = at(when, measured.start);
            over.push(format!(
                "until {when}: {excess:.0} above the rate of {most}"
            ));
        }
        excess
    };
    let whole = check((measured.start, measured.end));
    for undisturbed in measured.undisturbed() {
        check(undisturbed);
    }
    let most = bound.text(measured, burst + more);
    let promise = format!("at most {most} above the rate over any time");
    Finding::new(promise, format!("at most {whole:.0}"), over)
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
    /// The most that a span may have.
    fn most(self, measured: &Measured<'_>, span: (u64, u64), limit: u64) -> u64 {
        let in_outage = self.in_outages.filter(|_| measured.is_disturbed(span));
        in_outage.map_or_else(
            || limit + slack(measured) + degraded(&measured.judged, span),
            |times| (times * limit as f64 - 1e-6).ceil() as u64,
        )
    }

    fn text(self, measured: &Measured<'_>, limit: u64) -> String {
        let well = limit + slack(measured);
        self.in_outages.map_or_else(
            || well.to_string(),
            |times| format!("{well}, with an outage {:.0},", times * limit as f64),
        )
    }
}

fn taken(records: &[Record]) -> Vec<&Record> {
    let taken = records.iter().filter(|record| record.taken() > 0);
    taken.collect()
}
