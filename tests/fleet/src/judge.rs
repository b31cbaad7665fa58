//! Judges: each compares one promise with what was measured.

mod callers;
mod count;
mod estimate;
mod outage;
mod over;
mod usage;

#[cfg(test)]
mod tests;

use serde::Deserialize;

use crate::clock::micros;
use crate::fault::{Action, FaultSpan};
use crate::probe::ProbeResult;
use crate::record::{Outcome, Record};
use crate::scenario::Scenario;

/// What is judged.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Judge {
    /// No window has more than the limit, a bucket no more than its bound.
    NeverOver,
    /// So many percent of what the twin allows, in the mean.
    Use(f64),
    /// So many percent of what the twin allows, in every single window.
    EveryWindow(f64),
    /// Each window allows all but so many of the limit's permits.
    AllBut(u64),
    /// In all as much as the twin allows, within so many percent either way.
    AsStrict(f64),
    /// The window of each grant and refund allows so many percent of the limit and what was given back.
    Given(f64),
    /// So many percent of a bucket's burst.
    Burst(f64),
    /// Honest callers get what the twin gives them, within so many percent.
    Honest(f64),
    /// `remaining` is right within the tolerance of the window's length.
    Remaining,
    /// `retry_after` is neither too early nor far too late.
    Retry,
    /// The first denial comes after all but so many permits.
    FirstDenial(u64),
    /// At most so many percent of the answers are degraded.
    Degraded(f64),
    /// The window of a kill loses at most so many percent of the limit, and two permits.
    KillCost(f64),
    /// No window has more than so many times the limit, degraded answers included.
    OutageBound(f64),
    /// The first full window after an outage allows so many percent of the limit, less the overshoot.
    FirstWindow(f64),
    /// The nodes' overshoot metric is right within so many percent of the limit.
    Overshoot(f64),
    /// From so many seconds after traffic moved on, windows allow so many percent of the limit.
    Follows {
        /// When traffic moves, in seconds.
        moved: f64,
        /// How long the nodes have, in seconds.
        within: f64,
        /// Percent of the limit.
        percent: f64,
    },
    /// Degraded answers end at most so many milliseconds after an outage.
    Recovery(f64),
    /// From the first to the last degraded answer of a stall at most so many milliseconds pass.
    StallCost(f64),
    /// In an outage 99 of a hundred answers take at most so many milliseconds, after a second a quarter of that.
    LongestWait(f64),
    /// From a second after an outage began, p99 is at most so many milliseconds above that of the node without Redis.
    MemoryGap(f64),
    /// A failover allows at most what is allowed in so many milliseconds above the limit.
    FailoverLoss(f64),
    /// At most so many calls to Redis a second and node.
    RedisCalls(f64),
}

/// What was measured of one scenario.
#[derive(Debug)]
pub struct Measured<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// How many nodes there are.
    pub nodes: usize,
    /// When traffic began.
    pub start: u64,
    /// When it ended.
    pub end: u64,
    /// The requests to the judged limit, by the time they were sent.
    pub judged: Vec<Record>,
    /// The requests to the strict twin.
    pub twin: Vec<Record>,
    /// What happened to the fleet.
    pub faults: Vec<FaultSpan>,
    /// What callers found that stop at a denial.
    pub probes: Vec<ProbeResult>,
    /// How much each node's overshoot metric grew.
    pub overshoot: Vec<f64>,
    /// Scripts that Redis ran.
    pub script_calls: u64,
}

/// What a judge found.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The promise, in a few words.
    pub promise: String,
    /// The measurement, in a few words.
    pub measured: String,
    /// Whether it was kept.
    pub verdict: Verdict,
    /// Where it was broken: which window, how many.
    pub details: Vec<String>,
    /// Whether it has to be kept in every run of a fleet, not only in the median of them.
    pub is_for_every_run: bool,
}

/// Whether a promise was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was.
    Kept,
    /// It was not.
    Broken,
    /// Nothing can be said, because the machine or the harness was too busy. Counts as a failure.
    Invalid(String),
}

/// The share of requests that may be sent late before a run is worth nothing.
const LATE_SHARE: f64 = 0.05;

/// A request is late if it is sent so long after its time.
const LATE: u64 = 250_000;

/// The share of degraded answers, without an outage, that makes other judgements worth nothing.
const DEGRADED_SHARE: f64 = 0.01;

/// A busy Redis that uses less of a processor is not busy.
const LOAD: f64 = 0.88;

// === impl Judge ===

impl Judge {
    /// Judges.
    pub fn judge(&self, measured: &Measured<'_>) -> Finding {
        let mut finding = match self {
            Self::NeverOver => over::never_over(measured),
            Self::Use(percent) => usage::mean(measured, *percent),
            Self::EveryWindow(percent) => usage::every_window(measured, *percent),
            Self::AllBut(permits) => usage::all_but(measured, *permits),
            Self::AsStrict(percent) => usage::as_strict(measured, *percent),
            Self::Given(percent) => usage::given(measured, *percent),
            Self::Burst(percent) => usage::burst(measured, *percent),
            Self::Honest(percent) => callers::honest(measured, *percent),
            Self::Remaining => estimate::remaining(measured),
            Self::Retry => estimate::retry(measured),
            Self::FirstDenial(permits) => callers::first_denial(measured, *permits),
            Self::Degraded(percent) => callers::degraded(measured, *percent),
            Self::KillCost(percent) => outage::kill_cost(measured, *percent),
            Self::OutageBound(times) => over::outage_bound(measured, *times),
            Self::FirstWindow(percent) => outage::first_window(measured, *percent),
            Self::Overshoot(percent) => outage::overshoot(measured, *percent),
            Self::Follows {
                moved,
                within,
                percent,
            } => usage::follows(measured, *moved, *within, *percent),
            Self::Recovery(millis) => outage::recovery(measured, *millis),
            Self::StallCost(millis) => outage::stall_cost(measured, *millis),
            Self::LongestWait(millis) => outage::longest_wait(measured, *millis),
            Self::MemoryGap(millis) => outage::memory_gap(measured, *millis),
            Self::FailoverLoss(millis) => outage::failover_loss(measured, *millis),
            Self::RedisCalls(rate) => callers::redis_calls(measured, *rate),
        };
        // Too many is too many, however busy the machine was, and however seldom.
        finding.is_for_every_run = matches!(self, Self::NeverOver | Self::OutageBound(_));
        let is_certain = finding.has_too_many();
        if let Some(reason) = measured.is_worthless(self).filter(|_| !is_certain) {
            finding.verdict = Verdict::Invalid(reason);
        }
        finding
    }
}

// === impl Measured ===

impl Measured<'_> {
    /// From when on it is judged.
    pub fn judged_from(&self) -> u64 {
        self.start + micros(self.scenario.warm_up)
    }

    /// The span of each outage of Redis.
    pub fn outages(&self) -> impl Iterator<Item = &FaultSpan> {
        self.faults.iter().filter(|span| span.action.is_outage())
    }

    /// The times in which limits may have more than their number, because Redis is away, or lost something: until a
    /// window later, and three seconds more in which nodes find it again and shares are made.
    fn disturbances(&self) -> impl Iterator<Item = (u64, u64)> {
        let after = self.scenario.limit.window() + micros(3.0);
        let is_one = |action: Action| {
            action.is_outage() || matches!(action, Action::FlushRedis | Action::FailOver)
        };
        let faults = self.faults.iter().filter(move |span| is_one(span.action));
        faults.map(move |span| (span.from, span.to + after))
    }

    /// Whether a span has a part in such a time.
    pub fn is_disturbed(&self, (from, to): (u64, u64)) -> bool {
        let mut disturbances = self.disturbances();
        disturbances.any(|(start, end)| from < end && start < to)
    }

    /// What lies before the first such time, and after the last.
    pub fn undisturbed(&self) -> Vec<(u64, u64)> {
        let first = self.disturbances().map(|(start, _)| start).min();
        let last = self.disturbances().map(|(_, end)| end).max();
        let before = first.map(|first| (self.start, first));
        let after = last.map(|last| (last, self.end));
        let parts = before.into_iter().chain(after);
        parts.filter(|(from, to)| from < to).collect()
    }

    /// The faults of one kind.
    pub fn faults_of(&self, action: Action) -> impl Iterator<Item = &FaultSpan> {
        self.faults.iter().filter(move |span| span.action == action)
    }

    /// By how much reloads have multiplied the limit, at most, in a span. Nodes have two seconds to notice.
    pub fn largest_factor(&self, (from, to): (u64, u64)) -> f64 {
        let mut factors = vec![1.0];
        for span in self.faults_of(Action::Reload) {
            if span.to + micros(2.0) <= from {
                factors.clear();
            }
            if span.from < to {
                factors.push(span.factor);
            }
        }
        factors.into_iter().fold(0.0, f64::max)
    }

    /// How many permits of this limit were given back in a span.
    pub fn given_in(&self, (from, to): (u64, u64)) -> u64 {
        let spans = self
            .faults
            .iter()
            .filter(|span| span.to >= from && span.from <= to);
        let given = spans.filter_map(|span| span.given.as_ref());
        let of_this = given.filter(|(_, name)| *name == self.scenario.name);
        of_this.map(|(hits, _)| hits).sum()
    }

    /// Why nothing can be said, if so.
    fn is_worthless(&self, judge: &Judge) -> Option<String> {
        let all = || self.judged.iter().chain(&self.twin);
        let count = all().count();
        let late = all()
            .filter(|record| record.sent > record.due + LATE)
            .count();
        if count > 0 && late as f64 > LATE_SHARE * count as f64 {
            let percent = 100.0 * late as f64 / count as f64;
            return Some(format!("{percent:.1} % of requests were sent late"));
        }
        let loads = self.faults.iter().filter_map(|span| span.redis_load);
        if let Some(load) = loads.reduce(f64::min).filter(|load| *load < LOAD) {
            return Some(format!("Redis used only {:.0} % of a core", 100.0 * load));
        }
        let is_about_faults = self.outages().next().is_some()
            || self.faults_of(Action::FailOver).next().is_some()
            || matches!(judge, Judge::Degraded(_) | Judge::NeverOver);
        let degraded = all().filter(|record| record.is_degraded).count();
        if !is_about_faults && degraded as f64 > DEGRADED_SHARE * count as f64 {
            let percent = 100.0 * degraded as f64 / count as f64;
            return Some(format!("{percent:.1} % of answers were degraded"));
        }
        None
    }

    /// The share of degraded answers in percent. Of a caller who waits a given time, also those that came too late.
    pub fn degraded_percent(&self) -> f64 {
        let from = self.judged_from();
        let all = self.judged.iter().filter(|record| record.sent >= from);
        let all = all.filter_map(|record| match self.scenario.waits {
            Some(waits) => {
                let is_in_time = record.received <= record.sent + micros(waits);
                Some(record.is_degraded || record.outcome == Outcome::Unanswered || !is_in_time)
            }
            None => (record.outcome != Outcome::Unanswered).then_some(record.is_degraded),
        });
        let probes = self.probes.iter().map(|probe| probe.is_degraded);
        let all: Vec<bool> = all.chain(probes).collect();
        let degraded = all.iter().filter(|is_degraded| **is_degraded).count();
        100.0 * degraded as f64 / all.len().max(1) as f64
    }

    /// What the callers found that stop at a denial, without those that Redis did not answer. None if
    /// too few are left.
    pub fn valid_probes(&self) -> Option<Vec<&ProbeResult>> {
        let valid = self.probes.iter().filter(|probe| !probe.is_degraded);
        let valid: Vec<&ProbeResult> = valid.collect();
        let is_enough = !valid.is_empty() && valid.len() * 2 >= self.probes.len();
        is_enough.then_some(valid)
    }
}

// === impl Finding ===

impl Finding {
    /// A finding; `broken` are the places where the promise was broken.
    pub fn new(promise: String, measured: String, broken: Vec<String>) -> Self {
        let verdict = if broken.is_empty() {
            Verdict::Kept
        } else {
            Verdict::Broken
        };
        Self {
            promise,
            measured,
            verdict,
            details: broken,
            is_for_every_run: false,
        }
    }

    /// A finding that says nothing, because something was not measured.
    pub fn nothing(promise: String, reason: &str) -> Self {
        Self {
            promise,
            measured: "nothing".to_owned(),
            verdict: Verdict::Invalid(reason.to_owned()),
            details: Vec::new(),
            is_for_every_run: false,
        }
    }

    /// Whether it found too many in a window, which no noise excuses.
    pub fn has_too_many(&self) -> bool {
        self.is_for_every_run && self.verdict == Verdict::Broken
    }

    /// What several runs found about one promise, of which there is at least one. It is kept or broken if it was
    /// in more than half of them, which is the same as the median of the measurements; one that has to be kept in
    /// every run is broken if any run broke it.
    pub fn of_runs(runs: &[Self]) -> Self {
        let count =
            |is_it: fn(&Verdict) -> bool| runs.iter().filter(|run| is_it(&run.verdict)).count();
        let kept = count(|verdict| *verdict == Verdict::Kept);
        let broken = count(|verdict| *verdict == Verdict::Broken);
        let is_for_every_run = runs[0].is_for_every_run;
        let (which, needed) = if is_for_every_run {
            ("each", runs.len())
        } else {
            ("median", runs.len() / 2 + 1)
        };
        let invalid = || {
            let mut verdicts = runs.iter().map(|run| &run.verdict);
            verdicts.find(|verdict| matches!(verdict, Verdict::Invalid(_)))
        };
        let verdict = if kept >= needed {
            Verdict::Kept
        } else if broken + needed > runs.len() {
            Verdict::Broken
        } else {
            invalid().cloned().unwrap_or(Verdict::Broken)
        };
        let measured: Vec<&str> = runs.iter().map(|run| run.measured.as_str()).collect();
        Self {
            promise: format!("{} ({which} of {} runs)", runs[0].promise, runs.len()),
            measured: measured.join(" / "),
            verdict,
            details: runs.iter().flat_map(|run| run.details.clone()).collect(),
            is_for_every_run,
        }
    }
}
