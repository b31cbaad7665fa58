//! The table of promise against measurement.

use std::fmt::{self, Write as _};

use crate::fleet::ScenarioReport;
use crate::judge::Verdict;

/// As many places of a broken promise are printed.
const MOST_DETAILS: usize = 6;

/// One line for each judge, and below it where its promise was broken.
pub fn print(report: &ScenarioReport) {
    println!(
        "  {} ({}; {} requests, {:.2} % degraded)",
        report.name, report.subject, report.requests, report.degraded
    );
    for finding in &report.findings {
        let verdict = match &finding.verdict {
            Verdict::Kept => "ok     ".to_owned(),
            Verdict::Broken => "BROKEN ".to_owned(),
            Verdict::Invalid(reason) => format!("INVALID ({reason}) "),
        };
        println!("    {verdict} {}: {}", finding.promise, finding.measured);
        if finding.verdict != Verdict::Kept {
            for detail in finding.details.iter().take(MOST_DETAILS) {
                println!("            {detail}");
            }
            let more = finding.details.len().saturating_sub(MOST_DETAILS);
            if more > 0 {
                println!("            and {more} more");
            }
        }
    }
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
}

/// Counts the promises of several scenarios.
pub fn count(reports: &[ScenarioReport]) -> PromiseCount {
    let all = || reports.iter().flat_map(|report| &report.findings);
    let count = |is_it: fn(&Verdict) -> bool| all().filter(|f| is_it(&f.verdict)).count();
    PromiseCount {
        kept: count(|verdict| *verdict == Verdict::Kept),
        broken: count(|verdict| *verdict == Verdict::Broken),
        invalid: count(|verdict| matches!(verdict, Verdict::Invalid(_))),
    }
}

// === impl PromiseCount ===

impl PromiseCount {
    /// Whether all were measured and kept.
    pub fn is_all_kept(self) -> bool {
        self.broken == 0 && self.invalid == 0
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
        } = self;
        write!(
            f,
            "{kept} promises kept, {broken} broken, {invalid} not measured"
        )
    }
}
