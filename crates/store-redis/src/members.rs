//! Where nodes find each other: members, and plans of who has what part of a limit, in Redis.

use std::time::Duration;

use tidegate_algorithms::Time;
use tidegate_store::{
    Beat, LimitId, MAX_MEMBERS, MAX_WANTS, Members, NodeId, Plan, Plans, Pulse, StoreError, Want,
};

use crate::client::{Array, Client, Command, Reply, Route, Script};
use crate::node::{NOW, name};

/// What a heartbeat does, after a line that says what time it is.
const BODY: &str = include_str!("../scripts/beat.lua");

/// How long a heartbeat may take. Nobody waits for it, and it may make plans.
const PATIENCE: Duration = Duration::from_millis(500);

/// Numbers of a plan in a reply.
const PLAN_NUMBERS: usize = 6;

/// The members of one installation.
#[derive(Clone, Debug)]
pub struct RedisMembers {
    client: Client,
    beat: Script,
    /// The sorted set of members; the other keys begin like it, and lie in its slot.
    key: String,
}

// === impl RedisMembers ===

impl RedisMembers {
    /// The members of the installation that is called `name`, among those that share a Redis.
    pub fn new(client: &Client, name: &str) -> Self {
        Self {
            client: client.with_timeout(PATIENCE),
            beat: Script::new(format!("{NOW}{BODY}")),
            key: format!("tg1:{{members:{name}}}"),
        }
    }

    /// The same with the time in a test's hands: in microseconds, in [`time_key`](Self::time_key).
    #[cfg(feature = "test-util")]
    pub fn by_stored_time(client: &Client, name: &str) -> Self {
        let now = "local now = tonumber(redis.call('GET', KEYS[1] .. ':now'))\n";
        Self {
            client: client.clone(),
            beat: Script::new(format!("{now}{BODY}")),
            ..Self::new(client, name)
        }
    }

    /// Where the time is that [`by_stored_time`](Self::by_stored_time) goes by.
    #[cfg(feature = "test-util")]
    pub fn time_key(&self) -> String {
        format!("{}:now", self.key)
    }

    fn write(&self, beat: &Beat<'_>, command: &mut Command<'_>) {
        command.number(2 + beat.wants.len());
        command.arg(&self.key).arg(format!("{}:pace", self.key));
        for want in beat.wants {
            command.arg(self.limit_key(want.limit));
        }
        command.arg(name(beat.node));
        command
            .number(micros(beat.expiry))
            .number(micros(beat.pace));
        command.number(MAX_MEMBERS).number(beat.alone_among);
        for want in beat.wants {
            let Want { parts, demand, .. } = *want;
            command.number(micros(want.window));
            command.number(micros(want.memory));
            command.number(parts).number(demand);
        }
    }

    fn limit_key(&self, limit: LimitId) -> String {
        format!("{}:{:032x}", self.key, limit.0)
    }
}

impl Members for RedisMembers {
    async fn beat(&self, beat: &Beat<'_>) -> Result<Pulse, StoreError> {
        let wants = &beat.wants[..beat.wants.len().min(MAX_WANTS)];
        let beat = Beat { wants, ..*beat };
        let route = Route::Key(self.key.as_bytes());
        let write = |command: &mut Command<'_>| self.write(&beat, command);
        let reply = self.client.eval(route, &self.beat, write).await?;
        read(&reply)
            .filter(|pulse| pulse.plans.len() == wants.len())
            .ok_or_else(|| reply.unexpected())
    }

    async fn leave(&self, node: NodeId) -> Result<(), StoreError> {
        let route = Route::Key(self.key.as_bytes());
        let write = |command: &mut Command<'_>| {
            command.arg("ZREM").arg(&self.key).arg(name(node));
        };
        self.client.call(route, write).await?;
        Ok(())
    }
}

/// Rounded up: a window or a memory of less is never taken for more.
fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX)
}

pub(crate) fn read(reply: &Reply) -> Option<Pulse> {
    let mut values = reply.array().ok()?;
    let now = values.next()?.unsigned()?;
    let members = values.next()?.unsigned()?;
    let previous = values.next()?.unsigned()?;
    Some(Pulse {
        now: Time::from_micros(now),
        members: u32::try_from(members).ok()?,
        previous: (previous > 0).then(|| Time::from_micros(previous)),
        plans: values
            .map(|value| read_plans(value.array()?))
            .collect::<Option<_>>()?,
    })
}

fn read_plans(mut values: Array<'_>) -> Option<Plans> {
    Some(Plans {
        current: read_plan(values.next()?.array()?)?,
        next: read_plan(values.next()?.array()?)?,
    })
}

/// `Some(None)` is no plan, `None` is no sense.
#[expect(clippy::option_option, reason = "sense and plan are two questions")]
fn read_plan(values: Array<'_>) -> Option<Option<Plan>> {
    if values.len() == 0 {
        return Some(None);
    }
    let numbers: Vec<u64> = values
        .map(|value| value.unsigned())
        .collect::<Option<_>>()?;
    let [starts, ends, parts, share, reserve, members] =
        <[u64; PLAN_NUMBERS]>::try_from(numbers).ok()?;
    let part = |number: u64| u32::try_from(number).ok().filter(|_| number <= parts);
    Some(Some(Plan {
        starts: Time::from_micros(starts),
        ends: Time::from_micros(ends),
        parts: part(parts)?,
        share: part(share)?,
        reserve: part(reserve)?,
        members: u32::try_from(members).ok()?,
    }))
}
