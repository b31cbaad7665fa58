//! What one core writes down.

use std::sync::Arc;
use std::time::Duration;

use tidegate_limiter::{Descriptor, LimiterError, Verdict};

use crate::Observatory;

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
}

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
}
