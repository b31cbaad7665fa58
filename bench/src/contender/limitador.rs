//! The limitador crate: fixed windows in memory, one limit with one variable.

use std::collections::HashMap;

use limitador::RateLimiter;
use limitador::limit::{Context, Expression, Limit, Namespace};

use super::{Answer, Subject, Terms};
use crate::key::Key;

/// Its limiter, with room for twice the callers: it would evict live counters otherwise.
pub struct Limitador {
    limiter: RateLimiter,
    namespace: Namespace,
}

// === impl Limitador ===

impl Limitador {
    pub fn new(terms: &Terms) -> Self {
        let namespace = Namespace::from("bench");
        let variable = Expression::parse("user_id").expect("a name is an expression");
        let limit = Limit::new(
            namespace.clone(),
            terms.limit.into(),
            terms.window.as_secs(),
            [],
            [variable],
        );
        let limiter = RateLimiter::new(terms.keys.saturating_mul(2));
        limiter.add_limit(limit);
        Self { limiter, namespace }
    }
}

impl Subject for Limitador {
    fn check(&self, key: &Key) -> Answer {
        let entry = ("user_id".to_owned(), key.as_string().clone());
        let context = Context::from(HashMap::from([entry]));
        let result = self
            .limiter
            .check_rate_limited_and_update(&self.namespace, &context, 1)
            .expect("memory does not fail");
        if result.limited {
            Answer::Refused
        } else {
            Answer::Allowed
        }
    }
}
