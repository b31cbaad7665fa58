//! Our limiter: one rule is matched, then the embedded store is charged.

use tidegate_limiter::{self as limiter, Descriptor, Entry, LimiterConfig};
use tidegate_rules::{CompileOptions, Source, compile};
use tidegate_store::{EmbeddedStore, StoreConfig};

use super::{Answer, Counting, Subject, Terms};
use crate::key::Key;

/// The limiter with a rule for each `user_id`.
pub struct Limiter(limiter::Limiter<EmbeddedStore>);

// === impl Limiter ===

impl Limiter {
    pub fn new(terms: &Terms) -> Self {
        let source = Source {
            name: "bench.yaml".to_owned(),
            bytes: rules(terms).into_bytes(),
        };
        let rules = compile(&[source], &CompileOptions::default())
            .unwrap_or_else(|report| panic!("the rules of the benchmark are sound: {report}"))
            .rules;
        let store = EmbeddedStore::new(StoreConfig::default());
        Self(limiter::Limiter::new(
            store,
            rules,
            LimiterConfig::default(),
        ))
    }
}

impl Subject for Limiter {
    fn check(&self, key: &Key) -> Answer {
        let entries = [Entry {
            key: "user_id",
            value: key.as_string(),
        }];
        let verdict = self.0.check_now("bench", &[Descriptor::new(&entries)], 1);
        match verdict {
            Ok(verdict) if verdict.is_allowed() => Answer::Allowed,
            _ => Answer::Refused,
        }
    }
}

fn rules(terms: &Terms) -> String {
    let algorithm = match terms.counting {
        Counting::Bucket => "token_bucket",
        Counting::Window => "fixed_window",
    };
    format!(
        "domain: bench\n\
         descriptors:\n\
         \x20 - key: user_id\n\
         \x20   rate_limit: {{ limit: {}, window: {}s, algorithm: {algorithm} }}\n",
        terms.limit,
        terms.window.as_secs(),
    )
}
