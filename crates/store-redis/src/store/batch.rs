//! The limits of one request that one script charges.

use smallvec::SmallVec;
use tidegate_algorithms::{Quota, SoftPeriod, Time};
use tidegate_store::{Charge, Charging, Decisions, Mode, StoreError};

use super::ask::{about_keys, told_time};
use super::{RedisStore, TimeArgument};
use crate::client::{Command, Reply, Route};
use crate::counter::{Account, Numbers, Told, numbers};
use crate::key::Key;
use crate::script::Kind;

/// The limits of a request whose counters lie in one slot.
#[derive(Debug)]
pub(super) struct Batch<'a> {
    pub(super) slot: u16,
    /// Whether it is all of the request.
    is_alone: bool,
    /// The counters, each once.
    keys: SmallVec<[Key; 4]>,
    limits: SmallVec<[Limit<'a>; 4]>,
    /// The limits as the script takes them.
    words: SmallVec<[Numbers; 4]>,
}

/// What came of a batch.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) now: Time,
    /// Of each limit of the batch.
    pub(super) decisions: Decisions,
    accounts: SmallVec<[Account; 4]>,
}

#[derive(Clone, Copy, Debug)]
struct Limit<'a> {
    /// Its place in the request.
    place: usize,
    /// The place of its counter.
    counter: usize,
    charge: Charge<'a>,
}

// === impl Batch ===

impl<'a> Batch<'a> {
    pub(super) fn new(slot: u16) -> Self {
        Self {
            slot,
            is_alone: true,
            keys: SmallVec::new(),
            limits: SmallVec::new(),
            words: SmallVec::new(),
        }
    }

    pub(super) fn add(&mut self, place: usize, charge: &Charge<'a>, key: Key) {
        let known = self.keys.iter().position(|other| *other == key);
        let counter = known.unwrap_or_else(|| {
            self.keys.push(key);
            self.keys.len() - 1
        });
        self.limits.push(Limit {
            place,
            counter,
            charge: *charge,
        });
    }

    /// Lays out what the script is told, once all limits are there.
    pub(super) fn finish(&mut self, charging: Charging, is_alone: bool) {
        self.is_alone = is_alone;
        self.words = self
            .limits
            .iter()
            .map(|limit| limit.words(charging, is_alone))
            .collect();
    }

    /// The places of its limits in the request.
    pub(super) fn places(&self) -> impl Iterator<Item = usize> {
        self.limits.iter().map(|limit| limit.place)
    }

    /// The numbers of a limit that names this counter.
    fn quota_of(&self, counter: usize) -> Option<&'a Quota> {
        let limit = self.limits.iter().find(|limit| limit.counter == counter)?;
        Some(limit.charge.quota)
    }
}

// === impl Limit ===

impl Limit<'_> {
    fn words(&self, charging: Charging, is_alone: bool) -> Numbers {
        let Charge {
            quota,
            cost,
            headroom,
            ..
        } = self.charge;
        let mode = match self.charge.mode {
            Mode::Enforce => 0,
            Mode::Quota if is_alone => 1,
            Mode::Quota | Mode::Shadow => 2,
        };
        // At most as many counters as charges, and of those there are few.
        let place = u8::try_from(self.counter + 1).unwrap_or(u8::MAX);
        let mut words = Numbers::from_slice(&[Kind::of(quota).number(), place, mode]);
        words.extend_from_slice(&numbers(quota, cost, headroom, charging));
        words
    }
}

// === impl Heard ===

impl Heard {
    /// What an admitting limit of a refused request says remains, remains.
    pub(super) fn uncharge(&mut self, batch: &Batch<'_>) {
        for (limit, decision) in batch.limits.iter().zip(&mut self.decisions) {
            if decision.is_allowed() && !limit.charge.quota.is_postpaid() {
                self.accounts[limit.counter].look(&limit.charge, decision, self.now);
            }
        }
    }

    /// What the script has charged and is to be refunded if the request is denied, and the period of soft admissions that each counter had before.
    pub(super) fn charged<'b>(
        &'b self,
        batch: &'b Batch<'_>,
        charging: Charging,
    ) -> impl Iterator<Item = (&'b Charge<'b>, Option<SoftPeriod>)> {
        let both = || batch.limits.iter().zip(&self.decisions);
        let is_refused = both()
            .any(|(limit, decision)| limit.charge.mode == Mode::Enforce && !decision.is_allowed());
        let is_charged = charging == Charging::EveryMatch || !is_refused;
        both()
            .filter(move |(limit, decision)| {
                let Charge { quota, cost, .. } = limit.charge;
                is_charged && cost > 0 && decision.is_allowed() && !quota.is_postpaid()
            })
            .map(|(limit, _)| {
                let period = self.accounts[limit.counter].old_soft_period();
                (&limit.charge, period)
            })
    }
}

// === impl RedisStore ===

impl RedisStore {
    /// Has one script charge a batch.
    pub(super) async fn run(
        &self,
        batch: &Batch<'_>,
        charging: Charging,
    ) -> Result<Reply, StoreError> {
        let limits = batch.limits.iter();
        let kinds = limits.map(|limit| Kind::of(limit.charge.quota));
        let script = self.scripts.many(kinds);
        let argument = self.time.next();
        let write = |command: &mut Command<'_>| {
            command.number(batch.keys.len());
            for key in &batch.keys {
                command.arg(key);
            }
            command.arg(match charging {
                Charging::EveryMatch => "0",
                Charging::AllOrNone if batch.is_alone => "1",
                Charging::AllOrNone => "2",
            });
            for words in &batch.words {
                command.arg(words);
            }
            TimeArgument::write(argument, command);
        };
        let route = Route::Key(batch.keys[0].as_ref());
        let reply = self.client.eval(route, script, write);
        reply.await.map_err(|error| about_keys(error, &batch.keys))
    }

    /// Makes decisions of what the script said.
    pub(super) fn hear(
        &self,
        batch: &Batch<'_>,
        charging: Charging,
        reply: &Reply,
    ) -> Result<Heard, StoreError> {
        let mut parts = reply.array()?.map(|value| value.text());
        let mut part = || parts.next().flatten().ok_or_else(|| reply.unexpected());
        let now = told_time(reply, Some(part()?))?;
        let words = part()?;
        let mut accounts: SmallVec<[Account; 4]> = SmallVec::new();
        for counter in 0..batch.keys.len() {
            let state = part()?;
            let told = batch.quota_of(counter);
            let told = told.and_then(|quota| Told::read(state, quota));
            accounts.push(Account::new(told.ok_or_else(|| reply.unexpected())?));
        }
        if words.len() != batch.limits.len() {
            return Err(reply.unexpected());
        }
        let mut decisions = Decisions::new();
        for (limit, &word) in batch.limits.iter().zip(words) {
            let mut decision = accounts[limit.counter].judge(&limit.charge, charging, now);
            self.heed(&mut decision, word);
            decisions.push(decision);
        }
        Ok(Heard {
            now,
            decisions,
            accounts,
        })
    }
}
