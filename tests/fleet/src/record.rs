//! Records: each request with its times and its answer.

use serde::Deserialize;

use crate::scenario::Role;

/// A check and what became of it.
#[derive(Clone, Debug)]
pub struct Record {
    /// Who sent it.
    pub role: Role,
    /// Whether it was sent to the strict twin.
    pub is_twin: bool,
    /// The node that answered.
    pub node: usize,
    /// What it cost.
    pub cost: u32,
    /// When it was to be sent.
    pub due: u64,
    /// When it was sent.
    pub sent: u64,
    /// When its answer was received.
    pub received: u64,
    /// The answer.
    pub outcome: Outcome,
    /// Whether the node decided without Redis.
    pub is_degraded: bool,
    /// What remains of the judged limit.
    pub remaining: Option<u64>,
    /// After a denial: when to come back, in microseconds.
    pub retry_after: Option<u64>,
}

/// What became of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was allowed.
    Allowed,
    /// The judged limit denied it, alone or with others.
    Denied,
    /// Only another limit of the request denied it.
    DeniedElsewhere,
    /// There was no answer.
    Unanswered,
}

/// The answer to one check, as `/v1/check` writes it.
#[derive(Debug, Deserialize)]
pub struct Answer {
    allowed: bool,
    #[serde(default)]
    degraded: bool,
    retry_after: Option<f64>,
    #[serde(default)]
    limits: Vec<LimitAnswer>,
}

#[derive(Debug, Deserialize)]
struct LimitAnswer {
    rule: String,
    allowed: bool,
    remaining: Option<u64>,
}

/// The answers to several checks.
#[derive(Debug, Deserialize)]
struct Answers {
    checks: Vec<Answer>,
}

// === impl Answer ===

impl Answer {
    /// An answer with one limit: that of the rule `rule`.
    pub fn of_limit(allowed: bool, degraded: bool, rule: String, limit: (bool, u64)) -> Self {
        Self {
            allowed,
            degraded,
            retry_after: None,
            limits: vec![LimitAnswer {
                rule,
                allowed: limit.0,
                remaining: Some(limit.1),
            }],
        }
    }
}

// === impl Record ===

impl Record {
    /// Permits that this record took from the limit.
    pub fn taken(&self) -> u64 {
        if self.outcome == Outcome::Allowed {
            u64::from(self.cost)
        } else {
            0
        }
    }

    /// Whether it lies wholly inside a span of time.
    pub fn is_inside(&self, from: u64, to: u64) -> bool {
        self.sent >= from && self.received <= to
    }

    /// Whether any part of it lies inside a span of time.
    pub fn touches(&self, from: u64, to: u64) -> bool {
        self.received >= from && self.sent <= to
    }

    /// Writes down an answer; `key` is that of the judged limit.
    pub fn take_answer(&mut self, answer: &Answer, key: &str) {
        let limit = answer.limits.iter().find(|limit| limit.rule == key);
        self.is_degraded = answer.degraded;
        self.remaining = limit.and_then(|limit| limit.remaining);
        self.retry_after = answer.retry_after.map(crate::clock::micros);
        self.outcome = match (answer.allowed, limit) {
            (true, _) => Outcome::Allowed,
            (false, Some(limit)) if limit.allowed => Outcome::DeniedElsewhere,
            (false, _) => Outcome::Denied,
        };
    }
}

/// Reads the answers to a request of `count` checks.
pub fn read_answers(body: &[u8], count: u32) -> Option<Vec<Answer>> {
    if count == 1 {
        return Some(vec![serde_json::from_slice(body).ok()?]);
    }
    let answers: Answers = serde_json::from_slice(body).ok()?;
    (answers.checks.len() == count as usize).then_some(answers.checks)
}
