//! Answers one message of Envoy's as often as asked, from bytes to bytes, and says how many were
//! answered: `messages 1000`. The test of the instruction count runs it under callgrind.

use std::env;
use std::hint::black_box;
use std::process::ExitCode;

use bytes::BytesMut;
use tidegate_limiter::{Limiter, LimiterConfig};
use tidegate_rules::{CompileOptions, Source, compile};
use tidegate_server::test_util::answer_question;
use tidegate_store::{EmbeddedStore, StoreConfig};

const RULES: &str = "
domain: bench
descriptors:
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 1000000 }
";

/// `RateLimitRequest` of `user=u0000042` in the domain `bench`.
const MESSAGE: &[u8] = b"\x0a\x05bench\x12\x12\x0a\x10\x0a\x04user\x12\x08u0000042";

fn main() -> ExitCode {
    let n_messages = env::args().nth(1).and_then(|text| text.parse().ok());
    let Some(n_messages) = n_messages else {
        eprintln!("usage: messages NUMBER");
        return ExitCode::from(2);
    };
    let source = Source {
        name: "bench.yaml".to_owned(),
        bytes: RULES.into(),
    };
    let compiled = compile(&[source], &CompileOptions::default());
    let rules = compiled.expect("the rules are sound").rules;
    let store = EmbeddedStore::new(StoreConfig::default());
    let limiter = Limiter::new(store, rules, LimiterConfig::default());
    // The first one makes the counter.
    answer_repeatedly(&limiter, 1);
    let n_answered = answer_repeatedly(&limiter, n_messages);
    println!("{n_answered} of {n_messages} answered");
    ExitCode::SUCCESS
}

/// What is measured: the tool counts from entering this function until it returns.
#[inline(never)]
fn answer_repeatedly(limiter: &Limiter<EmbeddedStore>, n_messages: u64) -> usize {
    let mut out = BytesMut::with_capacity(1024);
    let is_answered = |_: &u64| {
        out.clear();
        answer_question(black_box(MESSAGE), limiter, &mut out).is_ok() && !out.is_empty()
    };
    (0..n_messages).filter(is_answered).count()
}
