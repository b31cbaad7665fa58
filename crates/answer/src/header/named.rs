//! The three headers of envoyproxy/ratelimit, under names of the operator's own.

use itoa::Buffer;
use tidegate_limiter::LimitStatus;

use crate::answers::HeaderNames;
use crate::seconds;

pub(super) fn write(
    deciding: Option<&LimitStatus<'_>>,
    names: &HeaderNames,
    write: &mut impl FnMut(&str, &str),
) {
    let Some(decision) = deciding.and_then(LimitStatus::decision) else {
        return;
    };
    let mut number = Buffer::new();
    write(&names.limit, number.format(decision.limit));
    write(&names.remaining, number.format(decision.remaining));
    let reset = seconds::round_up(decision.reset_after);
    write(&names.reset, number.format(reset));
}
