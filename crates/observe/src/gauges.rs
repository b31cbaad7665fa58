//! What others know and a page of metrics shows: plain numbers, handed in by whoever asks for one.

use std::time::Duration;

/// Numbers that the observatory does not count itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// The rules in force.
    pub rules: u64,
    /// The store in memory, if there is one.
    pub store: Option<StoreGauges>,
}

/// How the store in memory is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreGauges {
    /// Bytes of the cap that are in use.
    pub used_bytes: u64,
    /// The cap.
    pub max_bytes: u64,
    /// Live counters that made way for new ones.
    pub evicted: u64,
    /// Charges that found no room and went by `on_full`.
    pub untracked: u64,
    /// The file in which its counters outlive the process, if there is one.
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
