//! What operators are told.

use serde_json::{Value as Json, json};
use tidegate_observe::{DecisionConfig, Endpoint, EndpointError, OtelError, Sampling, TraceConfig};

use crate::config::reader::Section;
use crate::config::value::{Count, Mismatch, Ratio, Shown, Value, Words};
use crate::log::{Filter, LogFormat};

/// What operators are told.
#[derive(Clone, Debug)]
pub(crate) struct Observing {
    pub(crate) log: Log,
    pub(crate) metrics: Metrics,
    pub(crate) top_keys: Count<0>,
    pub(crate) decisions: Count<0>,
    pub(crate) decision_sample: Count<0>,
    pub(crate) traces: Traces,
}

/// The log.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    pub(crate) level: Filter,
    pub(crate) format: LogFormat,
    pub(crate) refusals: Ratio,
    pub(crate) keys: bool,
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
    pub(crate) endpoint: Option<TraceEndpoint>,
    pub(crate) sample: Option<Ratio>,
    pub(crate) service_name: Option<String>,
    pub(crate) service_namespace: Option<String>,
    pub(crate) service_instance_id: Option<String>,
}

/// Where spans are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TraceEndpoint(pub(crate) Endpoint);

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
                "How many keys are followed for each rule to find the busiest; 0 follows none",
                Count(256),
            ),
            decisions: section.value(
                "decisions",
                "The number of decisions kept in memory for `tidegate why`, of 96 bytes each; 0 keeps none",
                Count(DecisionConfig::CAPACITY),
            ),
            decision_sample: section.value(
                "decision_sample",
                "One in this many allowed requests is kept beside the denials; 0 keeps denials only",
                Count(DecisionConfig::SAMPLE_ONE_IN),
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
            keys: section.value(
                "keys",
                "Whether the line of a refusal says whom it was about",
                false,
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
                "How many rules have metrics of their own; the others are counted together",
                Count(10_000),
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
            sample: section.optional(
                "sample",
                "Which share of requests is traced where the caller does not say; all, if not set",
            ),
            service_name: section.optional(
                "service_name",
                "The service that spans say they are of; tidegate, if not set",
            ),
            service_namespace: section.optional("service_namespace", "Its namespace"),
            service_instance_id: section.optional("service_instance_id", "Its instance"),
        }
    }
}

impl Traces {
    /// How to trace, if there is an endpoint. What is not set here, the variables of OpenTelemetry say.
    pub(crate) fn resolve(
        &self,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<TraceConfig>, OtelError> {
        let Some(TraceEndpoint(endpoint)) = &self.endpoint else {
            return Ok(None);
        };
        let mut config = TraceConfig::new(endpoint.for_traces()).with_otel(lookup)?;
        if let Some(sample) = self.sample {
            config.sampling = Sampling::from_millionths(sample.millionths());
        }
        if let Some(name) = &self.service_name {
            config.service_name.clone_from(name);
        }
        for (name, value) in [
            ("service.namespace", &self.service_namespace),
            ("service.instance.id", &self.service_instance_id),
        ] {
            if let Some(value) = value {
                config.resource.retain(|(other, _)| other != name);
                config.resource.push((name.to_owned(), value.clone()));
            }
        }
        Ok(Some(config))
    }
}

// === impl TraceEndpoint ===

impl Value for TraceEndpoint {
    fn parse(text: &str) -> Result<Self, Mismatch> {
        text.parse()
            .map(Self)
            .map_err(|fault: EndpointError| Mismatch::new("an endpoint", fault.to_string()))
    }

    fn show(&self) -> Shown {
        let (authority, path) = (self.0.authority(), self.0.path());
        Shown::Plain(json!(format!("http://{authority}{path}")))
    }

    fn schema() -> Json {
        json!({ "type": "string", "pattern": "^http://" })
    }
}
