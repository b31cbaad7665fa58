//! A limiter on a clock that stands still, and answers as text.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tidegate_answer::{Dialect, Headers, headers};
use tidegate_limiter::{
    BanTerm, Descriptor, Entry, Hits, Limiter, LimiterConfig, NewBan, RuleSet, Store, Time, Verdict,
};
use tidegate_rules::{CompileOptions, Source, compile};
use tidegate_store::{EmbeddedStore, ManualClock, StoreConfig};

pub(crate) type TestLimiter = Limiter<EmbeddedStore<ManualClock>>;

/// 2026-11-15 12:00:00 UTC, which is a multiple of a minute, an hour and a half day.
pub(crate) const NOON: Time = Time::from_micros(1_794_744_000_000_000);

/// Who asks.
const CALLER: &str = "somebody";

/// A limiter for `descriptors`, the list of a rules file.
pub(crate) fn limiter(descriptors: &str) -> TestLimiter {
    let store = EmbeddedStore::with_clock(StoreConfig::default(), ManualClock::at(NOON));
    Limiter::new(store, compiled(descriptors), LimiterConfig::default())
}

pub(crate) fn compiled(descriptors: &str) -> RuleSet {
    let source = Source {
        name: "test.yaml".to_owned(),
        bytes: format!("domain: test\ndescriptors:\n{descriptors}").into(),
    };
    match compile(&[source], &CompileOptions::default()) {
        Ok(compiled) => compiled.rules,
        Err(report) => panic!("{report}"),
    }
}

pub(crate) fn advance(limiter: &TestLimiter, by: Duration) {
    limiter.store().clock().advance(by);
}

/// Bans who comes with `key`.
pub(crate) fn ban(limiter: &TestLimiter, key: &str, term: BanTerm) {
    let entries = [Entry { key, value: CALLER }];
    let new = NewBan { term, reason: None };
    let banned = pin!(limiter.ban("test", &entries, new));
    let polled = banned.poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Ready(Ok(()))), "{polled:?}");
}

/// Asks with one descriptor of one entry for each of `keys`, all with the same value.
pub(crate) fn ask<S: Store>(limiter: &Limiter<S>, keys: &[&str], hits: Hits) -> Verdict {
    let value = CALLER;
    let entries: Vec<[Entry<'_>; 1]> = keys.iter().map(|key| [Entry { key, value }]).collect();
    let descriptors: Vec<Descriptor<'_>> = entries
        .iter()
        .map(|entries| Descriptor {
            hits,
            ..Descriptor::new(entries)
        })
        .collect();
    limiter.check_now("test", &descriptors, 1).unwrap()
}

/// The headers of `verdict`, a line each.
pub(crate) fn lines(verdict: &Verdict, otherwise: &Headers) -> Vec<String> {
    let mut lines = Vec::new();
    headers(verdict, otherwise, |name, value| {
        lines.push(format!("{name}: {value}"));
    });
    lines
}

/// The header `name` of `verdict` in `dialect`.
pub(crate) fn header(verdict: &Verdict, dialect: Dialect, name: &str) -> Option<String> {
    let mut found = None;
    headers(verdict, &dialect.into(), |its_name, value| {
        if its_name == name {
            assert_eq!(found, None, "{name} is told twice");
            found = Some(value.to_owned());
        }
    });
    found
}
