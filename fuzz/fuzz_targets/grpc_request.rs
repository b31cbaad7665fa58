//! Bytes of any kind as a rate limit request in protobuf, from the wire through the limiter and back:
//! no crash, and every answer is a message.

#![no_main]

use std::sync::LazyLock;

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use server::wire;
use tidegate_answer::Answers;
use tidegate_limiter::{Limiter, LimiterConfig, RuleSet};
use tidegate_rules::{CompileOptions, Source, compile};
use tidegate_store::{EmbeddedStore, ManualClock, StoreConfig};
use wire::protobuf::{Reader, write_response};
use wire::{EscapedTexts, Question};

// The server shows nobody its wire types, and should not for this: the file itself is taken in.
#[path = "../../crates/server/src"]
mod server {
    #[expect(unused_imports, reason = "JSON is not asked for here")]
    #[allow(dead_code, reason = "nor are its types, but the tests among them are")]
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
    let texts = EscapedTexts::default();
    let mut question = Question::default();
    if let Err(error) = question.read(bytes, &texts) {
        assert!(!error.to_string().is_empty(), "a refusal says why");
        return;
    }
    // A store and a clock of its own for each input, so that a crash can be had again.
    let config = StoreConfig { max_memory: 0 };
    let store = EmbeddedStore::with_clock(config, ManualClock::default());
    let limiter = Limiter::new(store, RULES.clone(), LimiterConfig::default());
    let verdict = limiter.check_now(question.domain, &question.descriptors(), question.hits());
    if let Ok(verdict) = verdict {
        let mut answer = BytesMut::new();
        write_response(&verdict, &Answers::default(), &mut answer);
        let mut fields = Reader::new(&answer);
        while fields
            .next()
            .expect("an answer is always a message")
            .is_some()
        {}
    }
});
