//! Why a store could not decide.

use std::sync::Arc;
use std::time::Duration;

/// A charge that could not be decided. A refusal is no error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// More limits in one request than a store charges in one step.
    #[error("{asked} limits in one request, at most {most} can be charged together")]
    TooManyCharges {
        /// How many there were.
        asked: usize,
        /// How many there may be.
        most: usize,
    },
    /// Limits with more different algorithms and windows than the embedded store tells apart.
    #[error(
        "the limits need more than the {most} pairs of algorithm and window that memory tells apart"
    )]
    TooManyWindows {
        /// How many it tells apart.
        most: usize,
    },
    /// A limit whose numbers the store cannot count exactly.
    #[error("the store cannot count this limit exactly: {reason}")]
    Unfit {
        /// What about it does not fit.
        reason: Unfit,
    },
    /// The store did not answer in time.
    #[error("timeout: the store did not answer within {after:?}")]
    Timeout {
        /// The timeout.
        after: Duration,
    },
    /// The store cannot be reached, or cannot serve.
    #[error("the store is not available: {reason}")]
    Unavailable {
        /// What it said, or what became of the connection.
        reason: Arc<str>,
    },
    /// The circuit breaker of the store is open: nothing was sent.
    #[error("circuit breaker is open")]
    Open,
    /// Nobody on this node can decide alone.
    #[error("no store of this node stands by")]
    NoStandby,
}

/// Why a limit does not fit a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unfit {
    /// A window or a part of one that is not a whole number of microseconds.
    #[error("its window, or a part of it, is not a whole number of microseconds")]
    Grain,
    /// Numbers whose products are above 2^53.
    #[error("its limit times its window is more than the store can multiply exactly")]
    Magnitude,
}

/// Memory for counters that the system does not give out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system does not give out memory for {max_memory} bytes of counters")]
pub struct MemoryRefused {
    /// How much was asked for.
    pub max_memory: usize,
}

/// What sort of failure it is: metrics and policy read this, never the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request asks for more than a store does.
    Rejected,
    /// The store did not answer in time.
    Timeout,
    /// The store cannot be reached.
    Unavailable,
    /// The circuit breaker of the store is open: nothing was sent.
    Open,
}

// === impl StoreError ===

impl StoreError {
    /// What sort of failure this is.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::TooManyCharges { .. } | Self::TooManyWindows { .. } | Self::Unfit { .. } => {
                ErrorKind::Rejected
            }
            Self::Timeout { .. } => ErrorKind::Timeout,
            Self::Unavailable { .. } | Self::NoStandby => ErrorKind::Unavailable,
            Self::Open => ErrorKind::Open,
        }
    }
}
