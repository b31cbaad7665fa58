//! `RateLimitResponse` as JSON, written from a verdict.

use std::time::Duration;

use serde::Serialize;
use tidegate_limiter::{Answer, Decision, LimitStatus, Status, Verdict};

use super::metadata::{DynamicMetadata, duration};
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
pub(super) const UNLIMITED: u32 = u32::MAX;

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
            duration_until_reset: decision.map(|decision| duration(until_reset(decision))),
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

/// When the limit is whole again, in whole seconds, rounded up, as the reference tells it. Envoy writes the
/// seconds in its own `x-ratelimit-reset` and drops the rest, which would be early.
pub(super) const fn until_reset(decision: &Decision) -> Duration {
    let (seconds, nanos) = (
        decision.reset_after.as_secs(),
        decision.reset_after.subsec_nanos(),
    );
    Duration::from_secs(seconds.saturating_add(if nanos > 0 { 1 } else { 0 }))
}

/// The protocol counts in 32 bits, the rules in 64: a larger number is told as the largest.
pub(super) fn saturate(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
