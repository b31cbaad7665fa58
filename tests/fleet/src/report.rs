//! The table of promise against measurement.

use std::fmt::{self, Write as _};

use crate::fleet::ScenarioReport;
use crate::judge::{Finding, Verdict};
use crate::scenario::FleetSpec;

/// As many places of a broken promise are printed.
const MOST_DETAILS: usize = 6;

/// The results of a fleet: one line for each judge, and below it where its promise was broken.
pub fn text(spec: &FleetSpec, reports: &[ScenarioReport]) -> String {
    let mut text = format!("\n{}", spec.describe());
    for report in reports {
        let _ = write!(
            text,
            "\n  {} ({}; {} requests, {:.2} % degraded)",
            report.name, report.subject, report.requests, report.degraded
        );
        for finding in &report.findings {
            write_finding(&mut text, finding);
        }
    }
    text
}

fn write_finding(text: &mut String, finding: &Finding) {
    let verdict = match &finding.verdict {
        Verdict::Kept => "ok     ".to_owned(),
        Verdict::Broken => "BROKEN ".to_owned(),
        Verdict::Invalid(reason) => format!("INVALID ({reason}) "),
    };
    let (promise, measured) = (&finding.promise, &finding.measured);
    let _ = write!(text, "\n    {verdict} {promise}: {measured}");
    if finding.verdict != Verdict::Kept {
        for detail in finding.details.iter().take(MOST_DETAILS) {
            let _ = write!(text, "\n            {detail}");
        }
        let more = finding.details.len().saturating_sub(MOST_DETAILS);
        if more > 0 {
            let _ = write!(text, "\n            and {more} more");
        }
    }
}

/// Joins the reports of several runs of one fleet, which are about the same scenarios.
pub fn join_runs(mut runs: Vec<Vec<ScenarioReport>>) -> Vec<ScenarioReport> {
    let Some(mut joined) = runs.pop() else {
        return Vec::new();
    };
    if runs.is_empty() {
        return joined;
    }
    for (place, report) in joined.iter_mut().enumerate() {
        let of_runs = || runs.iter().filter_map(|run| run.get(place));
        let mut degraded: Vec<f64> = of_runs().map(|run| run.degraded).collect();
        degraded.push(report.degraded);
        degraded.sort_by(f64::total_cmp);
        report.degraded = degraded[degraded.len() / 2];
        report.requests += of_runs().map(|run| run.requests).sum::<usize>();
        for (judge, finding) in report.findings.iter_mut().enumerate() {
            let others = of_runs().filter_map(|run| run.findings.get(judge));
            let all: Vec<Finding> = others.chain([&*finding]).cloned().collect();
            *finding = Finding::of_runs(&all);
        }
    }
    joined
}

/// How the table begins.
pub const TABLE_HEAD: &str =
    "| scenario | limit | promise | measured | kept | degraded |\n|---|---|---|---|---|---|\n";

/// The table in Markdown.
pub fn table(reports: &[ScenarioReport]) -> String {
    let mut text = TABLE_HEAD.to_owned();
    for report in reports {
        for finding in &report.findings {
            let kept = match &finding.verdict {
                Verdict::Kept => "yes".to_owned(),
                Verdict::Broken => "**no**".to_owned(),
                Verdict::Invalid(reason) => format!("**not measured**: {reason}"),
            };
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {kept} | {:.2} % |",
                report.name, report.subject, finding.promise, finding.measured, report.degraded
            );
        }
    }
    text
}

/// How many promises were kept, broken, and not measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromiseCount {
    kept: usize,
    broken: usize,
    invalid: usize,
    too_many: usize,
}

/// Counts the promises of several scenarios.
pub fn count(reports: &[ScenarioReport]) -> PromiseCount {
    let all = || reports.iter().flat_map(|report| &report.findings);
    let count = |is_it: fn(&Verdict) -> bool| all().filter(|f| is_it(&f.verdict)).count();
    PromiseCount {
        kept: count(|verdict| *verdict == Verdict::Kept),
        broken: count(|verdict| *verdict == Verdict::Broken),
        invalid: count(|verdict| matches!(verdict, Verdict::Invalid(_))),
        too_many: all().filter(|finding| finding.has_too_many()).count(),
    }
}

// === impl PromiseCount ===

impl PromiseCount {
    /// Whether all were measured and kept.
    pub fn is_all_kept(self) -> bool {
        self.broken == 0 && self.invalid == 0
    }

    /// Whether a promise was broken.
    pub fn has_broken(self) -> bool {
        self.broken > 0
    }

    /// Whether a window had too many.
    pub fn has_too_many(self) -> bool {
        self.too_many > 0
    }

    /// Whether noise kept any from being measured.
    pub fn has_invalid(self) -> bool {
        self.invalid > 0
    }
}

impl fmt::Display for PromiseCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kept,
            broken,
            invalid,
            ..
        } = self;
        write!(
            f,
            "{kept} promises kept, {broken} broken, {invalid} not measured"
        )
    }
}
