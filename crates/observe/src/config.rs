//! What is observed, and how much of it.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::trace::{Sampling, TraceConfig};

/// What an observatory is told once.
#[derive(Clone, Debug)]
pub struct ObserveConfig {
    /// How many rules have metrics of their own; the others are counted together as `_other`.
    pub max_rules: usize,
    /// Under which names metrics are shown.
    pub names: MetricNames,
    /// How the busiest and the most refused keys are found; not at all if `None`.
    pub top: Option<TopConfig>,
    /// Whether refusals are logged.
    pub refusals: RefusalLog,
    /// The latest decisions that can be explained; none are kept if `None`.
    pub decisions: Option<DecisionConfig>,
    /// Where spans are sent; nothing is traced if `None`.
    pub traces: Option<TraceConfig>,
}

/// Under which names metrics are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MetricNames {
    /// Our own.
    #[default]
    Own,
    /// Our own, and beside them those of envoyproxy/ratelimit, for dashboards that know them.
    WithReference,
}

/// How the busiest and the most refused keys are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopConfig {
    /// One request in so many is looked at, chosen at random.
    pub sample_one_in: NonZeroU32,
    /// How many keys are followed for each rule: one with a greater share of the rule's requests than
    /// one in so many is surely among them.
    pub keys_per_rule: usize,
    /// The most bytes of one core.
    pub max_memory: usize,
    /// How long a window is. What is shown covers the current window and the one before.
    pub window: Duration,
}

/// The decisions that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecisionConfig {
    /// The number of decisions, of 96 bytes each.
    pub capacity: usize,
    /// One in this many allowed requests is kept, chosen at random; none if `None`. Denials are always kept.
    pub sample_one_in: Option<NonZeroU32>,
}

/// Whether refusals are logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RefusalLog {
    /// They are not.
    #[default]
    Off,
    /// Some of them are, at level `info`.
    Sampled {
        /// How many, chosen at random.
        share: Sampling,
        /// Whether the line says whom it was about.
        keys: KeyLogging,
    },
}

/// Whether a log line holds what clients sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyLogging {
    /// It does not.
    #[default]
    Hidden,
    /// It holds the values that tell callers apart, clipped.
    Shown,
}

// === impl ObserveConfig ===

impl Default for ObserveConfig {
    fn default() -> Self {
        Self {
            // A Prometheus server takes ten times as many series from one target without complaint.
            max_rules: 10_000,
            names: MetricNames::Own,
            top: Some(TopConfig::default()),
            refusals: RefusalLog::Off,
            decisions: Some(DecisionConfig::default()),
            traces: None,
        }
    }
}

// === impl TopConfig ===

impl Default for TopConfig {
    fn default() -> Self {
        Self {
            sample_one_in: NonZeroU32::new(16).unwrap_or(NonZeroU32::MIN),
            keys_per_rule: 256,
            max_memory: 2 * 1024 * 1024,
            window: Duration::from_mins(1),
        }
    }
}

// === impl DecisionConfig ===

impl DecisionConfig {
    /// The number of decisions where nobody sets it: 6 MB.
    pub const CAPACITY: u32 = 65_536;

    /// The share of allowed requests where nobody sets it: enough to have a few a second of a busy server.
    pub const SAMPLE_ONE_IN: u32 = 1_024;
}

impl Default for DecisionConfig {
    fn default() -> Self {
        Self {
            capacity: usize::try_from(Self::CAPACITY).unwrap_or_default(),
            sample_one_in: NonZeroU32::new(Self::SAMPLE_ONE_IN),
        }
    }
}
