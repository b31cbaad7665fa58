//! The IETF's current draft: `RateLimit-Policy` lists the limits, `RateLimit` what is left of them.
//!
//! The unit of a quota (`qu`) is left out: requests are the default, and what a cost counts only the
//! operator knows.

use std::fmt::Write;

use tidegate_limiter::Verdict;

use crate::policy::{Policies, Policy, SfString, sf_integer};
use crate::seconds;

pub(super) fn write(verdict: &Verdict, write: &mut impl FnMut(&str, &str)) {
    let policies = Policies::of(verdict);
    let told = |add: fn(&mut String, &Policy<'_>)| {
        let mut list = String::new();
        policies.told().for_each(|policy| add(&mut list, policy));
        list
    };
    for (name, list) in [
        ("ratelimit-policy", told(add_policy)),
        ("ratelimit", told(add_standing)),
    ] {
        if !list.is_empty() {
            write(name, &list);
        }
    }
}

fn add_policy(list: &mut String, policy: &Policy<'_>) {
    add_name(list, policy);
    let (quota, window) = (sf_integer(policy.limit), sf_integer(policy.window));
    // Writing to a string does not fail.
    let _ = write!(list, ";q={quota};w={window}");
}

/// A limit that the store could not decide has none.
fn add_standing(list: &mut String, policy: &Policy<'_>) {
    let Some(decision) = policy.status.decision() else {
        return;
    };
    add_name(list, policy);
    let remaining = sf_integer(decision.remaining.min(policy.limit));
    let _ = write!(list, ";r={remaining}");
    if let Some(wait) = policy.status.more_after() {
        let seconds = sf_integer(seconds::round_up(wait));
        let _ = write!(list, ";t={seconds}");
    }
}

fn add_name(list: &mut String, policy: &Policy<'_>) {
    let comma = if list.is_empty() { "" } else { ", " };
    let _ = write!(list, "{comma}{}", SfString(&policy.name));
}
