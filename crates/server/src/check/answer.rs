//! A verdict as the answer to `/v1/check`.

use std::time::Duration;

use serde::{Serialize, Serializer};
use tidegate_answer::{Policies, Policy, refusal};
use tidegate_limiter::{Answer, LimiterError, Mode, Origin, Retry, Verdict};

/// What came of one check.
#[derive(Debug, Serialize)]
pub(crate) struct Checked<'a> {
    allowed: bool,
    /// The limit that decided, by its policy.
    deciding: Option<String>,
    /// How long an admitted request is to be held.
    delay: Seconds,
    /// Whether the request is allowed over a limit, on its soft or elastic allowance.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    over: bool,
    /// Whether the store failed, so that the rules' `on_failure` answered.
    degraded: bool,
    /// Refused: when to come back, if a wait helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<Seconds>,
    /// Refused: why.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    limits: Vec<LimitTold<'a>>,
}

/// What came of several.
#[derive(Debug, Serialize)]
pub(crate) struct CheckedBatch<'a> {
    pub(crate) checks: Vec<Outcome<'a>>,
}

/// What came of one of several.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Outcome<'a> {
    Checked(Checked<'a>),
    /// It made no sense to the limiter.
    Error {
        error: String,
    },
}

#[derive(Debug, Serialize)]
struct LimitTold<'a> {
    /// Which descriptor of the check.
    descriptor: usize,
    rule: Option<&'a str>,
    policy: String,
    mode: Word,
    allowed: bool,
    /// Whether it allows on its soft or elastic allowance.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    over: bool,
    #[serde(flatten)]
    numbers: Option<Numbers>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<Seconds>,
}

/// Absent if the store failed.
#[derive(Debug, Serialize)]
struct Numbers {
    limit: u64,
    remaining: u64,
    reset: Seconds,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Enforce,
    Quota,
    Shadow,
}

/// A time in seconds, to the millisecond, rounded up so that it is never early.
#[derive(Clone, Copy, Debug)]
struct Seconds(Duration);

// === impl Checked ===

impl<'a> From<&'a Verdict> for Checked<'a> {
    fn from(verdict: &'a Verdict) -> Self {
        let policies = Policies::of(verdict);
        let deciding = verdict.deciding();
        let deciding = deciding.as_ref().and_then(|status| policies.find(status));
        let is_refused = verdict.answer() == Answer::Refused;
        Self {
            allowed: !is_refused,
            deciding: deciding.map(|policy| policy.name.to_string()),
            delay: Seconds(if is_refused {
                Duration::ZERO
            } else {
                verdict.delay()
            }),
            over: verdict.is_over(|limit| !limit.is_hidden()),
            degraded: verdict.failure().is_some(),
            retry_after: verdict.retry().and_then(Seconds::of),
            detail: is_refused.then(|| refusal(verdict, &policies)),
            limits: policies.iter().map(LimitTold::from).collect(),
        }
    }
}

// === impl Outcome ===

impl<'a> From<&'a Result<Verdict, LimiterError>> for Outcome<'a> {
    fn from(judged: &'a Result<Verdict, LimiterError>) -> Self {
        match judged {
            Ok(verdict) => Self::Checked(verdict.into()),
            Err(error) => Self::Error {
                error: error.to_string(),
            },
        }
    }
}

// === impl LimitTold ===

impl<'a> From<&Policy<'a>> for LimitTold<'a> {
    fn from(policy: &Policy<'a>) -> Self {
        let status = policy.status;
        let rule = match status.origin() {
            Origin::Rule { rule, .. } => Some(rule.path()),
            Origin::Override(_) => None,
        };
        let numbers = status.decision().map(|decision| Numbers {
            limit: decision.limit,
            remaining: decision.remaining,
            reset: Seconds(decision.reset_after),
        });
        Self {
            descriptor: status.descriptor(),
            rule,
            policy: policy.name.to_string(),
            mode: status.mode().into(),
            allowed: !status.is_refused(),
            over: status.is_over(),
            numbers,
            retry_after: status.retry().and_then(Seconds::of),
        }
    }
}

// === impl Word ===

impl From<Mode> for Word {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Enforce => Self::Enforce,
            Mode::Quota => Self::Quota,
            Mode::Shadow => Self::Shadow,
        }
    }
}

// === impl Seconds ===

impl Seconds {
    fn of(retry: Retry) -> Option<Self> {
        match retry {
            Retry::After(wait) => Some(Self(wait)),
            Retry::Never => None,
        }
    }
}

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let whole = self.0.as_secs();
        let millis = self.0.subsec_nanos().div_ceil(1_000_000);
        match millis {
            0 => serializer.serialize_u64(whole),
            1_000 => serializer.serialize_u64(whole.saturating_add(1)),
            _ => {
                // The longest time is some ten years, far below 2^32 seconds, so nothing is lost, and
                // one division of whole numbers gives the float that is written with three decimals.
                let whole = u32::try_from(whole).unwrap_or(u32::MAX);
                let all_millis = f64::from(whole) * 1_000.0 + f64::from(millis);
                serializer.serialize_f64(all_millis / 1_000.0)
            }
        }
    }
}
