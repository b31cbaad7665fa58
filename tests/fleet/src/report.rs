//! The table of promise against measurement.

use std::fmt::Write as _;

use crate::fleet::ScenarioReport;
use crate::judge::Verdict;

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
            for detail in &finding.details {
                println!("            {detail}");
            }
        }
    }
}

/// The table in Markdown.
pub fn table(reports: &[ScenarioReport]) -> String {
    let mut text = String::from(
        "| scenario | limit | promise | measured | kept | degraded |\n|---|---|---|---|---|---|\n",
    );
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
pub fn count(reports: &[ScenarioReport]) -> (usize, usize, usize) {
    let all = || reports.iter().flat_map(|report| &report.findings);
    let count = |is_it: fn(&Verdict) -> bool| all().filter(|f| is_it(&f.verdict)).count();
    (
        count(|verdict| *verdict == Verdict::Kept),
        count(|verdict| *verdict == Verdict::Broken),
        count(|verdict| matches!(verdict, Verdict::Invalid(_))),
    )
}
