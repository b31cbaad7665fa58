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
    /// The file in which the counters in memory outlive the process, if there is one.
    pub state: Option<StateGauges>,
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
