//! What others know and a page of metrics shows: plain numbers, handed in by whoever asks for one.

use std::time::Duration;

use tidegate_limiter::report::StoreReport;

/// Numbers that the observatory does not count itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// The rules in force.
    pub rules: u64,
    /// How the store is doing.
    pub store: StoreReport,
    /// The gateway, if there is one.
    pub gateway: Option<GatewayGauges>,
    /// The file in which the counters in memory outlive the process, if there is one.
    pub state: Option<StateGauges>,
}

/// Counts of a gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatewayGauges {
    /// Responses to clients by origin, and by class of status from 1xx to 5xx.
    pub responses: Vec<(&'static str, [u64; 5])>,
    /// The upstreams, by the names that the operator wrote.
    pub upstreams: Vec<UpstreamGauges>,
}

/// Counts of one upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpstreamGauges {
    /// Its name.
    pub name: String,
    /// Requests, retries not counted.
    pub requests: u64,
    /// Attempts after the first.
    pub retries: u64,
    /// Retries that the budget did not allow.
    pub retries_denied: u64,
    /// Connections opened.
    pub connections: u64,
    /// Failures by kind.
    pub failures: Vec<(&'static str, u64)>,
    /// Its targets.
    pub targets: Vec<TargetGauges>,
}

/// The state of one target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetGauges {
    /// Its URL.
    pub name: String,
    /// Whether it gets requests.
    pub is_up: bool,
    /// Requests in progress.
    pub in_progress: u64,
}

/// How the writing of counters to a file goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateGauges {
    /// When the last file was written, since the epoch; `None` before the first.
    pub written_at: Option<Duration>,
    /// The size of that file.
    pub bytes: u64,
    /// How often none could be written.
    pub failures: u64,
}
