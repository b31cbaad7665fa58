//! Bytes of any kind as a rate limit request in JSON, from the wire through the limiter and back:
//! no crash, and every answer is JSON.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use server::wire;
use tidegate_limiter::{Limiter, LimiterConfig, RuleSet};
use tidegate_rules::{CompileOptions, Source, compile};
use tidegate_store::{EmbeddedStore, ManualClock, StoreConfig};
use wire::{BadRequest, Object, Question, RateLimitRequest, RateLimitResponse};

// The server shows nobody its wire types, and should not for this: the file itself is taken in.
#[path = "../../crates/server/src"]
mod server {
    #[expect(dead_code, unused_imports, reason = "protobuf is not asked for here")]
    pub(crate) mod wire;
}

static RULES: LazyLock<RuleSet> = LazyLock::new(|| {
    let source = Source {
        name: "example.yaml".to_owned(),
        bytes: include_bytes!("../../deploy/rules/example.yaml").to_vec(),
    };
    let compiled = compile(&[source], &CompileOptions::default());
    compiled.expect("the example rules are sound").rules
});

fuzz_target!(|bytes: &[u8]| {
    let Ok(Object(request)) = serde_json::from_slice::<Object<RateLimitRequest<'_>>>(bytes) else {
        return;
    };
    let question = match Question::try_from(&request) {
        Ok(question) => question,
        Err(error) => return says_why(&error),
    };
    // A store and a clock of its own for each input, so that a crash can be had again.
    let config = StoreConfig { max_memory: 0 };
    let store = EmbeddedStore::with_clock(config, ManualClock::default());
    let limiter = Limiter::new(store, RULES.clone(), LimiterConfig::default());
    let verdict = limiter.check_now(question.domain, &question.descriptors(), question.hits());
    if let Ok(verdict) = verdict {
        let answer = serde_json::to_vec(&RateLimitResponse::from(&verdict));
        let answer = answer.expect("a response is always JSON");
        serde_json::from_slice::<serde_json::Value>(&answer).expect("and can be read again");
    }
});

fn says_why(error: &BadRequest) {
    assert!(!error.to_string().is_empty(), "a refusal says why");
}
