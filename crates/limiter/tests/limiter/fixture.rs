//! A limiter on a clock that stands still, and verdicts as short texts.

use std::fmt::Write;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tidegate_algorithms::Time;
use tidegate_limiter::{
    Answer, Descriptor, Entry, Hits, LimitOverride, Limiter, LimiterConfig, LimiterError, Ruling,
    Status, Verdict,
};
use tidegate_rules::{CompileOptions, RuleSet, Source, compile};
use tidegate_store::{EmbeddedStore, ManualClock, StoreConfig};

pub(crate) type TestLimiter = Limiter<EmbeddedStore<ManualClock>>;

/// A descriptor of a test, owned by nobody.
#[derive(Clone, Copy)]
pub(crate) struct Ask<'a> {
    pub(crate) entries: &'a [(&'a str, &'a str)],
    pub(crate) hits: Hits,
    pub(crate) limit: Option<LimitOverride>,
}

/// 2026-11-15 12:00:00 UTC, which is a multiple of a minute, an hour and a half day.
pub(crate) const NOON: Time = Time::from_micros(1_794_744_000_000_000);

pub(crate) fn rules(yaml: &str) -> RuleSet {
    let source = Source {
        name: "test.yaml".to_owned(),
        bytes: yaml.into(),
    };
    match compile(&[source], &CompileOptions::default()) {
        Ok(compiled) => compiled.rules,
        Err(report) => panic!("{report}"),
    }
}

pub(crate) fn limiter(yaml: &str) -> TestLimiter {
    limiter_with(yaml, LimiterConfig::default())
}

pub(crate) fn limiter_with(yaml: &str, config: LimiterConfig) -> TestLimiter {
    let store = EmbeddedStore::with_clock(StoreConfig::default(), ManualClock::at(NOON));
    Limiter::new(store, rules(yaml), config)
}

pub(crate) fn advance(limiter: &TestLimiter, by: Duration) {
    limiter.store().clock().advance(by);
}

/// Asks in domain `test` with one hit.
pub(crate) fn ask(limiter: &TestLimiter, asks: &[Ask<'_>]) -> Verdict {
    ask_hits(limiter, asks, 1)
}

pub(crate) fn ask_hits(limiter: &TestLimiter, asks: &[Ask<'_>], hits: u64) -> Verdict {
    try_ask(limiter, "test", asks, hits).unwrap()
}

pub(crate) fn try_ask(
    limiter: &TestLimiter,
    domain: &str,
    asks: &[Ask<'_>],
    hits: u64,
) -> Result<Verdict, LimiterError> {
    with_descriptors(asks, |descriptors| {
        limiter.check_now(domain, descriptors, hits)
    })
}

pub(crate) fn with_descriptors<T>(
    asks: &[Ask<'_>],
    then: impl FnOnce(&[Descriptor<'_>]) -> T,
) -> T {
    let entry = |&(key, value): &_| Entry { key, value };
    let entries: Vec<Vec<Entry<'_>>> = asks
        .iter()
        .map(|ask| ask.entries.iter().map(entry).collect())
        .collect();
    let descriptors: Vec<Descriptor<'_>> = asks
        .iter()
        .zip(&entries)
        .map(|(ask, entries)| Descriptor {
            entries,
            hits: ask.hits,
            limit: ask.limit,
        })
        .collect();
    then(&descriptors)
}

/// Asks `asks` and compares the verdict's [`text`].
#[track_caller]
pub(crate) fn check(limiter: &TestLimiter, asks: &[Ask<'_>], expected: &str) {
    assert_eq!(text(&ask(limiter, asks)), expected);
}

/// A verdict as text: the answer, then each descriptor's answer with what remains of its deciding
/// limit, such as `refused: allowed 4/5, refused 0/10 near`.
pub(crate) fn text(verdict: &Verdict) -> String {
    let mut text = format!("{}:", word(verdict.answer()));
    for status in verdict.statuses() {
        let comma = if text.ends_with(':') { "" } else { "," };
        let _ = write!(text, "{comma} {}", status_text(&status));
    }
    text
}

fn status_text(status: &Status<'_>) -> String {
    let mut text = word(status.answer()).to_owned();
    match status
        .deciding()
        .and_then(|limit| limit.decision().copied())
    {
        Some(decision) => {
            let _ = write!(text, " {}/{}", decision.remaining, decision.limit);
        }
        None if status.is_unlimited() => text.push_str(" unlimited"),
        None if status
            .limits()
            .any(|limit| limit.ruling() == Ruling::Replaced) =>
        {
            text.push_str(" replaced");
        }
        None if status.limits().len() > 0 => text.push_str(" undecided"),
        None => text.push_str(" free"),
    }
    if status.is_near() {
        text.push_str(" near");
    }
    if status.is_shadowed() {
        text.push_str(" shadowed");
    }
    text
}

fn word(answer: Answer) -> &'static str {
    match answer {
        Answer::Allowed => "allowed",
        Answer::Refused => "refused",
    }
}

/// What a future comes to that needs no waiting: the embedded store answers at once.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the embedded store does not wait"),
    }
}

// === impl Ask ===

impl<'a> Ask<'a> {
    pub(crate) const fn of(entries: &'a [(&'a str, &'a str)]) -> Self {
        Self {
            entries,
            hits: Hits::OfRequest,
            limit: None,
        }
    }

    pub(crate) const fn hits(mut self, hits: Hits) -> Self {
        self.hits = hits;
        self
    }

    pub(crate) const fn limit(mut self, requests: u64, window: Duration) -> Self {
        self.limit = Some(LimitOverride {
            requests,
            window,
            consistency: None,
        });
        self
    }
}
