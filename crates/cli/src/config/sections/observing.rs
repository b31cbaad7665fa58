//! What operators are told.

use crate::config::reader::Section;
use crate::config::value::{Count, Ratio, Words};
use crate::log::{Filter, LogFormat};

/// What operators are told.
#[derive(Clone, Debug)]
pub(crate) struct Observing {
    pub(crate) log: Log,
    pub(crate) metrics: Metrics,
    pub(crate) top_keys: Count<0>,
    pub(crate) traces: Traces,
}

/// The log.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    pub(crate) level: Filter,
    pub(crate) format: LogFormat,
    pub(crate) refusals: Ratio,
}

/// The metrics page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Metrics {
    pub(crate) reference_names: bool,
    pub(crate) max_rules: Count<0>,
}

/// Traces over OTLP.
#[derive(Clone, Debug)]
pub(crate) struct Traces {
    pub(crate) endpoint: Option<String>,
    pub(crate) sample: Ratio,
}

// === impl Observing ===

impl Observing {
    pub(super) fn read(mut section: Section<'_, '_>) -> Self {
        Self {
            log: Log::read(section.block("log", "The log, on stderr")),
            metrics: Metrics::read(
                section.block("metrics", "The metrics page of the admin listener"),
            ),
            top_keys: section.value(
                "top_keys",
                "How many of the busiest and most refused keys are kept for each rule; 0 for none",
                Count(20),
            ),
            traces: Traces::read(section.block("traces", "Spans of requests, over OTLP")),
        }
    }
}

// === impl Log ===

impl Log {
    fn read(mut section: Section<'_, '_>) -> Self {
        Self {
            level: section.value(
                "level",
                "How much is logged: a level, and others for some parts, as in info,audit=off",
                Filter::default(),
            ),
            format: section.value("format", "How lines of the log look", LogFormat::Text),
            refusals: section.value(
                "refusals",
                "Which share of refusals is logged, a line each",
                Ratio::NONE,
            ),
        }
    }
}

// === impl LogFormat ===

impl Words for LogFormat {
    const EXPECTED: &'static str = "a format";
    const WORDS: &'static [(&'static str, Self)] = &[("text", Self::Text), ("json", Self::Json)];
}

// === impl Metrics ===

impl Metrics {
    fn read(mut section: Section<'_, '_>) -> Self {
        Self {
            reference_names: section.value(
                "reference_names",
                "Show the counters under the names of envoyproxy/ratelimit too",
                false,
            ),
            max_rules: section.value(
                "max_rules",
                "How many rules have metrics of their own",
                Count(1000),
            ),
        }
    }
}

// === impl Traces ===

impl Traces {
    fn read(mut section: Section<'_, '_>) -> Self {
        Self {
            endpoint: section.optional(
                "endpoint",
                "Where spans are sent over OTLP, such as http://localhost:4318; none means no traces",
            ),
            sample: section.value(
                "sample",
                "Which share of requests is traced where the caller does not say",
                Ratio::WHOLE,
            ),
        }
    }
}
