//! Token keys behind a URL: fetched at start, every five minutes, and when a token names a key that is not among them.

use std::fmt;
use std::time::Duration;

use http::Uri;
use tidegate_gateway::{TargetConfig, fetch};
use tidegate_identify::TokenKeys;
use tokio::time::{Interval, MissedTickBehavior, interval};
use tracing::warn;

use crate::config::{Config, TokenKeyPlace};
use crate::failure::Failure;
use crate::identity::warn_of_left_out;

/// A set of token keys behind an https URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeySetFetch(Uri);

/// The times at which keys are fetched, counted in ticks, so that no clock is read.
#[derive(Debug)]
pub(super) struct Schedule {
    ticks: Interval,
    /// The key set that is fetched.
    fetched: Option<KeySetFetch>,
    since_fetch: u32,
    unknown_before: u64,
}

/// A tick.
const TICK: Duration = Duration::from_secs(5);

/// Ticks between two fetches: five minutes, in which a provider that rotates keys has published the new one long before it
/// signs with it.
const USUAL: u32 = 60;

/// Ticks before a token with an unknown key leads to a fetch: one minute, because anybody can send such tokens.
const UNKNOWN_KEY: u32 = 12;

/// Ticks between two attempts while there are no keys at all.
const NO_KEYS: u32 = 2;

/// As many bytes as a key set may have.
const MAX_BYTES: usize = 1 << 20;

/// The longest time that a fetch takes.
const LONGEST: Duration = Duration::from_secs(5);

// === impl KeySetFetch ===

impl KeySetFetch {
    /// The key set that the settings name by a URL.
    pub(super) fn of(config: &Config) -> Option<Self> {
        match &config.identity.tokens.as_ref()?.keys {
            TokenKeyPlace::Url(url) => Some(Self(url.clone())),
            TokenKeyPlace::Pem(_) | TokenKeyPlace::Secret(_) | TokenKeyPlace::KeySet(_) => None,
        }
    }

    /// Fetches the keys for a start. Without them no token is good, but the gateway runs, and they are fetched again soon.
    pub(super) async fn first(&self) -> Option<TokenKeys> {
        match self.fetch().await {
            Ok(keys) => {
                warn_of_left_out(&keys, self);
                Some(keys)
            }
            Err(reason) => {
                warn!(
                    url = %self,
                    "cannot fetch token keys: {reason}; until they are there, no token is good"
                );
                None
            }
        }
    }

    /// Fetches the keys for a reload, which fails without them: settings with no keys must not replace settings with good ones.
    pub(super) async fn for_reload(&self) -> Result<TokenKeys, Failure> {
        let keys = self.fetch().await.map_err(|reason| Failure::NoTokenKeys {
            url: self.to_string(),
            reason,
        })?;
        warn_of_left_out(&keys, self);
        Ok(keys)
    }

    /// Fetches the keys.
    pub(super) async fn fetch(&self) -> Result<TokenKeys, String> {
        let Self(url) = self;
        let target = TargetConfig {
            is_tls: true,
            host: url
                .host()
                .unwrap_or_default()
                .trim_matches(['[', ']'])
                .to_owned(),
            port: url.port_u16().unwrap_or(443),
        };
        let path = url.path_and_query().map_or("/", |path| path.as_str());
        let text = fetch(target, path, MAX_BYTES, LONGEST).await;
        let text = text.map_err(|error| error.to_string())?;
        TokenKeys::from_jwks(&text).map_err(|fault| fault.to_string())
    }
}

impl fmt::Display for KeySetFetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// === impl Schedule ===

impl Schedule {
    /// The keys of this set have just been fetched.
    pub(super) fn new(fetched: Option<KeySetFetch>) -> Self {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick would come at once.
        ticks.reset();
        Self {
            ticks,
            fetched,
            since_fetch: 0,
            unknown_before: 0,
        }
    }

    /// Waits for the next tick.
    pub(super) async fn tick(&mut self) {
        self.ticks.tick().await;
        self.since_fetch = self.since_fetch.saturating_add(1);
    }

    /// Names the key set in force. Another one has just been fetched by the reload that put it in force. `unknown` is as for
    /// [`is_due`](Self::is_due).
    pub(super) fn follow(&mut self, fetch: Option<&KeySetFetch>, unknown: u64) {
        if self.fetched.as_ref() != fetch {
            self.fetched = fetch.cloned();
            self.since_fetch = 0;
            self.unknown_before = unknown;
        }
    }

    /// Returns true if the keys are to be fetched now. `unknown` is the number of tokens so far that named a key which is
    /// not in the set.
    pub(super) fn is_due(&mut self, has_keys: bool, unknown: u64) -> bool {
        let least = match has_keys {
            false => NO_KEYS,
            true if unknown != self.unknown_before => UNKNOWN_KEY,
            true => USUAL,
        };
        if self.since_fetch < least {
            return false;
        }
        self.since_fetch = 0;
        self.unknown_before = unknown;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ticks at which keys are fetched.
    fn fetches(ticks: u32, has_keys: bool, unknown_at: impl Fn(u32) -> u64) -> Vec<u32> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        let _entered = runtime.as_ref().map(|it| it.enter()).expect("a runtime");
        let mut schedule = Schedule::new(None);
        let due = (1..=ticks).filter(|tick| {
            schedule.since_fetch += 1;
            schedule.is_due(has_keys, unknown_at(*tick))
        });
        due.collect()
    }

    #[test]
    fn keys_are_fetched_every_five_minutes() {
        assert_eq!(fetches(130, true, |_| 0), [60, 120]);
    }

    #[test]
    fn an_unknown_key_is_looked_for_once_a_minute_at_most() {
        assert_eq!(fetches(40, true, u64::from), [12, 24, 36]);
        assert_eq!(fetches(80, true, |tick| u64::from(tick > 20)), [21]);
    }

    #[test]
    fn a_set_that_a_reload_has_fetched_is_fetched_again_after_a_minute() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        let _entered = runtime.as_ref().map(|it| it.enter()).expect("a runtime");
        let set = |url: &'static str| Some(KeySetFetch(Uri::from_static(url)));
        let (old, new) = (set("https://old.example/"), set("https://new.example/"));
        let mut schedule = Schedule::new(old);
        schedule.since_fetch = UNKNOWN_KEY;
        schedule.follow(new.as_ref(), 7);
        assert!(!schedule.is_due(true, 8), "fetched a moment ago");
        schedule.since_fetch = UNKNOWN_KEY;
        schedule.follow(new.as_ref(), 7);
        assert!(!schedule.is_due(true, 7), "no token with an unknown key");
        assert!(schedule.is_due(true, 8));
    }

    #[test]
    fn without_keys_they_are_fetched_soon() {
        assert_eq!(fetches(5, false, |_| 0), [2, 4]);
    }
}
