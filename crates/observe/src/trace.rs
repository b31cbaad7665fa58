//! Spans of decisions, sent by OTLP over HTTP as JSON. Off unless configured, and then free.

mod config;
mod context;
mod exporter;
mod otel;
mod otlp;
mod post;
mod span;
mod tracer;

pub use config::{BadHeader, Endpoint, EndpointError, Sampling, TraceConfig, TraceHeader};
pub use context::TraceContext;
pub use exporter::Exporter;
pub use otel::OtelError;

pub(crate) use exporter::{SpanQueue, exporter};
pub(crate) use tracer::Tracer;

/// The W3C trace context headers of a request, as they came.
#[derive(Clone, Copy, Debug, Default)]
pub struct TraceHeaders<'a> {
    /// `traceparent`.
    pub traceparent: Option<&'a str>,
    /// `tracestate`.
    pub tracestate: Option<&'a str>,
}
