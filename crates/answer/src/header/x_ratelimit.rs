//! The default: `X-RateLimit-Limit`, `-Remaining` and, refused, `-Retry-After`.
//!
//! The limit is the most that could pass at one instant, the capacity of a bucket. This runs on every
//! call of Envoy's, so it allocates nothing.

use itoa::Buffer;
use tidegate_limiter::{Dialect, LimitStatus, Verdict};

use super::{Headers, is_over, seconds, spoken};

/// All that the default dialect tells of a verdict, for front doors that have the headers' names ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefaultNumbers {
    /// The values of `X-RateLimit-Limit` and `X-RateLimit-Remaining`.
    pub limit_and_remaining: Option<(u64, u64)>,
    /// The value of `X-RateLimit-Retry-After` and of `Retry-After`.
    pub retry_after: Option<u64>,
}

// === impl DefaultNumbers ===

impl DefaultNumbers {
    /// The numbers, if [`headers`](super::headers) would tell them in the default dialect and nothing else.
    #[inline]
    pub fn of(verdict: &Verdict, otherwise: &Headers) -> Option<Self> {
        let deciding = verdict.announced();
        let is_default = spoken(deciding.as_ref(), otherwise) == Ok(Dialect::XRateLimit)
            && !is_over(verdict, deciding.as_ref());
        is_default.then(|| Self::new(deciding.as_ref(), seconds::retry_after(verdict)))
    }

    pub(super) fn new(deciding: Option<&LimitStatus<'_>>, retry_after: Option<u64>) -> Self {
        let decision = deciding.and_then(LimitStatus::decision);
        Self {
            limit_and_remaining: decision.map(|it| (it.limit, it.remaining)),
            retry_after,
        }
    }

    /// Writes all but `Retry-After`.
    pub(super) fn write(self, write: &mut impl FnMut(&str, &str)) {
        let mut number = Buffer::new();
        if let Some((limit, remaining)) = self.limit_and_remaining {
            write("x-ratelimit-limit", number.format(limit));
            write("x-ratelimit-remaining", number.format(remaining));
        }
        if let Some(seconds) = self.retry_after {
            write("x-ratelimit-retry-after", number.format(seconds));
        }
    }
}
