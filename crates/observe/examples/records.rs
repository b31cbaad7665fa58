//! Writes down one verdict as often as asked, and says how many were: `records allowed 1000`. The test
//! of the instruction count runs it under callgrind.

use std::env;
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tidegate_limiter::{Descriptor, Entry, Limiter, LimiterConfig, RuleSet, Verdict};
use tidegate_observe::{LimiterRequest, Observatory, Recorder, TraceHeaders};
use tidegate_rules::{CompileOptions, Report, Source, compile};
use tidegate_store::{EmbeddedStore, StoreConfig};

/// A rule that admits, and one that refuses.
const YAML: &str = "
domain: api
descriptors:
  - key: allowed
    rate_limit: { unit: hour, requests_per_unit: 1000000 }
  - key: refused
    rate_limit: { unit: hour, requests_per_unit: 0 }
";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let [key, n_records] = args.as_slice() else {
        return usage();
    };
    let (Ok(n_records), Ok(rules)) = (n_records.parse(), rules()) else {
        return usage();
    };
    let store = EmbeddedStore::new(StoreConfig::default());
    let limiter = Limiter::new(store, rules, LimiterConfig::default());
    let entries = [Entry {
        key,
        value: "8c1f0b6e-3f59-4c1e-9d59-1c0b7f5a2e44",
    }];
    let descriptors = [Descriptor::new(&entries)];
    let Ok(verdict) = limiter.check_now("api", &descriptors, 1) else {
        return usage();
    };
    let request = LimiterRequest {
        domain: "api",
        descriptors: &descriptors,
        hits: 1,
        route: None,
        trace: TraceHeaders::default(),
    };
    let observatory = Arc::new(Observatory::default());
    let recorder = observatory.recorder();
    // The first of a window are all looked at.
    for _ in 0..1_000 {
        recorder.judged(&request, &verdict, Duration::from_nanos(400));
    }
    record_repeatedly(&recorder, &request, &verdict, n_records);
    let totals = observatory.totals();
    println!("{} recorded", totals.allowed + totals.refused - 1_000);
    ExitCode::SUCCESS
}

/// What is measured: the tool counts from entering this function until it returns.
#[inline(never)]
fn record_repeatedly(
    recorder: &Recorder,
    request: &LimiterRequest<'_>,
    verdict: &Verdict,
    n_records: u64,
) {
    for _ in 0..n_records {
        recorder.judged(
            black_box(request),
            black_box(verdict),
            black_box(Duration::from_nanos(400)),
        );
    }
}

fn rules() -> Result<RuleSet, Report> {
    let source = Source {
        name: "rules.yaml".to_owned(),
        bytes: YAML.into(),
    };
    Ok(compile(&[source], &CompileOptions::default())?.rules)
}

fn usage() -> ExitCode {
    eprintln!("usage: records allowed|refused NUMBER");
    ExitCode::from(2)
}
