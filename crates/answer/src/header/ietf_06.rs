//! The IETF's drafts up to 06: a header for each number, and `RateLimit-Policy` as a list of limits.

use std::fmt::Write;

use itoa::Buffer;
use tidegate_limiter::{LimitStatus, Verdict};

use super::Windowed;
use crate::policy::{Policies, sf_integer};

pub(super) fn write(
    verdict: &Verdict,
    deciding: Option<&LimitStatus<'_>>,
    write: &mut impl FnMut(&str, &str),
) {
    let Some(told) = deciding.and_then(Windowed::of) else {
        return;
    };
    let mut number = Buffer::new();
    write("ratelimit-limit", number.format(sf_integer(told.limit)));
    let remaining = sf_integer(told.remaining);
    write("ratelimit-remaining", number.format(remaining));
    write("ratelimit-reset", number.format(sf_integer(told.reset)));
    let mut list = String::new();
    for policy in Policies::of(verdict).told() {
        let comma = if list.is_empty() { "" } else { ", " };
        let (limit, window) = (sf_integer(policy.limit), sf_integer(policy.window));
        // Writing to a string does not fail.
        let _ = write!(list, "{comma}{limit};w={window}");
    }
    write("ratelimit-policy", &list);
}
