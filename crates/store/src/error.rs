//! Why a store could not decide.

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
    #[error("more than {most} different windows in use, the embedded store tells no more apart")]
    TooManyWindows {
        /// How many it tells apart.
        most: usize,
    },
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
}

// === impl StoreError ===

impl StoreError {
    /// What sort of failure this is.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::TooManyCharges { .. } | Self::TooManyWindows { .. } => ErrorKind::Rejected,
        }
    }
}
