//! Spans of decisions, sent by OTLP. Off unless configured, and then free.

mod config;
mod exporter;
pub mod otel;

pub use config::{Endpoint, EndpointError, Sampling, TraceConfig};
pub use exporter::Exporter;
pub use otel::OtelError;

/// The W3C trace context headers of a request, as they came.
#[derive(Clone, Copy, Debug, Default)]
pub struct TraceHeaders<'a> {
    /// `traceparent`.
    pub traceparent: Option<&'a str>,
    /// `tracestate`.
    pub tracestate: Option<&'a str>,
}
