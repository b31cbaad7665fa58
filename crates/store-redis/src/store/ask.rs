//! What every call has in common.

use tidegate_algorithms::{Decision, Time};
use tidegate_store::StoreError;

use super::{RedisStore, TimeArgument};
use crate::client::{Command, Reply, Route};
use crate::counter::{bend, time};
use crate::key::Key;

// === impl RedisStore ===

impl RedisStore {
    pub(super) async fn ask_time(&self) -> Result<Time, StoreError> {
        let argument = self.time.next();
        let write = |command: &mut Command<'_>| {
            command.number(0);
            TimeArgument::write(argument, command);
        };
        let reply = self
            .client
            .eval(Route::Any, &self.scripts.now, write)
            .await?;
        told_time(&reply, reply.text()?)
    }

    /// Holds a decision against the script's word, which stands.
    pub(super) fn heed(&self, decision: &mut Decision, word: u8) {
        let is_allowed = word == b'1';
        if decision.is_allowed() != is_allowed {
            self.disagreements
                .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            bend(decision, is_allowed);
        }
    }
}

/// The time in a reply.
pub(super) fn told_time(reply: &Reply, text: Option<&[u8]>) -> Result<Time, StoreError> {
    text.and_then(time).ok_or_else(|| reply.unexpected())
}

/// An error of a script with the keys it was about: Redis does not say which one holds something else.
#[cold]
pub(super) fn about_keys(error: StoreError, keys: &[Key]) -> StoreError {
    match error {
        StoreError::Unavailable { reason } if reason.starts_with("WRONGTYPE") => {
            let keys: Vec<_> = keys.iter().map(Key::to_string).collect();
            let reason = format!("{reason} (of {})", keys.join(", "));
            StoreError::Unavailable {
                reason: reason.into(),
            }
        }
        error => error,
    }
}

// === impl TimeArgument ===

impl TimeArgument {
    /// What to tell the header of one call.
    pub(super) fn next(&self) -> Option<u64> {
        match self {
            Self::Nothing => None,
            #[cfg(feature = "test-util")]
            Self::Number(number) => Some(number.load(std::sync::atomic::Ordering::Relaxed)),
            #[cfg(feature = "test-util")]
            Self::Next(next) => Some(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)),
        }
    }

    pub(super) fn write(argument: Option<u64>, command: &mut Command<'_>) {
        if let Some(number) = argument {
            command.number(number);
        }
    }
}
