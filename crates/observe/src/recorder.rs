//! What one core writes down.

use std::sync::Arc;
use std::time::Duration;

use tidegate_limiter::{Descriptor, LimiterError, Verdict};

use crate::{Observatory, TraceHeaders};

/// Writes down what came of the requests of one core.
#[derive(Debug)]
pub struct Recorder {
    _observatory: Arc<Observatory>,
}

/// What was asked.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The domain.
    pub domain: &'a str,
    /// The descriptors.
    pub descriptors: &'a [Descriptor<'a>],
    /// The hits of the request.
    pub hits: u64,
    /// The trace it is part of. Not worth looking up unless the recorder [traces](Recorder::traces).
    pub trace: TraceHeaders<'a>,
}

/// What a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Envoy's service.
    Grpc,
    /// The HTTP front doors.
    Http,
    /// The admin listener.
    Admin,
}

/// A connection, open until this is dropped.
#[derive(Debug)]
#[must_use = "the connection counts as closed once this is dropped"]
pub struct OpenConnection {}

// === impl Recorder ===

impl Recorder {
    pub(crate) fn new(observatory: Arc<Observatory>) -> Self {
        Self {
            _observatory: observatory,
        }
    }

    /// A request was judged, and that took so long.
    pub fn judged(&self, asked: &Asked<'_>, verdict: &Verdict, took: Duration) {
        let _ = (asked, verdict, took);
    }

    /// A request made no sense.
    pub fn rejected(&self, error: &LimiterError) {
        let _ = error;
    }

    /// A message was no request at all: bytes that do not parse, or too many of them.
    pub fn malformed(&self) {}

    /// Whether requests may be traced: if not, nobody needs to look for the headers.
    #[inline]
    pub fn traces(&self) -> bool {
        false
    }

    /// A connection was opened.
    pub fn opened(&self, protocol: Protocol) -> OpenConnection {
        let _ = protocol;
        OpenConnection {}
    }
}
