//! What callers are told: `remaining` and `retry_after`.

use super::count::{at, touching};
use super::{Finding, Measured};
use crate::clock::SECOND;
use crate::probe::Trial;
use crate::record::Record;

/// As many answers are looked at.
const SAMPLES: usize = 2_000;

/// The share of answers, and of waits, that may be wrong.
const WRONG_SHARE: f64 = 0.01;

/// What all nodes allow in this time may be missing from `remaining`.
const DELAY: u64 = 300_000;

/// `remaining` against the limit less all that was allowed so far.
pub(super) fn remaining(measured: &Measured<'_>) -> Finding {
    let limit = &measured.scenario.limit;
    let is_long = limit.window() >= 10 * SECOND;
    let promise = if is_long {
        "`remaining` within 10 % of the limit or two"
    } else {
        "`remaining` within what is allowed in 300 ms"
    };
    let told = answers(measured, is_long);
    if told.is_empty() {
        return Finding::nothing(promise.to_owned(), "no answer told it");
    }
    let step = told.len().div_ceil(SAMPLES);
    let (mut wrong, mut worst, mut broken) = (0, 0, Vec::new());
    let samples: Vec<_> = told.into_iter().step_by(step).collect();
    for (record, value) in &samples {
        let off = deviation(measured, record, *value);
        let tolerance = if is_long {
            (limit.limit / 10).max(2)
        } else {
            let lately = (record.sent.saturating_sub(DELAY), record.received);
            touching(&measured.judged, lately).max(2)
        };
        worst = worst.max(off);
        if off > tolerance || *value > limit.capacity() {
            wrong += 1;
            if broken.len() < 3 {
                let when = at(record.sent, measured.start);
                let node = record.node;
                broken.push(format!("node {node} at {when}: told {value}, off by {off}"));
            }
        }
    }
    let share = 100.0 * f64::from(wrong) / samples.len() as f64;
    let text = format!("off by up to {worst}, {share:.1} % outside");
    if share <= 100.0 * WRONG_SHARE {
        broken.clear();
    }
    Finding::new(promise.to_owned(), text, broken)
}

/// The answers that told `remaining`; with `is_long` only of nodes that were asked in the second before.
fn answers<'a>(measured: &'a Measured<'_>, is_long: bool) -> Vec<(&'a Record, u64)> {
    let from = measured.judged_from();
    let mut last = vec![0; measured.nodes];
    let mut told = Vec::new();
    for record in &measured.judged {
        let is_recent = record.sent.saturating_sub(last[record.node]) < SECOND;
        last[record.node] = record.sent;
        let Some(value) = record.remaining else {
            continue;
        };
        let counts = record.sent >= from && !record.is_degraded && (is_recent || !is_long);
        if counts && !crosses_edge(measured, record) {
            told.push((record, value));
        }
    }
    told
}

fn crosses_edge(measured: &Measured<'_>, record: &Record) -> bool {
    let window = measured.scenario.limit.window();
    measured.scenario.limit.resets_at_edges() && record.sent / window != record.received / window
}

/// How far a value is from what it can be, by all that was allowed and may have been allowed before.
fn deviation(measured: &Measured<'_>, record: &Record, value: u64) -> u64 {
    let limit = &measured.scenario.limit;
    let window = limit.window();
    // From when on permits count: surely, and perhaps.
    let (surely, perhaps) = if limit.resets_at_edges() {
        let edge = record.sent / window * window;
        (edge, edge)
    } else {
        (record.received - window, record.sent - window)
    };
    let counted = |is_counted: &dyn Fn(&Record) -> bool| {
        let earliest = perhaps.saturating_sub(6 * SECOND);
        let first = measured
            .judged
            .partition_point(|other| other.sent < earliest);
        let others = measured.judged[first..].iter();
        let others = others.take_while(|other| other.sent <= record.received);
        let others = others.filter(|other| is_counted(other));
        others.map(Record::taken).sum::<u64>()
    };
    let least_used = counted(&|other| other.sent >= surely && other.received <= record.sent);
    let most_used = counted(&|other| other.received >= perhaps);
    let highest = limit.limit.saturating_sub(least_used);
    let lowest = limit.limit.saturating_sub(most_used);
    value.saturating_sub(highest) + lowest.saturating_sub(value)
}

/// Waits that were told: who waits that long is allowed, and nobody is told far more than is needed.
pub(super) fn retry(measured: &Measured<'_>) -> Finding {
    let promise = "allowed after `retry_after`, which is at most twice the need and a second";
    let Some(valid) = measured.valid_probes() else {
        let reason = "too few callers whose answers were not degraded";
        return Finding::nothing(promise.to_owned(), reason);
    };
    let (mut waits, mut early, mut polls, mut late) = (0, 0, 0, 0);
    let mut broken = Vec::new();
    for probe in &valid {
        let told = seconds(probe.told);
        match probe.trial {
            Trial::Waited { is_allowed } => {
                waits += 1;
                if !is_allowed {
                    early += 1;
                    broken.push(format!("denied again after the {told:.3} s it was told"));
                }
            }
            Trial::Polled { allowed_after } => {
                polls += 1;
                if probe.told > 2 * allowed_after + SECOND {
                    late += 1;
                    let after = seconds(allowed_after);
                    broken.push(format!("told {told:.3} s, allowed after {after:.3} s"));
                }
            }
            // The wait that it was told may be true: none of its requests was allowed sooner.
            Trial::PolledInVain => polls += 1,
        }
    }
    let text = format!("{early} of {waits} waits too short, {late} of {polls} too long");
    let few = |wrong: usize, all: usize| wrong as f64 <= WRONG_SHARE * all as f64;
    if few(early, waits) && late == 0 {
        broken.clear();
    }
    broken.truncate(5);
    Finding::new(promise.to_owned(), text, broken)
}

fn seconds(micros: u64) -> f64 {
    micros as f64 / SECOND as f64
}
