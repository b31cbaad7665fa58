//! What is asked about one counter: the shortest way for most requests.

use tidegate_algorithms::{Decision, Quota, RefundTo, Time};
use tidegate_store::{
    Admission, Charge, Charging, Consistency, CounterKey, DecisionSource, Decisions, Receipt,
    StoreError, lendable,
};

use super::ask::{about_keys, told_time};
use super::{RedisStore, TimeArgument};
use crate::client::{Command, Joinable, Reply, Route, Script, Unclaimed};
use crate::counter::{
    Account, Numbers, PeriodAfter, Told, charge_stamp, numbers_of_one, period_after, refunded,
};
use crate::fit::fits;
use crate::key::Key;
use crate::script::Kind;

/// A refund to one counter.
#[derive(Clone, Copy, Debug)]
pub(super) struct CounterRefund {
    pub(super) cost: u64,
    pub(super) to: RefundTo,
    pub(super) period: PeriodAfter,
    pub(super) consistency: Consistency,
}

// === impl RedisStore ===

impl RedisStore {
    pub(super) async fn charge_one(
        &self,
        charge: &Charge<'_>,
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        let (word, now, mut account) = self.open_one(charge, charging).await?;
        let mut decision = account.judge(charge, charging, now);
        self.heed(&mut decision, word);
        decisions.push(decision);
        let admission = Admission::of(std::slice::from_ref(charge), decisions);
        Ok(Receipt::new(now, admission).decided_in(DecisionSource::Common))
    }

    /// Looks at one counter. The script decides on the cost, 0; whether a cost of 1 fits, the core says.
    pub(super) async fn look_at_one(&self, look: &Charge<'_>) -> Result<Decision, StoreError> {
        fits(look.quota).map_err(|reason| StoreError::Unfit { reason })?;
        let (_, now, account) = self.open_one(look, Charging::AllOrNone).await?;
        Ok(account.look_at_next(look, now))
    }

    /// Runs the script of one charge. Returns its word, its time and the counter that it found.
    async fn open_one(
        &self,
        charge: &Charge<'_>,
        charging: Charging,
    ) -> Result<(u8, Time, Account), StoreError> {
        let quota = charge.quota;
        let numbers = numbers_of_one(quota, charge.cost, charge.headroom, charging);
        let script = self.scripts.one(Kind::of(quota));
        let reply = self.decide_on(charge.key, quota, script, &numbers).await?;
        let (word, now, state) = split(reply.text()?).ok_or_else(|| reply.unexpected())?;
        let now = told_time(&reply, Some(now))?;
        let told = Told::read(state, quota).ok_or_else(|| reply.unexpected())?;
        Ok((word, now, Account::new(told)))
    }

    /// Refunds to one counter. Loans of a bucket that is lent go by what was refunded to it meanwhile, so
    /// that is noted beside it.
    pub(super) async fn refund_to(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        refund: CounterRefund,
    ) -> Result<(), StoreError> {
        fits(quota).map_err(|reason| StoreError::Unfit { reason })?;
        let CounterRefund {
            cost,
            to,
            period,
            consistency,
        } = refund;
        let script = self.scripts.refund(Kind::of(quota));
        let numbers = [
            refunded(quota, cost),
            period_after(period),
            charge_stamp(quota, to),
        ];
        let is_noted = consistency == Consistency::Leased && lendable(quota);
        if is_noted && to != RefundTo::Current {
            self.about_loan(key, quota, script, &numbers, None).await?;
        } else {
            self.about(key, quota, script, &numbers).await?;
        }
        Ok(())
    }

    pub(super) async fn forget(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
    ) -> Result<bool, StoreError> {
        let script = &self.scripts.reset;
        let reply = self.about(key, quota, script, &[]).await?;
        Ok(reply.integer()? == 1)
    }

    /// Decides on one counter, in one call with others that wait.
    async fn decide_on(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        script: &Joinable,
        numbers: &Numbers,
    ) -> Result<Reply, StoreError> {
        let key = self.key(key, quota);
        let mut digits = itoa::Buffer::new();
        let argument = self.time.next().map(|number| digits.format(number));
        let argument = argument.map(str::as_bytes);
        let client = &self.client;
        let reply = client.eval_joined(script, key.as_ref(), numbers, argument);
        reply.await.map_err(|error| about_keys(error, &[key]))
    }

    /// Runs a script on one counter.
    pub(super) fn about(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        script: &Script,
        numbers: &[Numbers],
    ) -> impl Future<Output = Result<Reply, StoreError>> + Send {
        self.run_on([self.key(key, quota)], script, numbers, None)
    }

    /// Runs a script on keys of one slot; `unclaimed`, if any, hears of a reply that comes too late.
    pub(super) async fn run_on<const N: usize>(
        &self,
        keys: [Key; N],
        script: &Script,
        numbers: &[Numbers],
        unclaimed: Option<&Unclaimed>,
    ) -> Result<Reply, StoreError> {
        let argument = self.time.next();
        let write = |command: &mut Command<'_>| {
            command.number(keys.len());
            for key in &keys {
                command.arg(key);
            }
            for numbers in numbers {
                command.arg(numbers);
            }
            TimeArgument::write(argument, command);
        };
        let route = keys
            .first()
            .map_or(Route::Any, |key| Route::Key(key.as_ref()));
        let reply = self.client.eval_claimed(route, script, unclaimed, write);
        reply.await.map_err(|error| about_keys(error, &keys))
    }
}

/// The word, the time and the state in the reply about one limit.
pub(super) fn split(text: Option<&[u8]>) -> Option<(u8, &[u8], &[u8])> {
    let (&word, rest) = text?.split_first()?;
    let space = rest.iter().position(|&byte| byte == b' ')?;
    Some((word, &rest[..space], &rest[space + 1..]))
}
