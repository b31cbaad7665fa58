//! A batch of spans as OTLP's JSON.

use std::fmt::{self, Display};
use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};

use super::TraceConfig;
use super::span::Span;

/// `ExportTraceServiceRequest`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Request<'a> {
    resource_spans: [ResourceSpans<'a>; 1],
}

/// `ExportTraceServiceResponse`, as far as anybody here reads it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Response {
    partial_success: Option<PartialSuccess>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PartialSuccess {
    rejected_spans: Option<Number>,
}

/// Proto3 JSON writes a number of 64 bits as a text, and takes either.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Number {
    Digits(u64),
    Text(String),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceSpans<'a> {
    resource: Resource<'a>,
    scope_spans: [ScopeSpans<'a>; 1],
}

#[derive(Serialize)]
struct Resource<'a> {
    attributes: Vec<Attribute<'a>>,
}

#[derive(Serialize)]
struct ScopeSpans<'a> {
    scope: Scope,
    spans: Vec<JsonSpan<'a>>,
}

#[derive(Serialize)]
struct Scope {
    name: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonSpan<'a> {
    trace_id: Hex<'a>,
    span_id: Hex<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_span_id: Option<Hex<'a>>,
    #[serde(skip_serializing_if = "str::is_empty")]
    trace_state: &'a str,
    name: &'static str,
    kind: u8,
    start_time_unix_nano: Nanos,
    end_time_unix_nano: Nanos,
    attributes: Vec<Attribute<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
}

#[derive(Serialize)]
struct Attribute<'a> {
    key: &'a str,
    value: Value<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Value<'a> {
    string_value: &'a str,
}

#[derive(Serialize)]
struct Status {
    message: &'static str,
    code: u8,
}

/// Bytes in hex, which OTLP has instead of proto3's base64.
struct Hex<'a>(&'a [u8]);

/// Nanoseconds since the epoch, as a text.
struct Nanos(Duration);

/// What every span is called.
const SPAN_NAME: &str = "tidegate.check";

/// `SPAN_KIND_SERVER`.
const KIND_SERVER: u8 = 2;

/// `STATUS_CODE_ERROR`.
const STATUS_ERROR: u8 = 2;

// === impl Request ===

impl<'a> Request<'a> {
    pub(crate) fn new(config: &'a TraceConfig, spans: &'a [Span]) -> Self {
        let name = Attribute::new("service.name", &config.service_name);
        let rest = config.resource.iter();
        let rest = rest.map(|(key, value)| Attribute::new(key, value));
        Self {
            resource_spans: [ResourceSpans {
                resource: Resource {
                    attributes: [name].into_iter().chain(rest).collect(),
                },
                scope_spans: [ScopeSpans {
                    scope: Scope {
                        name: "tidegate",
                        version: env!("CARGO_PKG_VERSION"),
                    },
                    spans: spans.iter().map(JsonSpan::new).collect(),
                }],
            }],
        }
    }
}

// === impl Response ===

impl Response {
    /// How many spans the receiver did not take.
    pub(crate) fn n_rejected(&self) -> u64 {
        let rejected = self.partial_success.as_ref();
        match rejected.and_then(|it| it.rejected_spans.as_ref()) {
            Some(Number::Digits(number)) => *number,
            Some(Number::Text(text)) => text.parse().unwrap_or(0),
            None => 0,
        }
    }
}

// === impl JsonSpan ===

impl<'a> JsonSpan<'a> {
    fn new(span: &'a Span) -> Self {
        let domain = span.domain.as_deref().map(|it| ("tidegate.domain", it));
        let rule = span.rule.as_deref().map(|it| ("tidegate.rule", it));
        let outcome = ("tidegate.outcome", span.outcome);
        let attributes = domain.into_iter().chain(rule).chain([outcome]);
        Self {
            trace_id: Hex(&span.trace_id),
            span_id: Hex(&span.id),
            parent_span_id: span.parent_id.as_ref().map(|id| Hex(id)),
            trace_state: &span.state,
            name: SPAN_NAME,
            kind: KIND_SERVER,
            start_time_unix_nano: Nanos(span.start),
            end_time_unix_nano: Nanos(span.end),
            attributes: attributes
                .map(|(key, value)| Attribute::new(key, value))
                .collect(),
            status: span.failure.map(|message| Status {
                message,
                code: STATUS_ERROR,
            }),
        }
    }
}

// === impl Attribute ===

impl<'a> Attribute<'a> {
    fn new(key: &'a str, value: &'a str) -> Self {
        Self {
            key,
            value: Value {
                string_value: value,
            },
        }
    }
}

// === impl Hex ===

impl Display for Hex<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            write!(formatter, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl Serialize for Hex<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

// === impl Nanos ===

impl Serialize for Nanos {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0.as_nanos())
    }
}
