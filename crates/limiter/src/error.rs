//! Why a request could not be judged at all.

use tidegate_algorithms::QuotaError;

/// A request that makes no sense, so there is no verdict on it. A refusal is no error, and neither is
/// a store that fails: the rules' failure policy answers for that.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LimiterError {
    /// The domain is empty. The text is envoyproxy/ratelimit's.
    #[error("rate limit domain must not be empty")]
    EmptyDomain,
    /// There is no descriptor. The text is envoyproxy/ratelimit's.
    #[error("rate limit descriptor list must not be empty")]
    NoDescriptors,
    /// There are too many descriptors.
    #[error("more than {most} descriptors in the request")]
    TooManyDescriptors {
        /// How many there may be.
        most: usize,
    },
    /// More limits apply than one request may charge.
    #[error("more than {most} limits apply to the request")]
    TooManyLimits {
        /// How many may.
        most: usize,
    },
    /// A descriptor brings a limit that is none.
    #[error("the limit that descriptor {descriptor} brings along is not valid")]
    BadOverride {
        /// Which descriptor, counted from 0.
        descriptor: usize,
        /// What is wrong with it.
        #[source]
        reason: QuotaError,
    },
    /// `check_now` was asked of a store that had to wait.
    #[error("the store does not answer at once; await `check` instead")]
    WouldWait,
}
