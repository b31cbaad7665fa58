//! What kills, outages and failovers cost.

use super::count::{at, inside, touching, windows};
use super::{DEGRADED_SHARE, Finding, Measured};
use crate::fault::Action;
use crate::record::Record;

/// Degraded answers that are further apart than this are of different causes.
const PAUSE: u64 = 200_000;

/// The breaker is open so long after an outage began.
const SETTLED: u64 = 1_000_000;

/// The window of a kill loses at most a percentage of the limit, and two permits.
pub(super) fn kill_cost(measured: &Measured<'_>, percent: f64) -> Finding {
    let limit = measured.scenario.limit.limit;
    let bound = (limit as f64 * percent / 100.0) as u64 + 2;
    let promise = format!("kill -9 costs at most {bound} of {limit}");
    let windows = windows(
        measured.start,
        measured.end,
        measured.scenario.limit.window(),
    );
    let (mut worst, mut broken) = (None, Vec::new());
    for fault in measured.faults_of(Action::KillNode) {
        let Some(window) = windows.iter().find(|span| is_in(fault.from, **span)) else {
            continue;
        };
        let got = touching(&measured.judged, *window);
        let twin = inside(&measured.twin, *window);
        let lost = limit.min(twin).saturating_sub(got);
        worst = worst.max(Some(lost));
        if lost > bound {
            let when = at(fault.from, measured.start);
            broken.push(format!("kill at {when}: {got} allowed, strict {twin}"));
        }
    }
    match worst {
        None => Finding::nothing(promise, "no kill in a full window"),
        Some(worst) => Finding::new(promise, format!("at most {worst}"), broken),
    }
}

/// The first full window after an outage allows a percentage of the limit, less the overshoot still owed.
pub(super) fn first_window(measured: &Measured<'_>, percent: f64) -> Finding {
    let limit = &measured.scenario.limit;
    let promise = format!("{percent} % of the limit in the first window after");
    let window = limit.window();
    let (mut texts, mut broken) = (Vec::new(), Vec::new());
    for fault in measured.outages() {
        let Some(span) = windows(fault.to, measured.end, window).into_iter().next() else {
            continue;
        };
        // What the two windows before had above the limit may be owed still.
        let before = (1..=2).map(|back| (span.0 - back * window, span.1 - back * window));
        let over = before.map(|span| touching(&measured.judged, span).saturating_sub(limit.limit));
        let owed: u64 = over.sum();
        let got = touching(&measured.judged, span);
        let needed = percent / 100.0 * limit.limit.saturating_sub(owed) as f64;
        texts.push(format!("{got} of {} ({owed} owed)", limit.limit));
        if (got as f64) < needed {
            let when = at(span.0, measured.start);
            broken.push(format!("window at {when}: {got}, needed {needed:.0}"));
        }
    }
    if texts.is_empty() {
        return Finding::nothing(promise, "no full window after an outage");
    }
    Finding::new(promise, texts.join(", "), broken)
}

/// Each node's overshoot metric is that of an outside count, within a percentage of the limit. A window that ended at
/// least one window before Redis was back may be missing: nodes forget it before they exchange it.
pub(super) fn overshoot(measured: &Measured<'_>, percent: f64) -> Finding {
    let limit = &measured.scenario.limit;
    let spans = windows(measured.start, measured.end, limit.window());
    let over = |count: u64| count.saturating_sub(limit.limit) as f64;
    let is_forgotten = |span: &(u64, u64)| {
        let has_ended = |from, to| from < span.1 && span.1 + limit.window() <= to;
        measured.outages().any(|it| has_ended(it.from, it.to))
    };
    let least: f64 = spans
        .iter()
        .filter(|span| !is_forgotten(span))
        .map(|span| over(inside(&measured.judged, *span)))
        .sum();
    let most: f64 = spans
        .iter()
        .map(|span| over(touching(&measured.judged, *span)))
        .sum();
    let tolerance = percent / 100.0 * limit.limit as f64;
    let told: Vec<String> = measured
        .overshoot
        .iter()
        .map(|told| format!("{told:.0}"))
        .collect();
    let is_wrong = |told: &f64| *told > most + tolerance || *told < least - tolerance;
    let mut broken = Vec::new();
    if measured.overshoot.iter().any(is_wrong) {
        broken.push(format!(
            "nodes told {}, counted outside {least:.0} to {most:.0}",
            told.join(" ")
        ));
    }
    Finding::new(
        format!("overshoot metric within {percent} % of the limit"),
        format!("{} (outside: {least:.0} to {most:.0})", told.join(" ")),
        broken,
    )
}

/// The degraded answers of an outage end soon after it, and few come later.
///
/// A recovery lasts from the end of the outage to the last degraded answer before the first 200 ms without one. Allowed
/// after it are single degraded answers of other causes, which `degraded` judges: at most one in a hundred of all
/// answers until the next outage. If there are more, Redis was not back, and the recovery lasts to the last of them.
/// So a breaker that opens again for 100 ms in 10 s is not found, one that opens for a second in 10 s is.
pub(super) fn recovery(measured: &Measured<'_>, millis: f64) -> Finding {
    let promise = format!("Redis is used again within {millis} ms");
    let mut faults: Vec<_> = measured.outages().collect();
    faults.sort_by_key(|fault| fault.from);
    let (mut worst, mut n_later, mut broken): (f64, _, _) = (0.0, 0, Vec::new());
    for (place, fault) in faults.iter().enumerate() {
        let until = faults.get(place + 1).map_or(measured.end, |next| next.from);
        let all = measured.judged.iter().chain(&measured.twin);
        let after: Vec<&Record> = all.filter(|it| is_in(it.sent, (fault.to, until))).collect();
        let degraded = after.iter().filter(|record| record.is_degraded);
        let mut delays: Vec<u64> = degraded.map(|record| record.sent - fault.to).collect();
        delays.sort_unstable();
        let mut last = 0;
        let in_time = delays.iter().take_while(|delay| {
            let is_next = **delay - last <= PAUSE;
            last = if is_next { **delay } else { last };
            is_next
        });
        let n_at_first = in_time.count();
        let later = delays.len() - n_at_first;
        n_later += later;
        if later as f64 > DEGRADED_SHARE * after.len() as f64 {
            last = delays.last().copied().unwrap_or(last);
        }
        let late = last as f64 / 1e3;
        worst = worst.max(late);
        if late > millis {
            let when = at(fault.to, measured.start);
            let all: Vec<String> = delays.iter().map(|it| (it / 1_000).to_string()).collect();
            broken.push(format!(
                "outage that ended at {when}: degraded answers after {} ms",
                all.join(" ")
            ));
        }
    }
    if faults.is_empty() {
        return Finding::nothing(promise, "no outage");
    }
    let text = format!("after {worst:.0} ms, {n_later} single degraded answers later");
    Finding::new(promise, text, broken)
}

/// The median of what one stall costs: from the first to the last degraded answer.
pub(super) fn stall_cost(measured: &Measured<'_>, millis: f64) -> Finding {
    let promise = format!("a stall degrades answers for at most {millis} ms (median)");
    let mut costs: Vec<f64> = Vec::new();
    let faults: Vec<_> = measured.outages().collect();
    for (place, fault) in faults.iter().enumerate() {
        let until = faults.get(place + 1).map_or(measured.end, |next| next.from);
        let hit = |record: &&Record| record.is_degraded && is_in(record.sent, (fault.from, until));
        let hits = measured.judged.iter().filter(hit);
        let mut hits: Vec<u64> = hits.map(|record| record.received).collect();
        hits.sort_unstable();
        // What comes later than a pause is of another cause.
        let pause = hits.windows(2).position(|two| two[1] - two[0] > PAUSE);
        let last = hits.get(pause.unwrap_or(hits.len().saturating_sub(1)));
        let cost = last
            .zip(hits.first())
            .map_or(0, |(last, first)| last - first);
        costs.push(cost as f64 / 1e3);
    }
    costs.sort_by(f64::total_cmp);
    let Some(median) = costs.get(costs.len() / 2).copied() else {
        return Finding::nothing(promise, "no stall");
    };
    let all: Vec<String> = costs.iter().map(|cost| format!("{cost:.0}")).collect();
    let mut broken = Vec::new();
    if median > millis {
        broken.push(format!("milliseconds of each stall: {}", all.join(" ")));
    }
    let text = format!("median {median:.0} ms of {} stalls", costs.len());
    Finding::new(promise, text, broken)
}

/// In an outage nobody waits long: until the breaker is open not longer than a call to Redis may take, afterwards not
/// for Redis at all.
///
/// A machine may be busy: one answer in a hundred may take longer, and the breaker has a second to open. After that, 99
/// of a hundred answers take at most a quarter of the time, which a node that still calls Redis does not reach. That a
/// request waits for one timeout and not for two is held in virtual time (`crates/share/tests/leases/stalls.rs`); what an
/// open breaker costs is judged by `memory_gap`.
pub(super) fn longest_wait(measured: &Measured<'_>, millis: f64) -> Finding {
    let later = millis / 4.0;
    let promise = format!("in an outage p99 at most {millis} ms, after a second {later:.0} ms");
    let all = waits_in_outages(measured, 0, &|_| true);
    let Some((p99, longest)) = p99_of(&all).zip(all.last()) else {
        return Finding::nothing(promise, "no answer in an outage");
    };
    // An outage of less than a second has none.
    let settled = p99_of(&waits_in_outages(measured, SETTLED, &|_| true)).unwrap_or(0.0);
    let longest = *longest as f64 / 1e3;
    let text =
        format!("p99 {p99:.1} ms, longest {longest:.1} ms; after a second p99 {settled:.1} ms");
    let is_broken = p99 > millis || settled > later;
    let broken = if is_broken {
        vec![text.clone()]
    } else {
        Vec::new()
    };
    Finding::new(promise, text, broken)
}

/// Once the breaker is open, nodes answer as fast as one that has no Redis: the last one of the fleet.
pub(super) fn memory_gap(measured: &Measured<'_>, millis: f64) -> Finding {
    let promise = format!("p99 at most {millis} ms above `store: memory` while Redis is away");
    let p99 = |is_it: &dyn Fn(usize) -> bool| p99_of(&waits_in_outages(measured, SETTLED, is_it));
    let memory = measured.nodes - 1;
    let of_both = p99(&|node| node < memory).zip(p99(&|node| node == memory));
    let Some((redis, memory)) = of_both else {
        return Finding::nothing(promise, "no answers of both kinds in an outage");
    };
    let text = format!("p99 {redis:.2} ms, memory {memory:.2} ms");
    let broken = if redis > memory + millis {
        vec![text.clone()]
    } else {
        Vec::new()
    };
    Finding::new(promise, text, broken)
}

/// The window of a failover has at most what is allowed in a few milliseconds above the limit.
pub(super) fn failover_loss(measured: &Measured<'_>, millis: f64) -> Finding {
    let limit = &measured.scenario.limit;
    let window = limit.window();
    let promise = format!("a failover allows at most {millis} ms of traffic twice (median)");
    let mut losses = Vec::new();
    for fault in measured.faults_of(Action::FailOver) {
        let start = fault.from / window * window;
        let spans = (0..2).map(|later| (start + later * window, start + (later + 1) * window));
        let over = spans.map(|span| inside(&measured.judged, span).saturating_sub(limit.limit));
        let over: u64 = over.sum();
        let lately = (fault.from.saturating_sub(1_000_000), fault.from);
        let rate = inside(&measured.judged, lately).max(1) as f64;
        losses.push(1e3 * over as f64 / rate);
    }
    losses.sort_by(f64::total_cmp);
    let Some(median) = losses.get(losses.len() / 2).copied() else {
        return Finding::nothing(promise, "no failover");
    };
    let all: Vec<String> = losses.iter().map(|loss| format!("{loss:.0}")).collect();
    let mut broken = Vec::new();
    if median > millis {
        broken.push(format!("milliseconds of each failover: {}", all.join(" ")));
    }
    let text = format!("median {median:.0} ms of {} failovers", losses.len());
    Finding::new(promise, text, broken)
}

/// How long answers of some nodes took in outages, from `delay` after each began; the longest last.
fn waits_in_outages(
    measured: &Measured<'_>,
    delay: u64,
    is_of_node: &dyn Fn(usize) -> bool,
) -> Vec<u64> {
    let spans = measured
        .outages()
        .map(|fault| (fault.from + delay, fault.to));
    let spans: Vec<(u64, u64)> = spans.collect();
    let records = measured
        .judged
        .iter()
        .filter(|record| is_of_node(record.node));
    let sent = records.filter(|record| spans.iter().any(|span| is_in(record.sent, *span)));
    let mut waits: Vec<u64> = sent.map(|record| record.received - record.sent).collect();
    waits.sort_unstable();
    waits
}

/// The time in milliseconds that 99 of a hundred waits do not exceed.
fn p99_of(waits: &[u64]) -> Option<f64> {
    waits
        .get(waits.len() * 99 / 100)
        .map(|wait| *wait as f64 / 1e3)
}

fn is_in(time: u64, (from, to): (u64, u64)) -> bool {
    time >= from && time < to
}
