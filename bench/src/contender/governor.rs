//! The governor crate: GCRA in a `DashMap` by string.

use std::num::NonZeroU32;

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use super::{Answer, Subject, Terms};
use crate::key::Key;

/// Its keyed limiter, on its default clock.
pub struct Governor(DefaultKeyedRateLimiter<String>);

// === impl Governor ===

impl Governor {
    pub fn new(terms: &Terms) -> Self {
        let burst = NonZeroU32::new(terms.limit).expect("the limits of the benchmark are not 0");
        let quota = Quota::with_period(terms.window / terms.limit)
            .expect("the windows of the benchmark are longer than their limits in nanoseconds")
            .allow_burst(burst);
        Self(RateLimiter::keyed(quota))
    }
}

impl Subject for Governor {
    fn check(&self, key: &Key) -> Answer {
        match self.0.check_key(key.as_string()) {
            Ok(()) => Answer::Allowed,
            Err(_) => Answer::Refused,
        }
    }
}
