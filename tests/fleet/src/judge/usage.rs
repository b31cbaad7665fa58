//! How much of a limit callers get, beside the strict twin of the same demand.

use super::count::{at, inside, spans, touching, windows};
use super::over::largest_excess;
use super::{Finding, Measured};
use crate::clock::micros;
use crate::scenario::Algorithm;

/// The fewest windows that a mean is taken of.
const FEWEST: usize = 10;

/// A percentage of what the twin allows, over all windows together.
pub(super) fn mean(measured: &Measured<'_>, percent: f64) -> Finding {
    let promise = format!("{percent} % of {} in the mean", reference_name(measured));
    let spans = judged_spans(measured);
    let (Some(first), Some(last)) = (spans.first(), spans.last()) else {
        return Finding::nothing(promise, "no full window");
    };
    if spans.len() < FEWEST {
        return Finding::nothing(promise, &format!("only {} windows", spans.len()));
    }
    let whole = (first.0, last.1);
    let got = touching(&measured.judged, whole);
    let twin = reference(measured, whole);
    let reached = 100.0 * got as f64 / twin.max(1) as f64;
    let text = format!(
        "{reached:.1} % ({got} of {twin} in {} windows)",
        spans.len()
    );
    let mut broken = Vec::new();
    if reached < percent {
        let counts = spans.iter().map(|span| touching(&measured.judged, *span));
        let counts: Vec<String> = counts.map(|count| count.to_string()).collect();
        broken.push(format!("allowed in each window: {}", counts.join(" ")));
    }
    Finding::new(promise, text, broken)
}

/// A percentage of what the twin allows, or all but two permits, in every window.
pub(super) fn every_window(measured: &Measured<'_>, percent: f64) -> Finding {
    let name = reference_name(measured);
    let promise = format!("{percent} % of {name}, or all but two, in every window");
    let spans = judged_spans(measured);
    let mut worst: f64 = f64::MAX;
    let mut broken = Vec::new();
    for span in &spans {
        let got = touching(&measured.judged, *span);
        let twin = reference(measured, *span);
        let reached = 100.0 * got as f64 / twin.max(1) as f64;
        if twin > 0 {
            worst = worst.min(reached);
        }
        if reached < percent && got + 2 < twin {
            let when = at(span.0, measured.start);
            broken.push(format!("window at {when}: {got}, {name} {twin}"));
        }
    }
    if spans.is_empty() {
        return Finding::nothing(promise, "no full window");
    }
    let count = spans.len();
    Finding::new(
        promise,
        format!("worst of {count} windows {worst:.1} %"),
        broken,
    )
}

/// All permits but a few in every window in which the twin allowed all but one.
pub(super) fn all_but(measured: &Measured<'_>, permits: u64) -> Finding {
    let limit = measured.scenario.limit.limit;
    let promise = format!("all but {permits} of {limit} in every window");
    let (mut fewest, mut broken) = (u64::MAX, Vec::new());
    for span in judged_spans(measured) {
        let got = touching(&measured.judged, span);
        let twin = reference(measured, span);
        fewest = fewest.min(got);
        if got + permits < limit.min(twin) {
            let when = at(span.0, measured.start);
            broken.push(format!("window at {when}: {got}, strict {twin}"));
        }
    }
    if fewest == u64::MAX {
        return Finding::nothing(promise, "no full window");
    }
    Finding::new(promise, format!("at least {fewest}"), broken)
}

/// As much as the twin allows, within a percentage either way.
pub(super) fn as_strict(measured: &Measured<'_>, percent: f64) -> Finding {
    let span = (measured.judged_from(), measured.end);
    let (got, twin) = (inside(&measured.judged, span), inside(&measured.twin, span));
    let (most, most_twin) = (
        touching(&measured.judged, span),
        touching(&measured.twin, span),
    );
    let reached = 100.0 * got as f64 / twin.max(1) as f64;
    let text = format!("{reached:.1} % ({got} of {twin})");
    let is_less = (most as f64) < (1.0 - percent / 100.0) * twin as f64;
    let is_more = got as f64 > (1.0 + percent / 100.0) * most_twin as f64;
    let broken = if is_less || is_more {
        vec![text.clone()]
    } else {
        Vec::new()
    };
    Finding::new(format!("as strict within {percent} %"), text, broken)
}

/// Permits that are given back are there for callers of all nodes in the same window.
pub(super) fn given(measured: &Measured<'_>, percent: f64) -> Finding {
    let limit = measured.scenario.limit.limit;
    let promise = format!("{percent} % of the limit and what was given back");
    let (mut texts, mut broken) = (Vec::new(), Vec::new());
    for span in windows(
        measured.start,
        measured.end,
        measured.scenario.limit.window(),
    ) {
        let given = measured.given_in(span);
        if given == 0 {
            continue;
        }
        let (got, all) = (touching(&measured.judged, span), limit + given);
        texts.push(format!("{got} of {all}"));
        if (got as f64) < percent / 100.0 * all as f64 {
            let when = at(span.0, measured.start);
            broken.push(format!("window at {when}: {got} of {all}"));
        }
    }
    if texts.is_empty() {
        return Finding::nothing(promise, "nothing was given back in a full window");
    }
    Finding::new(promise, texts.join(", "), broken)
}

/// A percentage of the burst that the twin gave.
pub(super) fn burst(measured: &Measured<'_>, percent: f64) -> Finding {
    let rate = measured.scenario.limit.rate();
    let (got, _) = largest_excess(&measured.judged, rate);
    let (twin, _) = largest_excess(&measured.twin, rate);
    let reached = 100.0 * got / twin.max(1.0);
    let text = format!("{reached:.1} % ({got:.0}, strict {twin:.0})");
    let mut broken = Vec::new();
    if reached < percent && got + 2.0 < twin {
        broken.push(format!("burst above the rate: {text}"));
    }
    Finding::new(format!("{percent} % of the burst of strict"), text, broken)
}

/// After traffic moved, windows allow a percentage of the limit, or all but one permit, once the nodes
/// had time to follow.
pub(super) fn follows(measured: &Measured<'_>, moved: f64, within: f64, percent: f64) -> Finding {
    let limit = measured.scenario.limit.limit;
    let promise = format!("{percent} % from {within} s after traffic moved");
    let from = measured.start + micros(moved + within);
    let spans = windows(from, measured.end, measured.scenario.limit.window());
    let (mut fewest, mut broken) = (u64::MAX, Vec::new());
    for span in spans {
        let got = touching(&measured.judged, span);
        fewest = fewest.min(got);
        if (got as f64) < percent / 100.0 * limit as f64 && got + 1 < limit {
            broken.push(format!(
                "window at {}: {got} of {limit}",
                at(span.0, measured.start)
            ));
        }
    }
    if fewest == u64::MAX {
        return Finding::nothing(promise, "no full window");
    }
    Finding::new(promise, format!("at least {fewest} of {limit}"), broken)
}

/// What the twin allows in a span; without a twin, the limit.
fn reference(measured: &Measured<'_>, span: (u64, u64)) -> u64 {
    let limit = &measured.scenario.limit;
    if measured.scenario.twin {
        inside(&measured.twin, span)
    } else {
        (span.1 - span.0) / limit.window() * limit.limit
    }
}

fn reference_name(measured: &Measured<'_>) -> &'static str {
    if measured.scenario.twin {
        "strict"
    } else {
        "the limit"
    }
}

/// Windows of the clock; for buckets and logs spans of the same length.
fn judged_spans(measured: &Measured<'_>) -> Vec<(u64, u64)> {
    let limit = &measured.scenario.limit;
    let from = measured.judged_from();
    match limit.algorithm {
        Algorithm::TokenBucket | Algorithm::LeakyBucket | Algorithm::SlidingLog => {
            spans(from, measured.end, limit.window())
        }
        _ => windows(from, measured.end, limit.window()),
    }
}
