//! What one writes oneself: a token bucket for each caller in a map.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use dashmap::DashMap;

use super::{Answer, Subject, Terms};
use crate::key::Key;

/// Buckets behind the locks of a `DashMap`.
pub struct DashMapOfBuckets {
    rate: Rate,
    buckets: DashMap<String, Bucket>,
}

/// Buckets behind one lock.
pub struct MutexOfBuckets {
    rate: Rate,
    buckets: Mutex<HashMap<String, Bucket>>,
}

struct Rate {
    per_second: f64,
    burst: f64,
}

struct Bucket {
    tokens: f64,
    filled_at: Instant,
}

// === impl DashMapOfBuckets ===

impl DashMapOfBuckets {
    pub fn new(terms: &Terms) -> Self {
        Self {
            rate: Rate::of(terms),
            buckets: DashMap::new(),
        }
    }
}

impl Subject for DashMapOfBuckets {
    fn check(&self, key: &Key) -> Answer {
        let now = Instant::now();
        if let Some(mut bucket) = self.buckets.get_mut(key.as_string()) {
            return bucket.take(&self.rate, now);
        }
        let mut bucket = self
            .buckets
            .entry(key.as_string().clone())
            .or_insert_with(|| self.rate.full(now));
        bucket.take(&self.rate, now)
    }
}

// === impl MutexOfBuckets ===

impl MutexOfBuckets {
    pub fn new(terms: &Terms) -> Self {
        Self {
            rate: Rate::of(terms),
            buckets: Mutex::default(),
        }
    }
}

impl Subject for MutexOfBuckets {
    fn check(&self, key: &Key) -> Answer {
        let now = Instant::now();
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bucket) = buckets.get_mut(key.as_string()) {
            return bucket.take(&self.rate, now);
        }
        let bucket = buckets
            .entry(key.as_string().clone())
            .or_insert_with(|| self.rate.full(now));
        bucket.take(&self.rate, now)
    }
}

// === impl Rate ===

impl Rate {
    fn of(terms: &Terms) -> Self {
        let burst = f64::from(terms.limit);
        Self {
            per_second: burst / terms.window.as_secs_f64(),
            burst,
        }
    }

    fn full(&self, now: Instant) -> Bucket {
        Bucket {
            tokens: self.burst,
            filled_at: now,
        }
    }
}

// === impl Bucket ===

impl Bucket {
    fn take(&mut self, rate: &Rate, now: Instant) -> Answer {
        let elapsed = now.saturating_duration_since(self.filled_at).as_secs_f64();
        self.tokens = (self.tokens + elapsed * rate.per_second).min(rate.burst);
        self.filled_at = now;
        if self.tokens < 1.0 {
            return Answer::Refused;
        }
        self.tokens -= 1.0;
        Answer::Allowed
    }
}
