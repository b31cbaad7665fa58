//! Several limits of one request, charged together.

use smallvec::SmallVec;
use tidegate_algorithms::Time;
use tidegate_store::{Admission, Charge, Charging, Decisions, Mode, Receipt, StoreError};

use super::ask::told_time;
use super::{RedisStore, TimeArgument};
use crate::client::{Command, Reply, Route};
use crate::counter::{Account, Numbers, Told, numbers};
use crate::key::Key;
use crate::script::Kind;

/// The limits of one request that one script charges.
#[derive(Debug, Default)]
struct Batch {
    /// The counters, each once.
    keys: SmallVec<[Key; 4]>,
    /// The limits as the script takes them.
    limits: SmallVec<[Numbers; 4]>,
    /// For each limit, the place of its counter.
    counters: SmallVec<[usize; 8]>,
}

// === impl RedisStore ===

impl RedisStore {
    pub(super) async fn charge_many(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        if charges.is_empty() {
            let now = self.ask_time().await?;
            let admission = Admission::Admitted;
            return Ok(Receipt { now, admission });
        }
        let batch = Batch::new(charges, charging);
        let reply = self.run(&batch, charges, charging).await?;
        self.read(&batch, charges, charging, &reply, decisions)
    }

    async fn run(
        &self,
        batch: &Batch,
        charges: &[Charge<'_>],
        charging: Charging,
    ) -> Result<Reply, StoreError> {
        let kinds = charges.iter().map(|charge| Kind::of(charge.quota));
        let script = self.scripts.many(kinds);
        let argument = self.time.next();
        let write = |command: &mut Command<'_>| {
            command.number(batch.keys.len());
            for key in &batch.keys {
                command.arg(key);
            }
            command.arg(match charging {
                Charging::AllOrNone => "1",
                Charging::EveryMatch => "0",
            });
            for limit in &batch.limits {
                command.arg(limit);
            }
            TimeArgument::write(argument, command);
        };
        let route = Route::Key(batch.keys[0].as_ref());
        self.client.eval(route, script, write).await
    }

    fn read(
        &self,
        batch: &Batch,
        charges: &[Charge<'_>],
        charging: Charging,
        reply: &Reply,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        let mut parts = reply.array()?.map(|value| value.text());
        let mut part = || parts.next().flatten().ok_or_else(|| reply.unexpected());
        let now = told_time(reply, Some(part()?))?;
        let words = part()?;
        let mut accounts: SmallVec<[Account; 4]> = SmallVec::new();
        for counter in 0..batch.keys.len() {
            let quota = batch.quota_of(counter, charges);
            let told = quota.and_then(|quota| Told::read(part().ok()?, quota, now));
            accounts.push(Account::new(told.ok_or_else(|| reply.unexpected())?));
        }
        if words.len() != charges.len() {
            return Err(reply.unexpected());
        }
        for ((charge, &of), &word) in charges.iter().zip(&batch.counters).zip(words) {
            let mut decision = accounts[of].judge(charge, charging, now);
            self.heed(&mut decision, word);
            decisions.push(decision);
        }
        let admission = admission(charges, decisions);
        if (charging, admission) == (Charging::AllOrNone, Admission::Refused) {
            uncharge(&accounts, batch, charges, decisions, now);
        }
        Ok(Receipt { now, admission })
    }
}

/// What an admitting limit of a refused request says remains, remains.
fn uncharge(
    accounts: &[Account],
    batch: &Batch,
    charges: &[Charge<'_>],
    decisions: &mut Decisions,
    now: Time,
) {
    for ((charge, &of), decision) in charges.iter().zip(&batch.counters).zip(decisions) {
        if decision.is_allowed() {
            accounts[of].look(charge, decision, now);
        }
    }
}

// === impl Batch ===

impl Batch {
    fn new(charges: &[Charge<'_>], charging: Charging) -> Self {
        let mut batch = Self::default();
        for charge in charges {
            batch.add(charge, charging);
        }
        batch
    }

    fn add(&mut self, charge: &Charge<'_>, charging: Charging) {
        let key = Key::new(charge.key, charge.quota);
        let known = self.keys.iter().position(|other| *other == key);
        let counter = known.unwrap_or_else(|| {
            self.keys.push(key);
            self.keys.len() - 1
        });
        self.counters.push(counter);
        let mode = match charge.mode {
            Mode::Enforce => 0,
            Mode::Quota => 1,
            Mode::Shadow => 2,
        };
        let kind = Kind::of(charge.quota).number();
        // At most as many counters as charges, and of those there are few.
        let place = u8::try_from(counter + 1).unwrap_or(u8::MAX);
        let mut limit = Numbers::from_slice(&[kind, place, mode]);
        limit.extend_from_slice(&numbers(
            charge.quota,
            charge.cost,
            charge.headroom,
            charging,
        ));
        self.limits.push(limit);
    }

    /// The numbers of a limit that names this counter.
    fn quota_of<'a>(
        &self,
        counter: usize,
        charges: &[Charge<'a>],
    ) -> Option<&'a tidegate_algorithms::Quota> {
        let place = self.counters.iter().position(|&of| of == counter)?;
        charges.get(place).map(|charge| charge.quota)
    }
}

/// Whether the request as a whole may pass.
fn admission(charges: &[Charge<'_>], decisions: &Decisions) -> Admission {
    let mut quotas = 0;
    let mut quotas_denied = 0;
    for (charge, decision) in charges.iter().zip(decisions) {
        match (charge.mode, decision.is_allowed()) {
            (Mode::Enforce, false) => return Admission::Refused,
            (Mode::Quota, is_allowed) => {
                quotas += 1;
                quotas_denied += u32::from(!is_allowed);
            }
            (Mode::Enforce, true) | (Mode::Shadow, _) => {}
        }
    }
    if quotas > 0 && quotas == quotas_denied {
        Admission::Refused
    } else {
        Admission::Admitted
    }
}
