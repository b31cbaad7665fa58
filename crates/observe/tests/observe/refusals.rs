//! The log of refusals.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use tidegate_observe::{KeyLogging, ObserveConfig, RefusalLog, Sampling};

use crate::fixture::watched;

const YAML: &str = "
domain: test
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 2 }
";

/// Where a log is written.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What is logged of `n` requests, of which the first two pass.
fn logged(refusals: RefusalLog, n: usize) -> Vec<String> {
    let config = ObserveConfig {
        refusals,
        ..ObserveConfig::default()
    };
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(move || writer.clone())
        .with_ansi(false)
        .without_time()
        .finish();
    tracing::subscriber::with_default(subscriber, || {
        let watched = watched(YAML, config);
        for _ in 0..n {
            watched.ask(&[("user", "client\nINFO fake")], 1);
        }
    });
    let bytes = log.0.lock().unwrap().clone();
    let text = String::from_utf8(bytes).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn share(millionths: u32, keys: KeyLogging) -> RefusalLog {
    RefusalLog::Sampled {
        share: Sampling::from_millionths(millionths),
        keys,
    }
}

#[test]
fn a_line_names_the_rule_and_not_the_client() {
    let expected = " INFO tidegate::refusals: refused domain=\"test\" rule=\"user\" \
        limit=\"2 per minute, fixed_window\" retry_after_ms=60000";
    let lines = logged(share(1_000_000, KeyLogging::Hidden), 4);
    assert_eq!(lines, [expected; 2]);
}

#[test]
fn the_client_is_named_if_asked_for_and_writes_no_line_of_its_own() {
    let lines = logged(share(1_000_000, KeyLogging::Shown), 3);
    assert_eq!(lines.len(), 1);
    assert!(
        lines[0].contains("key=\"user=client\u{fffd}INFO fake\""),
        "{lines:?}"
    );
}

#[test]
fn some_of_them_are_logged() {
    let n_lines = logged(share(100_000, KeyLogging::Hidden), 10_002).len();
    // Eight standard deviations of 30 around the mean.
    assert!(n_lines.abs_diff(1_000) < 240, "{n_lines}");
}

#[test]
fn none_is_logged_unless_asked_for() {
    assert_eq!(logged(RefusalLog::Off, 4), [""; 0]);
}
