//! Rules that can never match, and rules that change nothing.

use std::collections::HashMap;

use crate::code::Code;
use crate::draft::{DraftRule, Matcher};
use crate::findings::{Finding, Findings, quote};
use crate::network::Networks;
use crate::pattern::Wildcard;
use crate::span::Span;

/// How many pairs of patterns of one key are compared; beyond, a hidden rule goes unreported.
const MAX_COMPARISONS: usize = 1_000_000;

/// One pattern of a rule.
struct Written<'a> {
    rule: usize,
    span: Span,
    shown: String,
    pattern: Form<'a>,
}

enum Form<'a> {
    Wildcard(&'a str, Wildcard),
    Networks(Networks),
}

/// Warns about siblings that hide each other and allow-list entries that exempt from nothing.
pub(super) fn check(rules: &[DraftRule], findings: &mut Findings) {
    let mut by_key: HashMap<&str, Vec<&DraftRule>> = HashMap::new();
    for rule in rules {
        by_key.entry(&rule.key).or_default().push(rule);
    }
    // In the order of the file, not of the map.
    for rule in rules {
        if let Some(siblings) = by_key.remove(rule.key.as_str()) {
            check_key(&siblings, findings);
        }
    }
}

fn check_key(siblings: &[&DraftRule], findings: &mut Findings) {
    let patterns: Vec<_> = siblings
        .iter()
        .enumerate()
        .flat_map(|(at, rule)| patterns(at, rule))
        .collect();
    let default = siblings
        .iter()
        .find(|rule| matches!(rule.matcher, Matcher::Any));
    report_hidden(&patterns, findings);
    if let Some(default) = default {
        report_hidden_default(default, &patterns, findings);
    }
    for (at, rule) in siblings.iter().enumerate() {
        let is_entry = rule.limits.is_empty() && rule.children.is_empty();
        // Whether two patterns overlap is not worked out: any other one may.
        let exempts = !matches!(rule.matcher, Matcher::Any)
            && (default.is_some() || patterns.iter().any(|pattern| pattern.rule != at));
        if is_entry && !exempts {
            let message = format!(
                "{} has no limit and exempts from none",
                quote(&rule.label())
            );
            findings.push(
                Finding::warning(Code::DeadRule, rule.span, message)
                    .hint("what no rule matches is allowed anyway"),
            );
        }
    }
}

fn patterns(at: usize, rule: &DraftRule) -> Vec<Written<'_>> {
    match &rule.matcher {
        Matcher::Any => Vec::new(),
        Matcher::Values(values) => values
            .iter()
            .filter(|value| Wildcard::is_pattern(&value.inner))
            .map(|value| Written {
                rule: at,
                span: value.span,
                shown: format!("{}={}", rule.key, value.inner),
                pattern: Form::Wildcard(&value.inner, Wildcard::new(&value.inner)),
            })
            .collect(),
        Matcher::Networks(networks) => {
            let list: Vec<_> = networks.iter().map(|network| network.inner).collect();
            let span = networks.first().map_or(rule.span, |network| network.span);
            let pattern = Form::Networks(Networks::new(&list));
            vec![Written {
                rule: at,
                span,
                shown: rule.label(),
                pattern,
            }]
        }
    }
}

fn report_hidden(patterns: &[Written<'_>], findings: &mut Findings) {
    let mut comparisons = 0;
    for (at, pattern) in patterns.iter().enumerate() {
        comparisons += at;
        if comparisons > MAX_COMPARISONS {
            return;
        }
        let Some(earlier) = patterns[..at]
            .iter()
            .find(|earlier| earlier.covers(pattern))
        else {
            continue;
        };
        // The same text twice is a duplicate, and reported as such.
        if earlier.shown == pattern.shown {
            continue;
        }
        let message = format!(
            "{} can never match: {} takes it all first",
            quote(&pattern.shown),
            quote(&earlier.shown),
        );
        let hint = format!(
            "patterns are tried in the order of the file; move it above {}",
            findings.place(earlier.span),
        );
        findings.push(Finding::warning(Code::HiddenRule, pattern.span, message).hint(hint));
    }
}

fn report_hidden_default(default: &DraftRule, patterns: &[Written<'_>], findings: &mut Findings) {
    let all = patterns.iter().find(|pattern| pattern.takes_everything());
    if let Some(all) = all {
        let message = format!(
            "the bare key {} can never match: {} takes every value",
            quote(&default.key),
            quote(&all.shown),
        );
        let hint = format!("the pattern stands at {}", findings.place(all.span));
        findings.push(Finding::warning(Code::HiddenRule, default.span, message).hint(hint));
    }
}

// === impl Written ===

impl Written<'_> {
    fn covers(&self, other: &Self) -> bool {
        match (&self.pattern, &other.pattern) {
            (Form::Wildcard(_, wildcard), Form::Wildcard(text, _)) => wildcard.covers(text),
            (Form::Networks(wide), Form::Networks(narrow)) => wide.covers(narrow),
            (Form::Wildcard(..), Form::Networks(_)) => self.takes_everything(),
            (Form::Networks(_), Form::Wildcard(..)) => false,
        }
    }

    fn takes_everything(&self) -> bool {
        match &self.pattern {
            Form::Wildcard(text, _) => text.bytes().all(|byte| byte == b'*'),
            Form::Networks(_) => false,
        }
    }
}
