//! Counters of one upstream, for a metrics page.

use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_observe::LogSampler;

use super::error::ForwardError;

/// Counts since the start, over all threads.
#[derive(Debug, Default)]
pub(crate) struct UpstreamCounters {
    /// Requests, retries not counted.
    pub(crate) requests: Count,
    /// Attempts after the first.
    pub(crate) retries: Count,
    /// Retries that the budget did not allow.
    pub(crate) retries_denied: Count,
    /// Connections opened, without those of health checks.
    pub(crate) connections: Count,
    /// Attempts that found no connection: connect failed.
    pub(crate) connect_failed: Count,
    /// Attempts that found no connection in time.
    pub(crate) connect_timed_out: Count,
    /// Requests for which no connection became free.
    pub(crate) pool_exhausted: Count,
    /// Requests for which all targets were down.
    pub(crate) no_healthy_target: Count,
    /// Attempts without a response in time.
    pub(crate) response_timed_out: Count,
    /// Attempts whose connection broke before the response.
    pub(crate) broken: Count,
    /// Responses that broke or stalled in their body.
    pub(crate) body_broken: Count,
    /// The log lines of requests without a response.
    pub(crate) failure_log: LogSampler,
}

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

// === impl UpstreamCounters ===

impl UpstreamCounters {
    /// Counts a failed attempt by its kind.
    pub(super) fn add_failure(&self, error: &ForwardError) {
        match error {
            ForwardError::NoHealthyTarget => self.no_healthy_target.add(),
            ForwardError::PoolExhausted => self.pool_exhausted.add(),
            ForwardError::ConnectFailed(_) => self.connect_failed.add(),
            ForwardError::ConnectTimedOut => self.connect_timed_out.add(),
            ForwardError::ResponseTimedOut => self.response_timed_out.add(),
            ForwardError::Refused(_) | ForwardError::Broken { .. } => self.broken.add(),
            // The client's fault, or ours.
            ForwardError::RequestBodyFailed(_) | ForwardError::Unsendable => {}
        }
    }
}

impl UpstreamCounters {
    /// The failures by kind.
    pub(super) fn failures(&self) -> Vec<(&'static str, u64)> {
        let kinds = [
            ("connect_failed", &self.connect_failed),
            ("connect_timed_out", &self.connect_timed_out),
            ("pool_exhausted", &self.pool_exhausted),
            ("no_healthy_target", &self.no_healthy_target),
            ("response_timed_out", &self.response_timed_out),
            ("broken", &self.broken),
            ("body_broken", &self.body_broken),
        ];
        kinds.map(|(kind, count)| (kind, count.get())).into()
    }
}

// === impl Count ===

impl Count {
    pub(super) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// The count.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
