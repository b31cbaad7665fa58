//! What an algorithm says about one limit.

use std::time::Duration;

/// The answer of one limit to one request. The verdict over all limits of a request is made above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether the request may pass, and the terms.
    pub outcome: Outcome,
    /// The most that could ever be admitted at one instant: the limit of a window, the capacity of
    /// a bucket.
    pub limit: u64,
    /// How many more requests of cost 1 this limit would admit at this very instant, within its
    /// ordinary (not soft, not elastic) allowance, after this decision.
    pub remaining: u64,
    /// How long until the whole limit is available again, if nothing more is charged. For an
    /// epoch-aligned window this is the end of the window, so never zero there.
    pub reset_after: Duration,
}

/// Whether one limit admits a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The limit admits the request.
    Allowed {
        /// Whether it took from the ordinary or from the extra allowance.
        standing: Standing,
        /// How long the request must wait before it may leave: zero but for the leaky bucket.
        delay: Duration,
    },
    /// The limit refuses the request.
    Denied {
        /// When the same request would be admitted.
        retry: Retry,
    },
}

/// Which part of the allowance an admitted request drew on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Within the ordinary limit.
    Within,
    /// Over it, on a soft or elastic allowance.
    Over,
}

/// When a refused request may come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// A lone caller who waits this long is admitted; one who comes a nanosecond earlier is not.
    After(Duration),
    /// The cost can never fit this limit.
    Never,
}

// === impl Decision ===

impl Decision {
    /// Whether the limit admits the request.
    pub const fn is_allowed(&self) -> bool {
        matches!(self.outcome, Outcome::Allowed { .. })
    }

    /// The decision on a look, where this one is on a cost of 0 and `next` on a cost of 1: denied if `next` is.
    #[must_use]
    pub const fn unless_full(self, next: &Self) -> Self {
        match next.outcome {
            Outcome::Denied { .. } => Self {
                outcome: next.outcome,
                ..self
            },
            Outcome::Allowed { .. } => self,
        }
    }
}
