//! GitHub's: what is used is told too, and the reset is a time of the clock, the store's.

use std::time::Duration;

use itoa::Buffer;
use tidegate_limiter::{LimitStatus, Verdict};

use super::until_reset;
use crate::policy::Policies;
use crate::seconds;

pub(super) fn write(
    verdict: &Verdict,
    deciding: Option<&LimitStatus<'_>>,
    write: &mut impl FnMut(&str, &str),
) {
    let Some((status, decision)) = deciding.and_then(|it| Some((it, it.decision()?))) else {
        return;
    };
    let mut number = Buffer::new();
    let used = decision.limit.saturating_sub(decision.remaining);
    write("x-ratelimit-limit", number.format(decision.limit));
    write("x-ratelimit-remaining", number.format(decision.remaining));
    write("x-ratelimit-used", number.format(used));
    if let Some(now) = verdict.time() {
        let reset = now.plus(until_reset(status, decision));
        let epoch_seconds = seconds::round_up(Duration::from_nanos(reset.nanos()));
        write("x-ratelimit-reset", number.format(epoch_seconds));
    }
    if let Some(policy) = Policies::of(verdict).find(status) {
        write("x-ratelimit-resource", &policy.name);
    }
}
