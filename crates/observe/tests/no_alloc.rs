//! To write down a verdict allocates nothing, whether it is looked at for its key or not.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use allocation_counter::measure;
use tidegate_limiter::{Descriptor, Entry, Limiter, LimiterConfig, Verdict};
use tidegate_observe::{
    DecisionConfig, LimiterRequest, Observatory, ObserveConfig, Recorder, TraceHeaders,
};
use tidegate_rules::{CompileOptions, Source, compile};
use tidegate_store::{EmbeddedStore, StoreConfig};

const YAML: &str = "
domain: test
descriptors:
  - key: user
    rate_limits:
      - { unit: second, requests_per_unit: 1000 }
      - { unit: day, requests_per_unit: 1000 }
  - key: nobody
    rate_limit: { unit: hour, requests_per_unit: 0 }
";

fn record(recorder: &Recorder, key: &str, value: &str, verdict: &Verdict) {
    let entries = [Entry { key, value }];
    let request = LimiterRequest {
        domain: "test",
        descriptors: &[Descriptor::new(&entries)],
        hits: 1,
        route: None,
        trace: TraceHeaders::default(),
    };
    recorder.judged(&request, verdict, Duration::from_micros(1));
}

/// Records a request for each of `n_values` values, over and over, and counts what the second half
/// allocates.
#[track_caller]
fn check(key: &str, n_values: usize) {
    let source = Source {
        name: "test.yaml".to_owned(),
        bytes: YAML.into(),
    };
    let rules = compile(&[source], &CompileOptions::default())
        .unwrap()
        .rules;
    let store = EmbeddedStore::new(StoreConfig {
        max_memory: 8 << 20,
    });
    let limiter = Limiter::new(store, rules, LimiterConfig::default());
    let entries = [Entry { key, value: "1" }];
    let descriptors = [Descriptor::new(&entries)];
    let verdict = limiter.check_now("test", &descriptors, 1).unwrap();
    // So few decisions that the first half has allocated all of their memory.
    let decisions = DecisionConfig {
        capacity: 1_024,
        sample_one_in: NonZeroU32::new(4),
    };
    let config = ObserveConfig {
        decisions: Some(decisions),
        ..ObserveConfig::default()
    };
    let recorder = Arc::new(Observatory::new(config).0).recorder();
    let values: Vec<String> = (0..n_values).map(|n| format!("{n:08}")).collect();
    let record_all = || {
        for n in 0..10_000 {
            record(&recorder, key, &values[n % n_values], &verdict);
        }
    };
    record_all();
    let allocated = measure(record_all);
    assert_eq!(allocated.count_total, 0, "{key} with {n_values} values");
}

#[test]
fn known_keys_allocate_nothing() {
    check("user", 1);
    check("nobody", 1);
    check("unmatched", 1);
}

#[test]
fn keys_that_replace_others_allocate_nothing() {
    check("user", 1_000);
}
