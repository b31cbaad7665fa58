//! A look at all counters.

use std::hash::{DefaultHasher, Hasher};
use std::time::Duration;

use tidegate_algorithms::Time;
use tidegate_store::{Counter, Cursor, Page, StoreError};

use super::ask::told_time;
use super::{RedisStore, TimeArgument};
use crate::client::{Command, Reply, Route, Value};
use crate::key::Key;

/// Bits of a cursor that say where on a server to go on; those above say on which server.
const SERVER_SHIFT: u32 = 56;

/// The most keys that are looked at in one step: Redis does nothing else meanwhile.
const MOST_KEYS: usize = 1_000;

// === impl RedisStore ===

impl RedisStore {
    pub(super) async fn list_page(&self, cursor: Cursor, most: usize) -> Result<Page, StoreError> {
        let server = usize::try_from(cursor.0 >> SERVER_SHIFT).unwrap_or(usize::MAX);
        let at = cursor.0 & ((1 << SERVER_SHIFT) - 1);
        if self.client.servers() == 0 {
            // A Cluster is not known before somebody has asked it.
            self.ask_time().await?;
        }
        let (argument, pattern) = (self.time.next(), self.installation.pattern());
        let write = |command: &mut Command<'_>| {
            command.number(0).number(at).arg(&pattern);
            command.number(most.clamp(1, MOST_KEYS));
            TimeArgument::write(argument, command);
        };
        let route = Route::Server(server);
        let reply = self.client.eval(route, &self.scripts.list, write).await?;
        let (next, counters) = read(&reply)?;
        let next = match next {
            0 if server + 1 < self.client.servers() => Some(cursor_at(server + 1, 0)?),
            0 => None,
            next => Some(cursor_at(server, next)?),
        };
        Ok(Page { counters, next })
    }
}

fn cursor_at(server: usize, at: u64) -> Result<Cursor, StoreError> {
    let server = u8::try_from(server)
        .ok()
        .filter(|_| at >> SERVER_SHIFT == 0);
    let server = server.ok_or_else(|| StoreError::Unavailable {
        reason: "a cursor of Redis is too large to go on from".into(),
    })?;
    Ok(Cursor((u64::from(server) << SERVER_SHIFT) | at))
}

pub(super) fn read(reply: &Reply) -> Result<(u64, Vec<Counter>), StoreError> {
    let mut parts = reply.array()?;
    let now = told_time(reply, parts.next().and_then(|value| value.text()))?;
    let next = parts.next().and_then(|value| number(&value));
    let next = next.ok_or_else(|| reply.unexpected())?;
    let mut counters = Vec::new();
    while let Some(key) = parts.next() {
        let (ends, refused) = (parts.next(), parts.next());
        let counter = counter(key.text(), ends, refused, now);
        // Whoever writes other keys under our prefix is not listed.
        counters.extend(counter);
    }
    Ok((next, counters))
}

fn counter(
    key: Option<&[u8]>,
    ends: Option<Value<'_>>,
    refused: Option<Value<'_>>,
    now: Time,
) -> Option<Counter> {
    let key = key?;
    let ends = Time::from_micros(number(&ends?)?.saturating_mul(1_000));
    let mut hasher = DefaultHasher::new();
    hasher.write(key);
    let expires_after: Duration = ends.since(now);
    Some(Counter {
        fingerprint: hasher.finish(),
        window: Key::window_of(key)?,
        expires_after,
        refused: Some(refused?.integer()? == 1),
    })
}

fn number(value: &Value<'_>) -> Option<u64> {
    value.str()?.parse().ok()
}
