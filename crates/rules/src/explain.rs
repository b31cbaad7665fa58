//! A match in words: the path the matcher took, what applies and why, and what was not chosen.

use std::fmt::Write as _;

use crate::findings::clean;
use crate::limit::{Limit, Terms};
use crate::rule::{Rule, RuleMode};
use crate::rule_set::{Domain, Entry};
use crate::style::{Color, Paint};
use crate::trace::{Candidate, Ending, Fate, Rank, Step, Trace};

/// How many candidates that do not match are listed at a level.
const MAX_MISSES: usize = 8;

/// What else is to be said about a limit, a line each.
pub type Remarks<'r> = &'r dyn Fn(&Limit) -> Vec<String>;

/// Explains what `domain` does with `descriptor`, as lines of text.
pub fn render(
    domain: &Domain,
    descriptor: &[Entry<'_>],
    remarks: Remarks<'_>,
    color: Color,
) -> String {
    let trace = domain.trace(descriptor);
    let mut lines = vec![format!(
        "domain {}, descriptor {}",
        color.paint(Paint::Strong, &clean(domain.name())),
        color.paint(Paint::Strong, &spell(descriptor)),
    )];
    for step in &trace.steps {
        lines.push(String::new());
        explain_step(step, color, &mut lines);
    }
    lines.push(String::new());
    explain_ending(&trace, descriptor, remarks, color, &mut lines);
    lines.push(String::new());
    lines.join("\n")
}

fn explain_step(step: &Step<'_>, color: Color, lines: &mut Vec<String>) {
    lines.push(spell(&[step.entry]));
    let width = step
        .candidates
        .iter()
        .map(|it| it.label.chars().count())
        .max()
        .unwrap_or(0);
    let winner = step.candidates.iter().find(|it| it.fate == Fate::Chosen);
    let mut misses = 0;
    for candidate in &step.candidates {
        if candidate.fate == Fate::NoMatch {
            misses += 1;
            if misses > MAX_MISSES {
                continue;
            }
        }
        lines.push(explain_candidate(candidate, winner, width, color));
    }
    if misses > MAX_MISSES {
        lines.push(format!(
            "  … and {} more that do not match",
            misses - MAX_MISSES
        ));
    }
    if step.candidates.is_empty() {
        lines.push(format!(
            "  no rule of this level has the key `{}`",
            clean(step.entry.key)
        ));
    }
    match step.other_keys {
        0 => {}
        1 => lines.push(color.paint(Paint::Faint, "  1 other key is not asked for")),
        count => {
            lines.push(color.paint(
                Paint::Faint,
                &format!("  {count} other keys are not asked for"),
            ));
        }
    }
}

fn explain_candidate(
    candidate: &Candidate<'_>,
    winner: Option<&Candidate<'_>>,
    width: usize,
    color: Color,
) -> String {
    let label = format!("{:width$}", candidate.label);
    let how = match candidate.rank {
        Rank::Exact => "the exact value",
        Rank::Pattern => "a pattern",
        Rank::BareKey => "the bare key, any value",
    };
    match (candidate.fate, winner) {
        (Fate::Chosen, _) => {
            format!("  {} {label}  chosen: {how}", color.paint(Paint::Good, "✓"))
        }
        (Fate::Outranked, Some(winner)) => {
            let why = match (winner.rank, candidate.rank) {
                (Rank::Pattern, Rank::Pattern) => "stands earlier in the file",
                (Rank::Exact, _) => "has the exact value, which goes first",
                (_, _) => "is a pattern, which goes before the bare key",
            };
            format!("  · {label}  matches, but `{}` {why}", winner.label)
        }
        (Fate::Outranked | Fate::NoMatch, _) => {
            color.paint(Paint::Faint, &format!("  · {label}  does not match"))
        }
    }
}

fn explain_ending(
    trace: &Trace<'_>,
    descriptor: &[Entry<'_>],
    remarks: Remarks<'_>,
    color: Color,
    lines: &mut Vec<String>,
) {
    let nothing = color.paint(Paint::Warning, "no limit applies");
    let why = match trace.ending {
        Ending::Rule(rule) => return explain_rule(rule, descriptor, remarks, color, lines),
        Ending::NoLimitHere => {
            "the descriptor ends at a rule that has rules below it, but no limit of its own"
        }
        Ending::NoMatch if trace.steps.len() == 1 => "no rule matches",
        Ending::NoMatch => {
            "no rule of the last level above matches, and a choice made before is never taken back"
        }
        Ending::TooDeep => {
            "the descriptor has more entries than the rules have levels; \
             a limit applies only where the last entry ends"
        }
        Ending::Empty => "the descriptor has no entries",
    };
    lines.push(format!("{nothing}: {why}"));
}

fn explain_rule(
    rule: &Rule,
    descriptor: &[Entry<'_>],
    remarks: Remarks<'_>,
    color: Color,
    lines: &mut Vec<String>,
) {
    let location = rule.location();
    lines.push(format!(
        "rule {} at {}:{}:{}",
        color.paint(Paint::Strong, &format!("`{}`", rule.path())),
        location.file,
        location.line,
        location.column,
    ));
    if rule.limits().is_empty() {
        lines.push("  allow-list entry: it has no limit, so the request passes".to_owned());
        return;
    }
    let is_unlimited = |limit: &Limit| matches!(limit.terms(), Terms::Unlimited);
    if !rule.limits().iter().all(is_unlimited) {
        lines.push(format!("  {}", explain_counters(rule, descriptor)));
    }
    match rule.mode() {
        RuleMode::Enforce => {}
        RuleMode::Quota => lines.push(
            "  quota mode: refuses only if every quota rule of the request refuses".to_owned(),
        ),
        RuleMode::Shadow => {
            lines.push("  shadow mode: counts, but never refuses".to_owned());
        }
    }
    if rule.limits().len() > 1 {
        lines.push("  all of its limits apply at once:".to_owned());
    }
    for limit in rule.limits() {
        explain_limit(limit, color, lines);
        let remarks = remarks(limit).into_iter();
        lines.extend(remarks.map(|remark| format!("    {remark}")));
    }
}

fn explain_counters(rule: &Rule, descriptor: &[Entry<'_>]) -> String {
    let keys: Vec<_> = rule
        .counted_values()
        .iter()
        .filter_map(|at| descriptor.get(*at))
        .map(|entry| format!("`{}`", clean(entry.key)))
        .collect();
    if keys.is_empty() {
        "one counter for all requests that match".to_owned()
    } else {
        format!("a counter for each value of {}", keys.join(" and "))
    }
}

fn explain_limit(limit: &Limit, color: Color, lines: &mut Vec<String>) {
    let mut head = format!("  {}", color.paint(Paint::Strong, limit.description()));
    if let Some(name) = limit.name() {
        // Writing to a string cannot fail.
        let _ = write!(head, ", named `{}`", clean(name));
    }
    lines.push(head);
    match limit.terms() {
        Terms::Unlimited => lines.push("    admits everything and counts nothing".to_owned()),
        Terms::Quota(quota) => lines.push(format!("    {}", quota.promise())),
    }
    if let Some(statuses) = limit.counts_status() {
        lines.push(format!(
            "    counts only responses with status {statuses}: in the gateway, which refunds the others; \
             elsewhere every request counts"
        ));
    }
    if limit.is_hidden() {
        lines.push("    hidden: headers and bodies do not tell of it".to_owned());
    }
    if !limit.replaces().is_empty() {
        let names: Vec<_> = limit
            .replaces()
            .iter()
            .map(|name| format!("`{}`", clean(name)))
            .collect();
        let names = names.join(" and ");
        lines.push(format!("    puts {names} out of force in the same request"));
    }
}

/// The entries as the command line takes them: `a=b,c=d`.
fn spell(descriptor: &[Entry<'_>]) -> String {
    let entries = descriptor
        .iter()
        .map(|entry| format!("{}={}", entry.key, entry.value));
    clean(&entries.collect::<Vec<_>>().join(","))
}
