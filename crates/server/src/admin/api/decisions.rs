//! The latest decisions, and the reasons of one.

mod text;

use std::time::{Duration, UNIX_EPOCH};

use serde::Serialize;
use tidegate_limiter::{DecisionPath, Limit, Retry, RuleSet};
use tidegate_observe::{
    DecisionClock, DecisionQuery, DecisionRetention, RecordedAnswer, RecordedCounter,
    RecordedDecision, RecordedRule,
};
use tidegate_rules::Domain;

use crate::admin::fault::Fault;
use crate::admin::query::Query;
use crate::admin::reply::{self, Reply};
use crate::admin::{Admin, rfc3339};

/// Decisions that are kept.
#[derive(Debug, Serialize)]
struct DecisionsView<'a> {
    decisions: Vec<DecisionView<'a>>,
    retention: RetentionView,
}

/// One decision.
#[derive(Debug, Serialize)]
struct DecisionView<'a> {
    id: String,
    time: String,
    clock: &'static str,
    answer: &'static str,
    decided_by: &'static str,
    route: Option<&'a str>,
    rule: Option<RuleAtTime<'a>>,
    /// The limit that decided.
    limit: Option<&'a str>,
    /// The number of limits that applied.
    limits: usize,
    cost: u64,
    counter: Option<CounterView>,
    /// The end of a denial.
    retry: Option<RetryView>,
    /// All of it in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

/// A rule as it was at the time of the decision.
#[derive(Debug, Serialize)]
struct RuleAtTime<'a> {
    domain: &'a str,
    rule: &'a str,
    file: &'a str,
    line: usize,
    /// Looked up for one decision, not for a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct CounterView {
    limit: u64,
    remaining_before: u64,
    remaining_after: u64,
    reset_after_seconds: f64,
}

#[derive(Debug, Serialize)]
struct RetryView {
    /// `null` for a denial that never ends.
    after_seconds: Option<f64>,
}

#[derive(Debug, Serialize)]
struct RetentionView {
    capacity: usize,
    kept: usize,
    kept_for_seconds: Option<f64>,
    sampled_one_in: u32,
}

/// The present state of a rule by which something was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RuleState {
    InForce,
    Changed,
    Removed,
}

/// The number of decisions that are listed where nobody says.
const USUAL: usize = 20;

/// Lists the latest decisions.
pub(in crate::admin) fn decisions<S>(
    admin: &Admin<S>,
    mut query: Query<'_>,
) -> Result<Reply, Fault> {
    let most = query.take_number("limit", 1..=1_000, "a whole number from 1 to 1000")?;
    let only_denied = match query.take("denied").as_deref() {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => {
            return Err(Fault::BadQuery {
                name: "denied",
                expected: "`true` or `false`",
            });
        }
    };
    query.finish()?;
    let report = admin.observatory.decisions(DecisionQuery {
        only_denied,
        most: most.unwrap_or(USUAL),
    });
    Ok(reply::json(&DecisionsView {
        decisions: report.decisions.iter().map(DecisionView::from).collect(),
        retention: RetentionView::from(&report.retention),
    }))
}

/// Explains one decision.
pub(in crate::admin) fn decision<S>(
    admin: &Admin<S>,
    id: &str,
    query: Query<'_>,
) -> Result<Reply, Fault> {
    query.finish()?;
    let id = id.parse()?;
    let Some(decision) = admin.observatory.decision(id) else {
        let nothing = DecisionQuery {
            only_denied: true,
            most: 0,
        };
        let retention = admin.observatory.decisions(nothing).retention;
        return Err(Fault::UnknownDecision {
            id,
            retention: text::retention(&retention),
        });
    };
    let state = RuleState::of(&decision, &admin.limiter.rules());
    let mut view = DecisionView::from(&decision);
    if let Some(rule) = &mut view.rule {
        rule.state = state.map(RuleState::name);
    }
    view.text = Some(text::render(&decision, state));
    Ok(reply::json(&view))
}

// === impl DecisionView ===

impl<'a> From<&'a RecordedDecision> for DecisionView<'a> {
    fn from(decision: &'a RecordedDecision) -> Self {
        Self {
            id: decision.id.to_string(),
            time: timestamp(decision.time),
            clock: match decision.clock {
                DecisionClock::Store => "store",
                DecisionClock::Node => "node",
            },
            answer: answer_name(decision.answer),
            decided_by: path_name(decision.path),
            route: decision.route.as_deref(),
            rule: decision.rule.as_deref().map(|rule| RuleAtTime {
                domain: &rule.domain,
                rule: &rule.path,
                file: &rule.file,
                line: rule.line,
                state: None,
            }),
            limit: limit_of(decision),
            limits: decision.n_limits,
            cost: decision.cost,
            counter: decision.counter.as_ref().map(CounterView::from),
            retry: decision.retry.map(|retry| RetryView {
                after_seconds: match retry {
                    Retry::After(wait) => Some(wait.as_secs_f64()),
                    Retry::Never => None,
                },
            }),
            text: None,
        }
    }
}

// === impl RuleState ===

impl RuleState {
    /// The state of the rule of a decision; `None` if it has none.
    fn of(decision: &RecordedDecision, rules: &RuleSet) -> Option<Self> {
        let recorded = decision.rule.as_deref()?;
        let domain = rules.domain(&recorded.domain);
        let mut of_domain = domain.into_iter().flat_map(Domain::rules);
        let Some(rule) = of_domain.find(|rule| recorded.has_path(rule.path())) else {
            return Some(Self::Removed);
        };
        let limits = rule.limits().iter().map(Limit::description);
        let is_same = is_at(recorded, rule.location().line, &rule.location().file)
            && limits.eq(recorded.limits.iter().map(|it| &**it));
        Some(if is_same {
            Self::InForce
        } else {
            Self::Changed
        })
    }

    const fn name(self) -> &'static str {
        match self {
            Self::InForce => "in_force",
            Self::Changed => "changed",
            Self::Removed => "removed",
        }
    }
}

fn is_at(rule: &RecordedRule, line: usize, file: &str) -> bool {
    rule.line == line && &*rule.file == file
}

// === impl CounterView ===

impl From<&RecordedCounter> for CounterView {
    fn from(counter: &RecordedCounter) -> Self {
        Self {
            limit: counter.limit,
            remaining_before: counter.remaining_before,
            remaining_after: counter.remaining_after,
            reset_after_seconds: counter.reset_after.as_secs_f64(),
        }
    }
}

// === impl RetentionView ===

impl From<&DecisionRetention> for RetentionView {
    fn from(retention: &DecisionRetention) -> Self {
        Self {
            capacity: retention.capacity,
            kept: retention.kept,
            kept_for_seconds: retention.kept_for.map(|time| time.as_secs_f64()),
            sampled_one_in: retention.sampled_one_in,
        }
    }
}

/// The description of the limit that decided.
fn limit_of(decision: &RecordedDecision) -> Option<&str> {
    let limits = &decision.rule.as_deref()?.limits;
    limits.get(decision.limit_index).map(|limit| &**limit)
}

const fn answer_name(answer: RecordedAnswer) -> &'static str {
    match answer {
        RecordedAnswer::Allowed => "allowed",
        RecordedAnswer::Denied => "denied",
        RecordedAnswer::Shadowed => "shadowed",
    }
}

const fn path_name(path: DecisionPath) -> &'static str {
    match path {
        DecisionPath::Memory => "memory",
        DecisionPath::Lease => "lease",
        DecisionPath::Totals => "totals",
        DecisionPath::Share => "share",
        DecisionPath::Common => "redis",
        DecisionPath::Fallback => "fallback",
        DecisionPath::Policy => "on_failure",
        DecisionPath::Ban => "ban",
        DecisionPath::None => "none",
    }
}

/// A time since the epoch to the millisecond, such as `2026-11-15T23:05:00.250Z`.
fn timestamp(time: Duration) -> String {
    let seconds = rfc3339(UNIX_EPOCH + time);
    let millis = time.subsec_millis();
    format!("{}.{millis:03}Z", seconds.trim_end_matches('Z'))
}
