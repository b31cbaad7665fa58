//! Envoy's: as its own filter writes them, `X-RateLimit-Limit` lists every limit with its window.

use std::fmt::Write;

use itoa::Buffer;
use tidegate_limiter::{LimitStatus, Verdict};

use super::Windowed;
use crate::policy::{Naming, Policies, SfString, sf_integer};

pub(super) fn write(
    verdict: &Verdict,
    deciding: Option<&LimitStatus<'_>>,
    write: &mut impl FnMut(&str, &str),
) {
    let Some(told) = deciding.and_then(Windowed::of) else {
        return;
    };
    let mut limits = sf_integer(told.limit).to_string();
    for policy in Policies::of(verdict).told() {
        let (limit, window) = (sf_integer(policy.limit), sf_integer(policy.window));
        // Writing to a string does not fail.
        let _ = write!(limits, ", {limit};w={window}");
        if policy.naming == Naming::Given {
            let _ = write!(limits, ";name={}", SfString(&policy.name));
        }
    }
    let mut number = Buffer::new();
    write("x-ratelimit-limit", &limits);
    let remaining = sf_integer(told.remaining);
    write("x-ratelimit-remaining", number.format(remaining));
    write("x-ratelimit-reset", number.format(sf_integer(told.reset)));
}
