//! One decision, as a span.

use std::time::Duration;

/// One decision, as a span. It holds names of rules, and nothing that a client sent but the trace it
/// is part of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) trace_id: [u8; 16],
    pub(crate) id: [u8; 8],
    pub(crate) parent_id: Option<[u8; 8]>,
    /// The header `tracestate`, which goes with the trace; empty if there is none.
    pub(crate) state: Box<str>,
    /// When it began, since the epoch.
    pub(crate) start: Duration,
    pub(crate) end: Duration,
    /// The domain, if there are rules for it.
    pub(crate) domain: Option<Box<str>>,
    /// The path of the rule that decided.
    pub(crate) rule: Option<Box<str>>,
    pub(crate) outcome: &'static str,
    /// What kind of failure the store had.
    pub(crate) failure: Option<&'static str>,
}
