//! Holds the rules of a domain against each other: duplicates, names, and rules that cannot act.

mod hidden;
mod names;

use std::collections::{HashMap, HashSet};
use std::mem::{Discriminant, discriminant};
use std::time::Duration;

use tidegate_algorithms::Meter;

use crate::code::Code;
use crate::compile::Fit;
use crate::draft::{DraftDomain, DraftRule, DraftTerms, Matcher};
use crate::findings::{Finding, Findings, quote};
use crate::network::Network;
use crate::rule::RuleMode;
use crate::span::Span;

/// The most different windows of one set, each counted once for every algorithm that has it: more
/// than people tell apart, and few enough for a store to keep a table of them. The embedded store
/// tells 1,022 apart, so that there is room for those of an older set.
const MAX_WINDOWS: usize = 512;

/// What a rule takes, for telling duplicates.
#[derive(PartialEq, Eq, Hash)]
enum Taken<'a> {
    Any,
    Value(&'a str),
    Networks(Vec<Network>),
}

/// Reports what two rules of the same set must not do to each other.
pub(crate) fn faults(domains: &[DraftDomain], findings: &mut Findings) {
    let mut windows = HashSet::new();
    for domain in domains {
        each_level(&domain.rules, &mut |siblings| {
            report_duplicates(siblings, findings);
        });
        count_windows(&domain.rules, &mut windows, findings);
    }
}

/// Reports limits that the store the rules are for cannot count.
pub(crate) fn fits(domains: &[DraftDomain], fit: Fit<'_>, findings: &mut Findings) {
    for domain in domains {
        each_level(&domain.rules, &mut |siblings| {
            for limit in siblings.iter().flat_map(|rule| &rule.limits) {
                let Some(DraftTerms::Quota(quota)) = &limit.terms else {
                    continue;
                };
                if let Err(reason) = fit(quota, limit.consistency) {
                    let message = format!("the store cannot count this limit exactly: {reason}");
                    let hint = "write rounder or smaller numbers, or share it with `consistency: node`, \
                                which counts in memory";
                    findings.push(Finding::error(Code::Unfit, limit.span, message).hint(hint));
                }
            }
        });
    }
}

/// Warns about rules that cannot act. Rules with faults are better mended first: half of them
/// would be reported for what is missing.
pub(crate) fn oddities(domains: &[DraftDomain], findings: &mut Findings) {
    for domain in domains {
        if domain.rules.is_empty() {
            let message = format!("the domain {} has no rules", quote(&domain.name.inner));
            findings.push(Finding::warning(Code::DeadRule, domain.name.span, message));
        }
        names::check(domain, findings);
        each_level(&domain.rules, &mut |siblings| {
            hidden::check(siblings, findings);
            for rule in siblings {
                check_effect(rule, findings);
            }
        });
    }
}

/// Visits every list of siblings.
fn each_level(rules: &[DraftRule], visit: &mut impl FnMut(&[DraftRule])) {
    visit(rules);
    for rule in rules {
        each_level(&rule.children, visit);
    }
}

fn report_duplicates(rules: &[DraftRule], findings: &mut Findings) {
    let mut seen: HashMap<(&str, Taken<'_>), Span> = HashMap::new();
    for rule in rules {
        for (taken, span) in taken(rule) {
            let shown = match &taken {
                Taken::Value(value) => format!("{}={value}", rule.key),
                Taken::Any | Taken::Networks(_) => rule.label(),
            };
            let Some(first) = seen.insert((rule.key.as_str(), taken), span) else {
                continue;
            };
            let message = format!("a sibling matches {} already", quote(&shown));
            findings.push(
                Finding::error(Code::DuplicateRule, span, message)
                    .hint(format!("it stands at {}", findings.place(first))),
            );
        }
    }
}

fn taken(rule: &DraftRule) -> Vec<(Taken<'_>, Span)> {
    match &rule.matcher {
        Matcher::Any => vec![(Taken::Any, rule.span)],
        Matcher::Values(values) => values
            .iter()
            .map(|value| (Taken::Value(&value.inner), value.span))
            .collect(),
        Matcher::Networks(networks) => {
            let span = networks.first().map_or(rule.span, |network| network.span);
            let mut networks: Vec<_> = networks.iter().map(|network| network.inner).collect();
            networks.sort_unstable();
            networks.dedup();
            vec![(Taken::Networks(networks), span)]
        }
    }
}

/// Warns about fields that say something of limits where there are none.
fn check_effect(rule: &DraftRule, findings: &mut Findings) {
    if !rule.limits.is_empty() {
        return;
    }
    let mode = match rule.mode {
        RuleMode::Enforce => None,
        RuleMode::Quota => Some("quota_mode"),
        RuleMode::Shadow => Some("shadow_mode"),
    };
    let headers = rule.headers.map(|_| "headers");
    for name in mode.into_iter().chain(headers) {
        let message = format!("`{name}` has no effect: the descriptor has no limit of its own");
        findings.push(Finding::warning(Code::DeadRule, rule.span, message));
    }
}

fn count_windows(
    rules: &[DraftRule],
    windows: &mut HashSet<(Duration, Discriminant<Meter>)>,
    findings: &mut Findings,
) {
    for rule in rules {
        for limit in &rule.limits {
            let Some(DraftTerms::Quota(quota)) = &limit.terms else {
                continue;
            };
            let window = (quota.window(), discriminant(quota.meter()));
            if windows.insert(window) && windows.len() == MAX_WINDOWS + 1 {
                let message = format!(
                    "the rules have more than {MAX_WINDOWS} different windows, counted for each \
                     algorithm"
                );
                findings.push(Finding::error(Code::TooLarge, limit.span, message));
            }
        }
        count_windows(&rule.children, windows, findings);
    }
}
