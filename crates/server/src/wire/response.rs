//! `RateLimitResponse`, written from a verdict.

use std::time::Duration;

use serde::Serialize;
use tidegate_limiter::{Answer, LimitStatus, Mode, Origin, Retry, Status, Verdict};

use super::unit::Unit;

/// `envoy.service.ratelimit.v3.RateLimitResponse`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RateLimitResponse<'a> {
    overall_code: Code,
    statuses: Vec<DescriptorStatus<'a>>,
    /// A free place in the protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    dynamic_metadata: Option<DynamicMetadata<'a>>,
}

/// Which rule refused the request, and for how long.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct DecidedBy<'a> {
    rule: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<&'a str>,
    retry: String,
}

/// What the protocol has no field for. Absent if there is nothing to say.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct DynamicMetadata<'a> {
    /// Which rule refused the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_by: Option<DecidedBy<'a>>,
    /// How long an admitted request must wait for its turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    delay: Option<String>,
    /// Whether an admitted request is over a limit, on its soft or elastic allowance.
    #[serde(skip_serializing_if = "Option::is_none")]
    over: Option<bool>,
    /// Whether the store failed, so that the rules' `on_failure` answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    degraded: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum Code {
    Ok,
    OverLimit,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct DescriptorStatus<'a> {
    code: Code,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_limit: Option<RateLimit<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_remaining: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_until_reset: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RateLimit<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    requests_per_unit: u32,
    unit: Unit,
}

/// What Envoy's protocol says for "as many as you like".
const UNLIMITED: u32 = u32::MAX;

// === impl RateLimitResponse ===

impl<'a> From<&'a Verdict> for RateLimitResponse<'a> {
    fn from(verdict: &'a Verdict) -> Self {
        Self {
            overall_code: verdict.answer().into(),
            statuses: verdict.statuses().map(DescriptorStatus::from).collect(),
            dynamic_metadata: DynamicMetadata::of(verdict),
        }
    }
}

// === impl DynamicMetadata ===

impl<'a> DynamicMetadata<'a> {
    fn of(verdict: &'a Verdict) -> Option<Self> {
        let refusing = || verdict.deciding().map(|limit| DecidedBy::from(&limit));
        let delay = verdict.delay();
        let (decided_by, delay) = match verdict.answer() {
            Answer::Allowed => (None, (delay > Duration::ZERO).then(|| duration(delay))),
            Answer::Refused => (refusing(), None),
        };
        let is_over = verdict.is_allowed()
            && verdict
                .limits()
                .any(|limit| limit.mode() != Mode::Shadow && limit.is_over());
        let over = is_over.then_some(true);
        let degraded = verdict.failure().map(|_| true);
        let is_empty =
            decided_by.is_none() && delay.is_none() && over.is_none() && degraded.is_none();
        (!is_empty).then_some(Self {
            decided_by,
            delay,
            over,
            degraded,
        })
    }
}

// === impl DecidedBy ===

impl<'a> From<&LimitStatus<'a>> for DecidedBy<'a> {
    fn from(status: &LimitStatus<'a>) -> Self {
        let (rule, limit) = match status.origin() {
            Origin::Rule { rule, limit } => (rule.path(), Some(limit.description())),
            Origin::Override(_) => ("the limit that came with the request", None),
        };
        let retry = match status.retry() {
            Some(Retry::After(wait)) => format!("in {}", duration(wait)),
            Some(Retry::Never) => "never: the cost does not fit the limit".to_owned(),
            None => "unknown: the store failed".to_owned(),
        };
        Self { rule, limit, retry }
    }
}

// === impl DescriptorStatus ===

impl<'a> From<Status<'a>> for DescriptorStatus<'a> {
    fn from(status: Status<'a>) -> Self {
        let deciding = status.deciding();
        let decision = deciding.as_ref().and_then(LimitStatus::decision);
        let remaining = decision.map(|decision| saturate(decision.remaining));
        Self {
            code: status.answer().into(),
            current_limit: deciding.as_ref().and_then(RateLimit::of),
            limit_remaining: remaining.or(status.is_unlimited().then_some(UNLIMITED)),
            duration_until_reset: decision.map(|decision| duration(decision.reset_after)),
        }
    }
}

// === impl Code ===

impl From<Answer> for Code {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Allowed => Self::Ok,
            Answer::Refused => Self::OverLimit,
        }
    }
}

// === impl RateLimit ===

impl<'a> RateLimit<'a> {
    fn of(status: &LimitStatus<'a>) -> Option<Self> {
        let quota = status.quota()?;
        Some(Self {
            name: status.name(),
            requests_per_unit: saturate(quota.limit()),
            unit: Unit::of(quota.window()),
        })
    }
}

/// The protocol counts in 32 bits, the rules in 64: a larger number is told as the largest.
fn saturate(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// A duration as proto3 JSON writes it: seconds, with 0, 3, 6 or 9 decimals.
fn duration(span: Duration) -> String {
    let (seconds, nanos) = (span.as_secs(), span.subsec_nanos());
    if nanos == 0 {
        format!("{seconds}s")
    } else if nanos % 1_000_000 == 0 {
        format!("{seconds}.{:03}s", nanos / 1_000_000)
    } else if nanos % 1_000 == 0 {
        format!("{seconds}.{:06}s", nanos / 1_000)
    } else {
        format!("{seconds}.{nanos:09}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_as_many_decimals_as_they_need() {
        let check = |nanos, expected| assert_eq!(duration(Duration::from_nanos(nanos)), expected);
        check(0, "0s");
        check(60_000_000_000, "60s");
        check(1_500_000_000, "1.500s");
        check(1_000_001_000, "1.000001s");
        check(1, "0.000000001s");
    }
}
