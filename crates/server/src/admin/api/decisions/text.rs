//! A decision in plain words, for a terminal.

use std::fmt::Write;
use std::time::Duration;

use tidegate_limiter::{DecisionPath, Retry};
use tidegate_observe::{
    DecisionClock, DecisionRetention, RecordedAnswer, RecordedCounter, RecordedDecision,
};

use super::{RuleState, limit_of, timestamp};

/// Tells the reasons of a decision, one line for each.
pub(super) fn render(decision: &RecordedDecision, state: Option<RuleState>) -> String {
    let answer = match decision.answer {
        RecordedAnswer::Allowed => "allowed",
        RecordedAnswer::Denied => "denied",
        RecordedAnswer::Shadowed => "would have been denied, but the server is in shadow mode",
    };
    let clock = match decision.clock {
        DecisionClock::Store => "by the clock of the store",
        DecisionClock::Node => "by the clock of this node",
    };
    let mut text = format!("decision {}: {answer}\n", decision.id);
    let mut line = |name: &str, value: &str| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {name:<8} {value}");
    };
    line("time", &format!("{}, {clock}", timestamp(decision.time)));
    if let Some(route) = &decision.route {
        line("route", route);
    }
    line("rule", &rule(decision, state));
    if let Some(limit) = limit_of(decision) {
        line("limit", &with_siblings(limit, decision.n_limits));
    }
    line("cost", &units(decision.cost));
    if let Some(counter) = &decision.counter {
        line("counter", &remaining(counter));
    }
    line("by", decider(decision.path));
    line("passes", &passes(decision));
    text
}

/// Tells how long decisions are kept.
pub(super) fn retention(retention: &DecisionRetention) -> String {
    let capacity = retention.capacity;
    if capacity == 0 {
        return "no decisions are kept: `observing.decisions` is 0".to_owned();
    }
    let time = match retention.kept_for {
        Some(time) => format!("about {} at the present rate", duration(time)),
        None => "for longer than anything has been denied".to_owned(),
    };
    format!("this server keeps its latest {capacity} decisions, {time}")
}

fn rule(decision: &RecordedDecision, state: Option<RuleState>) -> String {
    let Some(rule) = decision.rule.as_deref() else {
        return match decision.path {
            DecisionPath::Ban => "none: the caller is banned",
            _ => "none of the rules: the limit came with the request",
        }
        .to_owned();
    };
    let (path, domain, file, line) = (&rule.path, &rule.domain, &rule.file, rule.line);
    let since = match state {
        Some(RuleState::InForce) => "",
        Some(RuleState::Changed) => "; this rule or its place has changed since",
        Some(RuleState::Removed) | None => "; this rule has been removed since",
    };
    format!("`{path}` of domain `{domain}`, at {file}:{line}{since}")
}

fn with_siblings(limit: &str, n_limits: usize) -> String {
    match n_limits {
        0 | 1 => limit.to_owned(),
        n => format!("{limit}; of the {n} limits of the request this one decided"),
    }
}

fn remaining(counter: &RecordedCounter) -> String {
    let RecordedCounter {
        limit,
        remaining_before,
        remaining_after,
        ..
    } = counter;
    format!("{remaining_before} of {limit} remained before, {remaining_after} after")
}

const fn decider(path: DecisionPath) -> &'static str {
    match path {
        DecisionPath::Memory => "memory: a counter of this node",
        DecisionPath::Lease => "lease: permits or a denial that this node had from Redis",
        DecisionPath::Totals => "totals: the counts that the nodes exchange",
        DecisionPath::Share => "share: this node's part of the limit",
        DecisionPath::Common => "redis: the counter that all nodes have in common",
        DecisionPath::Fallback => "fallback: this node alone, because Redis failed",
        DecisionPath::Policy => "on_failure: the rule's answer while the store fails",
        DecisionPath::Ban => "ban: an operator banned the caller",
        DecisionPath::None => "nobody: the limit was not asked",
    }
}

/// Tells what would have been allowed, and when.
fn passes(decision: &RecordedDecision) -> String {
    let cost = units(decision.cost);
    let now = decision.counter.map(|counter| {
        let remaining = units(counter.remaining_after);
        match decision.answer {
            RecordedAnswer::Allowed => format!("{remaining} more at that time; "),
            RecordedAnswer::Denied | RecordedAnswer::Shadowed if counter.remaining_after > 0 => {
                format!("{remaining} at that time; ")
            }
            RecordedAnswer::Denied | RecordedAnswer::Shadowed => {
                "nothing at that time; ".to_owned()
            }
        }
    });
    let later = match decision.retry {
        Some(Retry::After(wait)) => format!("{cost} after {}; ", duration(wait)),
        Some(Retry::Never) if decision.path == DecisionPath::Ban => {
            format!("{cost} when the ban is lifted; ")
        }
        Some(Retry::Never) => format!("never {cost} at once; "),
        None => String::new(),
    };
    let whole = decision.counter.map(|counter| {
        let limit = units(counter.limit);
        format!("all {limit} after {}", duration(counter.reset_after))
    });
    let text = [now.unwrap_or_default(), later, whole.unwrap_or_default()].concat();
    text.trim_end_matches("; ").to_owned()
}

fn units(n: u64) -> String {
    let s = if n == 1 { "" } else { "s" };
    format!("{n} unit{s}")
}

/// A time in the largest unit in which it has two digits, rounded up.
fn duration(time: Duration) -> String {
    const UNITS: [(u64, &str); 3] = [(86_400, "days"), (3_600, "hours"), (60, "minutes")];
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    for (size, name) in UNITS {
        if seconds >= 2 * size {
            return format!("{} {name}", seconds.div_ceil(size));
        }
    }
    let s = if seconds == 1 { "" } else { "s" };
    format!("{seconds} second{s}")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tidegate_observe::RecordedRule;

    use super::*;

    fn denied() -> RecordedDecision {
        let limits = ["5 per minute, fixed_window".into(), "1000 per day".into()];
        RecordedDecision {
            id: "3f9a0c1b2d4e5f60".parse().unwrap(),
            time: Duration::from_millis(1_794_744_000_250),
            clock: DecisionClock::Store,
            answer: RecordedAnswer::Denied,
            path: DecisionPath::Memory,
            rule: Some(Arc::new(RecordedRule {
                domain: "api".into(),
                path: "user_id".into(),
                file: "rules.yaml".into(),
                line: 4,
                limits: limits.into(),
            })),
            limit_index: 0,
            n_limits: 2,
            route: Some("orders".into()),
            cost: 2,
            counter: Some(RecordedCounter {
                limit: 5,
                remaining_before: 1,
                remaining_after: 1,
                reset_after: Duration::from_millis(59_750),
            }),
            retry: Some(Retry::After(Duration::from_millis(59_750))),
        }
    }

    fn check(decision: &RecordedDecision, state: Option<RuleState>, expected: &str) {
        assert_eq!(render(decision, state), expected);
    }

    #[test]
    fn a_denial_is_told_with_all_its_reasons() {
        check(
            &denied(),
            Some(RuleState::InForce),
            "decision 3f9a0c1b2d4e5f60: denied
  time     2026-11-15T12:00:00.250Z, by the clock of the store
  route    orders
  rule     `user_id` of domain `api`, at rules.yaml:4
  limit    5 per minute, fixed_window; of the 2 limits of the request this one decided
  cost     2 units
  counter  1 of 5 remained before, 1 after
  by       memory: a counter of this node
  passes   1 unit at that time; 2 units after 60 seconds; all 5 units after 60 seconds
",
        );
    }

    #[test]
    fn a_ban_has_no_counter() {
        let banned = RecordedDecision {
            clock: DecisionClock::Node,
            path: DecisionPath::Ban,
            rule: None,
            n_limits: 0,
            route: None,
            cost: 1,
            counter: None,
            retry: Some(Retry::Never),
            ..denied()
        };
        check(
            &banned,
            None,
            "decision 3f9a0c1b2d4e5f60: denied
  time     2026-11-15T12:00:00.250Z, by the clock of this node
  rule     none: the caller is banned
  cost     1 unit
  by       ban: an operator banned the caller
  passes   1 unit when the ban is lifted
",
        );
    }

    #[test]
    fn a_cost_that_never_fits_is_told() {
        let never = RecordedDecision {
            retry: Some(Retry::Never),
            ..denied()
        };
        let text = render(&never, Some(RuleState::Removed));
        assert!(text.contains("never 2 units at once"), "{text}");
        assert!(text.contains("has been removed since"), "{text}");
    }

    #[test]
    fn retention_is_told_in_words() {
        let check = |kept_for, capacity, expected: &str| {
            let told = retention(&DecisionRetention {
                capacity,
                kept: 2,
                kept_for,
                sampled_one_in: 1,
            });
            assert_eq!(told, expected);
        };
        check(
            Some(Duration::from_secs(700)),
            65_536,
            "this server keeps its latest 65536 decisions, about 12 minutes at the present rate",
        );
        check(None, 0, "no decisions are kept: `observing.decisions` is 0");
    }
}
