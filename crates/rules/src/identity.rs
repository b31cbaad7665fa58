//! The identity of a limit: a digest that is the same in every process, version and machine.
//!
//! Counters are kept under it, so a change of the encoding here forgets every counter: the pinned
//! values in the tests are there to stop that.

use std::hash::Hasher;
use std::time::Duration;

use siphasher::sip128::{Hasher128, SipHasher24};
use tidegate_algorithms::{Algorithm, Quota, Refill};

use crate::draft::{DraftRule, DraftTerms, Matcher};

/// The fixed key. It is no secret: the rules are the operator's own, and the store hashes what
/// callers send under a random key.
const KEY: (u64, u64) = (
    u64::from_le_bytes(*b"tidegate"),
    u64::from_le_bytes(*b"limit id"),
);

/// The digest of a domain and of the path down to a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathDigest(u128);

/// What decides whether a limit keeps its counters when the rules change: the algorithm, with the
/// parameters that change what its state means, and the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    algorithm: u8,
    parts: u16,
    window: Duration,
}

/// Fields one after another, each with its length, so that no two lists of fields look the same.
#[derive(Default)]
struct Encoder(Vec<u8>);

// === impl PathDigest ===

impl PathDigest {
    pub(crate) fn of_domain(name: &str) -> Self {
        Self(Encoder::default().text("domain").text(name).digest())
    }

    /// The path one level down. Digests are chained, so a long path costs no more than its own
    /// level.
    pub(crate) fn child(self, rule: &DraftRule) -> Self {
        let mut encoder = Encoder::default();
        encoder
            .text("rule")
            .bytes(&self.0.to_le_bytes())
            .text(&rule.key);
        match &rule.matcher {
            Matcher::Any => encoder.text("any"),
            Matcher::Values(values) => {
                let mut values: Vec<_> = values.iter().map(|value| value.inner.as_str()).collect();
                values.sort_unstable();
                encoder.text("values").texts(&values)
            }
            Matcher::Networks(networks) => {
                let mut networks: Vec<_> = networks
                    .iter()
                    .map(|network| network.inner.to_string())
                    .collect();
                networks.sort_unstable();
                let networks: Vec<_> = networks.iter().map(String::as_str).collect();
                encoder.text("networks").texts(&networks)
            }
        };
        Self(encoder.digest())
    }

    /// The identity of the rule that this path leads to.
    pub(crate) const fn rule(self) -> u128 {
        self.0
    }

    /// The identity of a limit of the rule that this path leads to. `place` counts the limits of
    /// the rule before it that have the same shape, so limits of other shapes may come and go.
    pub(crate) fn limit(self, shape: &Shape, place: usize) -> u128 {
        let mut encoder = Encoder::default();
        encoder
            .text("limit")
            .bytes(&self.0.to_le_bytes())
            .bytes(&[shape.algorithm])
            .bytes(&shape.parts.to_le_bytes())
            .bytes(&shape.window.as_nanos().to_le_bytes())
            .number(place);
        encoder.digest()
    }
}

// === impl Shape ===

impl Shape {
    pub(crate) fn of(terms: &DraftTerms) -> Self {
        match terms {
            DraftTerms::Unlimited => Self {
                algorithm: 0,
                parts: 0,
                window: Duration::ZERO,
            },
            DraftTerms::Quota(quota) => Self::of_quota(quota),
        }
    }

    fn of_quota(quota: &Quota) -> Self {
        let (algorithm, parts) = match quota.algorithm() {
            Algorithm::FixedWindow => (1, 0),
            Algorithm::TokenBucket {
                refill: Refill::Continuous,
                ..
            } => (2, 0),
            Algorithm::TokenBucket {
                refill: Refill::Interval,
                ..
            } => (3, 0),
            Algorithm::LeakyBucket { .. } => (4, 0),
            Algorithm::SlidingLog { .. } => (5, 0),
            Algorithm::SlidingCounter { sub_windows, .. } => (6, sub_windows),
        };
        Self {
            algorithm,
            parts,
            window: quota.window(),
        }
    }
}

// === impl Encoder ===

impl Encoder {
    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.number(bytes.len());
        self.0.extend_from_slice(bytes);
        self
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    fn texts(&mut self, texts: &[&str]) -> &mut Self {
        self.number(texts.len());
        for text in texts {
            self.text(text);
        }
        self
    }

    fn number(&mut self, number: usize) -> &mut Self {
        let number = u64::try_from(number).unwrap_or(u64::MAX);
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    fn digest(&self) -> u128 {
        let mut hasher = SipHasher24::new_with_keys(KEY.0, KEY.1);
        hasher.write(&self.0);
        hasher.finish128().as_u128()
    }
}
