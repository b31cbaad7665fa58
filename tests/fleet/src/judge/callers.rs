//! What single callers find.

use std::collections::BTreeMap;

use super::count::{inside, touching};
use super::{Finding, Measured};
use crate::record::{Outcome, Record};
use crate::scenario::Role;

/// Honest callers get what the twin gives them, within a percentage.
pub(super) fn honest(measured: &Measured<'_>, percent: f64) -> Finding {
    let span = (measured.judged_from(), measured.end);
    let of_honest = |records: &[Record]| -> Vec<Record> {
        let honest = records.iter().filter(|record| record.role == Role::Honest);
        honest.cloned().collect()
    };
    let got = touching(&of_honest(&measured.judged), span);
    let twin = inside(&of_honest(&measured.twin), span);
    let reached = 100.0 * got as f64 / twin.max(1) as f64;
    let text = format!("{reached:.1} % ({got} of {twin})");
    let mut broken = Vec::new();
    if reached < 100.0 - percent {
        let step = (span.1 - span.0) / 10;
        let parts = (0..10).map(|part| (span.0 + part * step, span.0 + (part + 1) * step));
        let honest = of_honest(&measured.judged);
        let counts = parts.map(|part| inside(&honest, part).to_string());
        let counts: Vec<String> = counts.collect();
        broken.push(format!("allowed in each tenth: {}", counts.join(" ")));
    }
    let promise = format!("honest callers within {percent} % of strict");
    Finding::new(promise, text, broken)
}

/// The first denial comes after all but a few permits.
pub(super) fn first_denial(measured: &Measured<'_>, permits: u64) -> Finding {
    let capacity = measured.scenario.limit.capacity();
    let promise = format!("first denial after all but {permits} of {capacity}");
    let Some(valid) = measured.valid_probes() else {
        return Finding::nothing(promise, "too few callers whose answers were not degraded");
    };
    let mut counts: Vec<u64> = valid.iter().map(|probe| probe.allowed).collect();
    counts.sort_unstable();
    let (fewest, most) = (counts[0], counts[counts.len() - 1]);
    let early = counts.iter().filter(|count| **count + permits < capacity);
    let early = early.count();
    let mut broken = Vec::new();
    if early > 0 {
        let all: Vec<String> = counts.iter().map(u64::to_string).collect();
        broken.push(format!(
            "{early} of {} callers were denied early; allowed before: {}",
            counts.len(),
            all.join(" ")
        ));
    }
    let text = format!("after {fewest} to {most} ({} callers)", counts.len());
    Finding::new(promise, text, broken)
}

/// At most a percentage of the answers are degraded.
pub(super) fn degraded(measured: &Measured<'_>, percent: f64) -> Finding {
    let share = measured.degraded_percent();
    let mut broken = Vec::new();
    if share > percent {
        // Many in one second are one stall, a few in each are a timeout that is too short.
        let from = measured.judged_from();
        let degraded = measured.judged.iter().filter(|record| record.is_degraded);
        let mut by_second: BTreeMap<u64, u64> = BTreeMap::new();
        for record in degraded.filter(|record| record.sent >= from) {
            let second = (record.sent - measured.start) / 1_000_000;
            *by_second.entry(second).or_default() += 1;
        }
        let counts = by_second.iter();
        let counts = counts.map(|(second, count)| format!("{count} at {second} s"));
        let counts: Vec<String> = counts.collect();
        broken.push(format!("degraded answers: {}", counts.join(", ")));
    }
    let promise = format!("at most {percent} % degraded");
    Finding::new(promise, format!("{share:.2} %"), broken)
}

/// At most so many calls to Redis a second and node.
pub(super) fn redis_calls(measured: &Measured<'_>, rate: f64) -> Finding {
    let seconds = (measured.end - measured.start) as f64 / 1e6;
    let denied = |record: &&Record| record.outcome != Outcome::Allowed;
    let denied = measured.judged.iter().filter(denied).count();
    let calls = measured.script_calls as f64 / seconds / measured.nodes as f64;
    let per_denied = 1e3 * measured.script_calls as f64 / denied.max(1) as f64;
    let text = format!("{calls:.1} a second and node ({per_denied:.0} per 1,000 denied)");
    let mut broken = Vec::new();
    if calls > rate {
        broken.push(text.clone());
    }
    let promise = format!("at most {rate} Redis calls a second and node");
    Finding::new(promise, text, broken)
}
