//! Totals that nodes exchange, in Redis.

mod key;

use std::time::Duration;

use futures_util::future::join;
use futures_util::stream::{FuturesOrdered, StreamExt};
use tidegate_algorithms::Time;
use tidegate_store::{
    CounterSums, CounterUpdate, EpochInfo, ExchangeReply, NodeId, StoreError, Totals, TotalsSender,
};

use self::key::Keys;
use crate::client::{Array, Client, Command, Reply, Route, Script};
use crate::node::{NOW, name};

/// The script that exchanges totals, without the line that sets the time.
const EXCHANGE: &str = include_str!("../scripts/exchange.lua");

/// The script that renews a node's membership, without the same line.
const GREET: &str = include_str!("../scripts/greet.lua");

/// Deadline of an exchange. No request waits for it, and another region may be far.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Counters in one script, where all keys are on one server: Redis does nothing else for about a tenth
/// of a millisecond.
const SCRIPT_COUNTERS: usize = 32;

/// Counters on their way at one time, so that an exchange of up to as many is one round trip. A
/// connection takes twice as many calls, and these are about 4 MB.
const PENDING_COUNTERS: usize = 8 * 1024;

/// The totals of one installation.
#[derive(Clone, Debug)]
pub struct RedisTotals {
    client: Client,
    exchange: Script,
    greet: Script,
    keys: Keys,
}

// === impl RedisTotals ===

impl RedisTotals {
    /// The totals of the installation that is called `name`, among those that share a Redis.
    pub fn new(client: &Client, name: &str) -> Self {
        Self::with_header(client, name, NOW)
    }

    /// The same with a time that the test sets: in microseconds, in a key of this name in the slot of
    /// every other, so for one server only.
    #[cfg(feature = "test-util")]
    pub fn by_stored_time(client: &Client, name: &str, time_key: &str) -> Self {
        let now = format!("local now = tonumber(redis.call('GET', '{time_key}'))\n");
        Self::with_header(client, name, &now)
    }

    fn with_header(client: &Client, name: &str, now: &str) -> Self {
        Self {
            client: client.with_timeout(TIMEOUT),
            exchange: Script::new(format!("{now}{EXCHANGE}")),
            greet: Script::new(format!("{now}{GREET}")),
            keys: Keys::new(name),
        }
    }

    async fn greet(&self, sender: TotalsSender) -> Result<ExchangeReply, StoreError> {
        let key = self.keys.members();
        let write = |command: &mut Command<'_>| {
            command.number(1).arg(key).arg(name(sender.node));
            command.number(sender.life.as_micros());
        };
        let route = Route::Key(key.as_bytes());
        let reply = self.client.eval(route, &self.greet, write).await?;
        read_greeting(&reply).ok_or_else(|| reply.unexpected())
    }

    /// Exchanges all counters, in scripts that are all sent before the first reply is there.
    async fn exchange_all(
        &self,
        node: NodeId,
        updates: &[CounterUpdate<'_>],
        replies: &mut Vec<CounterSums>,
    ) -> Result<(), StoreError> {
        let per_script = self.per_script();
        let mut chunks = updates.chunks(per_script);
        let mut pending = FuturesOrdered::new();
        for chunk in chunks.by_ref().take(PENDING_COUNTERS / per_script) {
            pending.push_back(self.exchange_some(node, chunk));
        }
        while let Some(sums) = pending.next().await {
            replies.extend(sums?);
            if let Some(chunk) = chunks.next() {
                pending.push_back(self.exchange_some(node, chunk));
            }
        }
        Ok(())
    }

    async fn exchange_some(
        &self,
        node: NodeId,
        updates: &[CounterUpdate<'_>],
    ) -> Result<Vec<CounterSums>, StoreError> {
        let keys: Vec<[String; 2]> = updates.iter().map(|it| self.keys.of(it)).collect();
        let write = |command: &mut Command<'_>| {
            command.number(keys.len() * 2);
            for key in keys.iter().flatten() {
                command.arg(key);
            }
            command.arg(name(node));
            for update in updates {
                write_update(update, command);
            }
        };
        let first = keys.first().map_or("", |[current, _]| current);
        let route = Route::Key(first.as_bytes());
        let reply = self.client.eval(route, &self.exchange, write).await?;
        read_sums(&reply, updates).ok_or_else(|| reply.unexpected())
    }

    /// How many counters one script can exchange.
    fn per_script(&self) -> usize {
        if self.client.is_cluster() {
            // Each counter has a hash slot of its own.
            1
        } else {
            SCRIPT_COUNTERS
        }
    }
}

impl Totals for RedisTotals {
    async fn exchange(
        &self,
        sender: TotalsSender,
        updates: &[CounterUpdate<'_>],
        replies: &mut Vec<CounterSums>,
    ) -> Result<ExchangeReply, StoreError> {
        replies.clear();
        // The membership goes last, with as many as are one round trip, so that the time in its reply is
        // not old when all replies are in.
        let (early, last) = updates.split_at(updates.len().saturating_sub(PENDING_COUNTERS));
        let early = self.exchange_all(sender.node, early, replies).await;
        let last = self.exchange_all(sender.node, last, replies);
        let (last, greeted) = join(last, self.greet(sender)).await;
        early.and(last).and(greeted)
    }
}

fn write_update(update: &CounterUpdate<'_>, command: &mut Command<'_>) {
    let start = update.epoch().saturating_mul(update.epoch_slots);
    command.number(update.expiry().as_millis().max(1));
    command.number(update.epoch_slots);
    write_slot(update.first, start, command);
    write_slot(update.current, start, command);
    command.number(update.base).number(update.totals.len());
    for total in update.totals {
        write_slot(total.slot, start, command);
        command.number(total.admitted).number(total.refunded);
    }
}

/// Writes a slot as counted from `start`; those before it are below 0.
fn write_slot(slot: u64, start: u64, command: &mut Command<'_>) {
    match slot.checked_sub(start) {
        Some(slot) => command.number(slot),
        None => command.arg(format!("-{}", start - slot)),
    };
}

pub(crate) fn read_greeting(reply: &Reply) -> Option<ExchangeReply> {
    let mut values = reply.array().ok()?;
    let mut next = || values.next()?.unsigned();
    Some(ExchangeReply {
        now: Time::from_micros(next()?),
        members: u32::try_from(next()?).ok()?,
        previous: Some(next()?)
            .filter(|previous| *previous > 0)
            .map(Time::from_micros),
    })
}

/// Reads one reply for each update; `None` if the reply has another shape.
pub(crate) fn read_sums(reply: &Reply, updates: &[CounterUpdate<'_>]) -> Option<Vec<CounterSums>> {
    let replies = reply.array().ok()?;
    if replies.len() != updates.len() {
        return None;
    }
    let read = |(value, update): (crate::client::Value<'_>, &CounterUpdate<'_>)| {
        read_counter(value.array()?, update)
    };
    replies.zip(updates).map(read).collect()
}

fn read_counter(mut values: Array<'_>, update: &CounterUpdate<'_>) -> Option<CounterSums> {
    let start = update.epoch().saturating_mul(update.epoch_slots);
    let mut info = || {
        Some(EpochInfo {
            created: values.next()?.unsigned()?,
            base: values.next()?.unsigned()?,
        })
    };
    let (current, before) = (info()?, info()?);
    let mut sums = smallvec::SmallVec::new();
    while let Some(slot) = values.next() {
        let slot = start.checked_add_signed(slot.integer()?)?;
        let is_expected = (update.first..=update.current).contains(&slot);
        if !is_expected || sums.last().is_some_and(|&(last, _)| last >= slot) {
            return None;
        }
        sums.push((slot, values.next()?.integer()?));
    }
    Some(CounterSums {
        current,
        before,
        sums,
    })
}
