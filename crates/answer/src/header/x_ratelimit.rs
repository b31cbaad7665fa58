//! The default: `X-RateLimit-Limit`, `-Remaining` and, refused, `-Retry-After`.
//!
//! The limit is the most that could pass at one instant, the capacity of a bucket. This runs on every
//! call of Envoy's, so it allocates nothing.

use itoa::Buffer;
use tidegate_limiter::LimitStatus;

pub(super) fn write(
    deciding: Option<&LimitStatus<'_>>,
    retry_after: Option<u64>,
    write: &mut impl FnMut(&str, &str),
) {
    let mut number = Buffer::new();
    if let Some(decision) = deciding.and_then(LimitStatus::decision) {
        write("x-ratelimit-limit", number.format(decision.limit));
        write("x-ratelimit-remaining", number.format(decision.remaining));
    }
    if let Some(seconds) = retry_after {
        write("x-ratelimit-retry-after", number.format(seconds));
    }
}
