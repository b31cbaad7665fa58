//! Where nodes tell each other their totals, in Redis.

mod key;

use std::time::Duration;

use futures_util::future::join;
use futures_util::stream::{FuturesOrdered, StreamExt};
use tidegate_algorithms::Time;
use tidegate_store::{
    Edge, Exchanged, Level, NodeId, StoreError, Sums, Tally, Teller, Telling, Totals,
};

use self::key::Keys;
use crate::client::{Array, Client, Command, Reply, Route, Script};
use crate::node::{NOW, name};

/// What telling does, after a line that says what time it is.
const TELL: &str = include_str!("../scripts/tell.lua");

/// What saying that one is there does, after the same line.
const GREET: &str = include_str!("../scripts/greet.lua");

/// How long an exchange may take. Nobody's request waits for it, and another region may be far.
const PATIENCE: Duration = Duration::from_secs(1);

/// Counters that one script tells of, where all keys are on one server: Redis does nothing else for about
/// a tenth of a millisecond.
const MOST_TOGETHER: usize = 32;

/// Counters that are on their way at one time, so that an exchange of up to as many is one round trip. A
/// link takes twice as many calls, and these are about 4 MB.
const MOST_UNDER_WAY: usize = 8 * 1024;

/// The totals of one installation.
#[derive(Clone, Debug)]
pub struct RedisTotals {
    client: Client,
    tell: Script,
    greet: Script,
    keys: Keys,
}

// === impl RedisTotals ===

impl RedisTotals {
    /// The totals of the installation that is called `name`, among those that share a Redis.
    pub fn new(client: &Client, name: &str) -> Self {
        Self::with_header(client, name, NOW)
    }

    /// The same with the time in a test's hands: in microseconds, in a key of this name in the slot of
    /// every other, so for one server only.
    #[cfg(feature = "test-util")]
    pub fn by_stored_time(client: &Client, name: &str, time_key: &str) -> Self {
        let now = format!("local now = tonumber(redis.call('GET', '{time_key}'))\n");
        Self::with_header(client, name, &now)
    }

    fn with_header(client: &Client, name: &str, now: &str) -> Self {
        Self {
            client: client.with_timeout(PATIENCE),
            tell: Script::new(format!("{now}{TELL}")),
            greet: Script::new(format!("{now}{GREET}")),
            keys: Keys::new(name),
        }
    }

    async fn greet(&self, teller: Teller) -> Result<Exchanged, StoreError> {
        let key = self.keys.members();
        let write = |command: &mut Command<'_>| {
            command.number(1).arg(key).arg(name(teller.node));
            command.number(teller.life.as_micros());
        };
        let route = Route::Key(key.as_bytes());
        let reply = self.client.eval(route, &self.greet, write).await?;
        read_greeting(&reply).ok_or_else(|| reply.unexpected())
    }

    /// Tells of all counters, in scripts that are all sent before the first reply is there.
    async fn tell_all(
        &self,
        node: NodeId,
        tellings: &[Telling<'_>],
        tallies: &mut Vec<Tally>,
    ) -> Result<(), StoreError> {
        let together = self.together();
        let mut chunks = tellings.chunks(together);
        let mut under_way = FuturesOrdered::new();
        for chunk in chunks.by_ref().take(MOST_UNDER_WAY / together) {
            under_way.push_back(self.tell(node, chunk));
        }
        while let Some(told) = under_way.next().await {
            tallies.extend(told?);
            if let Some(chunk) = chunks.next() {
                under_way.push_back(self.tell(node, chunk));
            }
        }
        Ok(())
    }

    async fn tell(&self, node: NodeId, tellings: &[Telling<'_>]) -> Result<Vec<Tally>, StoreError> {
        let keys: Vec<[String; 2]> = tellings.iter().map(|told| self.keys.of(told)).collect();
        let write = |command: &mut Command<'_>| {
            command.number(keys.len() * 2);
            for key in keys.iter().flatten() {
                command.arg(key);
            }
            command.arg(name(node));
            for telling in tellings {
                write_telling(telling, command);
            }
        };
        let first = keys.first().map_or("", |[current, _]| current);
        let route = Route::Key(first.as_bytes());
        let reply = self.client.eval(route, &self.tell, write).await?;
        read_tallies(&reply)
            .filter(|tallies| tallies.len() == tellings.len())
            .ok_or_else(|| reply.unexpected())
    }

    /// How many counters one script can tell of.
    fn together(&self) -> usize {
        if self.client.is_cluster() {
            // Each has a slot of its own.
            1
        } else {
            MOST_TOGETHER
        }
    }
}

impl Totals for RedisTotals {
    async fn exchange(
        &self,
        teller: Teller,
        tellings: &[Telling<'_>],
        tallies: &mut Vec<Tally>,
    ) -> Result<Exchanged, StoreError> {
        tallies.clear();
        // The greeting goes last, with as many as are one round trip, so that what it says of the time is not old
        // when all is heard.
        let (early, last) = tellings.split_at(tellings.len().saturating_sub(MOST_UNDER_WAY));
        let early = self.tell_all(teller.node, early, tallies).await;
        let last = self.tell_all(teller.node, last, tallies);
        let (last, greeted) = join(last, self.greet(teller)).await;
        early.and(last).and(greeted)
    }
}

fn write_telling(telling: &Telling<'_>, command: &mut Command<'_>) {
    command.number(telling.total);
    match telling.late {
        Some(late) => command.number(late),
        None => command.arg(""),
    };
    command.arg(match telling.edge {
        Edge::Forgets => "0",
        Edge::Carries => "1",
    });
    command.number(telling.length.saturating_mul(2).as_millis().max(1));
    command.number(telling.resets);
    match telling.view {
        Some(view) => command
            .number(view.used)
            .number(view.heard.current)
            .number(view.heard.before),
        None => command.arg("").arg("").arg(""),
    };
}

pub(crate) fn read_greeting(reply: &Reply) -> Option<Exchanged> {
    let mut values = reply.array().ok()?;
    let mut next = || values.next()?.unsigned();
    Some(Exchanged {
        now: Time::from_micros(next()?),
        members: u32::try_from(next()?).ok()?,
        previous: Some(next()?)
            .filter(|previous| *previous > 0)
            .map(Time::from_micros),
    })
}

pub(crate) fn read_tallies(reply: &Reply) -> Option<Vec<Tally>> {
    let tallies = reply.array().ok()?;
    tallies.map(|value| read_tally(value.array()?)).collect()
}

fn read_tally(values: Array<'_>) -> Option<Tally> {
    let numbers: Vec<u64> = values
        .map(|value| value.unsigned())
        .collect::<Option<_>>()?;
    let (&[others, others_before, resets, resets_before], level) = numbers.split_first_chunk()?;
    let level = match *level {
        [] => None,
        [used, age] => Some(Level {
            used,
            age: Duration::from_micros(age),
        }),
        _ => return None,
    };
    Some(Tally {
        others: Sums {
            current: others,
            before: others_before,
        },
        resets: Sums {
            current: resets,
            before: resets_before,
        },
        level,
    })
}
