//! The log of refusals.

use std::io::{self, Write};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use tidegate_limiter::{BanTerm, Entry, NewBan};
use tidegate_observe::{KeyLogging, ObserveConfig, RefusalLog, Sampling};

use crate::fixture::{Watched, watched};

const YAML: &str = "
domain: test
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 2 }
  - key: guest
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
    logged_while(refusals, |watched| {
        for _ in 0..n {
            watched.ask(&[("user", "client\nINFO fake")], 1);
        }
    })
}

fn logged_while(refusals: RefusalLog, ask: impl FnOnce(&Watched)) -> Vec<String> {
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
        ask(&watched(YAML, config));
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

#[test]
fn a_ban_is_logged_where_there_is_no_limit() {
    let guest = [Entry {
        key: "guest",
        value: "42",
    }];
    let ban = NewBan {
        term: BanTerm::UntilLifted,
        reason: None,
    };
    let lines = logged_while(share(1_000_000, KeyLogging::Hidden), |watched| {
        let banned = pin!(watched.limiter.ban("test", &guest, ban));
        let banned = banned.poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(banned, Poll::Ready(Ok(())));
        watched.ask(&[("guest", "42")], 1);
    });
    assert_eq!(lines, [" INFO tidegate::refusals: refused domain=\"test\""]);
}
