//! Bytes of any kind as the body of `/v1/check`, through the limiter and back: no crash, every fault has
//! a place and a reason, and every answer is JSON.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use server::check::{
    Check, CheckRequest, Checked, CheckedBatch, Fault, Faults, Json, Outcome, body_text,
};
use tidegate_answer::{Dialect, headers, problem};
use tidegate_limiter::{Limiter, LimiterConfig, LimiterError, RuleSet, Verdict};
use tidegate_rules::{CompileOptions, Source, compile};
use tidegate_store::{EmbeddedStore, ManualClock, StoreConfig};

// The server shows nobody its wire types, and should not for this: the file itself is taken in.
#[path = "../../crates/server/src"]
mod server {
    pub(crate) mod check;
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
    let text = body_text(bytes);
    let Ok(body) = serde_json::from_str::<Json<'_>>(&text) else {
        return;
    };
    let checks = match CheckRequest::read(&body) {
        Ok(CheckRequest::One(check)) => vec![check],
        Ok(CheckRequest::Batch(checks)) => checks,
        Err(faults) => return says_why(&faults),
    };
    let judged = judge(&checks);
    judged.iter().flatten().for_each(is_told);
    let checks = judged.iter().map(Outcome::from).collect();
    let answer = serde_json::to_vec(&CheckedBatch { checks }).expect("an answer is always JSON");
    serde_json::from_slice::<serde_json::Value>(&answer).expect("and can be read again");
});

fn judge(checks: &[Check<'_>]) -> Vec<Result<Verdict, LimiterError>> {
    // A store and a clock of its own for each input, so that a crash can be had again.
    let config = StoreConfig { max_memory: 0 };
    let store = EmbeddedStore::with_clock(config, ManualClock::default());
    let limiter = Limiter::new(store, RULES.clone(), LimiterConfig::default());
    let judge = |check: &Check<'_>| limiter.check_now(check.domain, &check.descriptors(), 1);
    checks.iter().map(judge).collect()
}

fn says_why(faults: &Faults) {
    assert!(!faults.shown().is_empty(), "a refusal says why");
    for Fault { detail, pointer } in faults.shown() {
        assert!(!detail.is_empty(), "a fault has a reason");
        assert!(pointer.starts_with('#'), "and a place");
        assert!(pointer.is_ascii(), "that is a URI fragment");
    }
}

fn is_told(verdict: &Verdict) {
    for dialect in Dialect::ALL {
        headers(verdict, &dialect.into(), |_, value| {
            let is_printable = |byte: u8| (b' '..=b'~').contains(&byte);
            assert!(value.bytes().all(is_printable), "{value:?}");
        });
    }
    serde_json::to_vec(&Checked::from(verdict)).expect("an answer alone is JSON too");
    assert_eq!(problem(verdict, 429, None).is_some(), !verdict.is_allowed());
}
