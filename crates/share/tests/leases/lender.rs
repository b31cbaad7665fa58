//! The common store of a simulated world. Everything but logs is the embedded store's; permits of a log
//! are dated to the end of their loan, as a lender's are to be. Or all of it is Redis', in virtual time.

use std::collections::HashMap;
use std::sync::Mutex;

use tidegate_algorithms::sliding_log::{Log, SlidingLog};
use tidegate_algorithms::{Decision, Meter, Quota, RefundTo, Time};
use tidegate_store::{
    Admission, Charge, Charging, Clock, Consistency, CounterKey, Decisions, Draw, EmbeddedStore,
    GivenBack, Lender, Loan, Receipt, Store, StoreConfig, StoreError,
};
use tidegate_store_redis::RedisStore;

use crate::redis_store::ScriptedStore;
use crate::time::TrueTime;

pub(crate) struct CommonStore {
    counters: EmbeddedStore<TrueTime>,
    logs: Mutex<HashMap<u128, Stamps>>,
    kept: Mutex<Vec<Kept>>,
    clock: TrueTime,
    redis: Option<ScriptedStore>,
}

/// What was charged, less what of it was given back.
#[derive(Clone, Copy)]
pub(crate) struct Kept {
    pub(crate) at: Time,
    pub(crate) cost: u64,
    /// Ahead of need, or at once.
    loan: Option<Loan>,
}

/// Stamps in grains, oldest first.
#[derive(Default)]
struct Stamps(Vec<u64>);

// === impl CommonStore ===

impl CommonStore {
    pub(crate) fn new(clock: &TrueTime) -> Self {
        let config = StoreConfig {
            max_memory: 2 << 20,
        };
        Self {
            counters: EmbeddedStore::with_clock(config, clock.clone()),
            logs: Mutex::default(),
            kept: Mutex::default(),
            clock: clock.clone(),
            redis: None,
        }
    }

    /// The same in a real Redis.
    pub(crate) fn in_redis(clock: &TrueTime) -> Self {
        Self {
            redis: Some(ScriptedStore::start(clock.now())),
            ..Self::new(clock)
        }
    }

    /// The Redis, if a call waits for its reply, by the clock of the machine.
    pub(crate) fn busy_redis(&self) -> Option<&ScriptedStore> {
        self.redis.as_ref().filter(|redis| redis.is_busy())
    }

    /// All that was charged to the only counter of a world and not given back, in order of time.
    pub(crate) fn kept(&self) -> Vec<Kept> {
        self.kept.lock().expect("no panic").clone()
    }

    pub(crate) async fn charge(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        if let Some(redis) = &self.redis {
            let call = async |store: &RedisStore| store.charge(charges, charging, decisions).await;
            return redis.call(self.clock.now(), call).await;
        }
        let [charge] = charges else {
            return self.counters.charge_now(charges, charging, decisions);
        };
        let Meter::SlidingLog(meter) = charge.quota.meter() else {
            let receipt = self.counters.charge_now(charges, charging, decisions)?;
            if decisions[0].is_allowed() {
                self.keep(receipt.now, charge.cost, None);
            }
            return Ok(receipt);
        };
        let now = self.clock.now();
        let decision = self.log(charge.key, |log| log.charge(meter, charge.cost, now, now));
        decisions.clear();
        decisions.push(decision);
        Ok(Receipt::new(now, Admission::of(charges, decisions)))
    }

    pub(crate) fn peek(&self, charge: &Charge<'_>) -> Result<Decision, StoreError> {
        self.counters.peek_now(charge)
    }

    pub(crate) async fn refund(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
        to: RefundTo,
    ) -> Result<(), StoreError> {
        if let Some(redis) = &self.redis {
            let leased = Consistency::Leased;
            let call = async |store: &RedisStore| store.refund(key, quota, cost, to, leased).await;
            return redis.call(self.clock.now(), call).await;
        }
        self.counters.refund_now(key, quota, cost, to)
    }

    pub(crate) async fn draw(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        draw: Draw,
    ) -> Result<Loan, StoreError> {
        if let Some(redis) = &self.redis {
            let call = async |store: &RedisStore| store.draw(key, quota, draw).await;
            return redis.call(self.clock.now(), call).await;
        }
        let Meter::SlidingLog(meter) = quota.meter() else {
            let loan = self.counters.draw(key, quota, draw).await?;
            self.keep(loan.now, loan.permits, Some(loan));
            return Ok(loan);
        };
        let now = self.clock.now();
        let ends = now.plus(draw.life);
        let (permits, decision) = self.log(key, |log| {
            let permits = draw.permits(log.look(meter, now).remaining);
            (permits, log.charge(meter, permits, now, ends))
        });
        Ok(Loan {
            now,
            permits: if decision.is_allowed() { permits } else { 0 },
            ends,
            decision,
            given_back: GivenBack::default(),
        })
    }

    pub(crate) async fn give_back(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        loan: &Loan,
        permits: u64,
    ) -> Result<u64, StoreError> {
        if let Some(redis) = &self.redis {
            let call = async |store: &RedisStore| store.give_back(key, quota, loan, permits).await;
            return redis.call(self.clock.now(), call).await;
        }
        let Meter::SlidingLog(meter) = quota.meter() else {
            self.release(loan, permits);
            return self.counters.give_back(key, quota, loan, permits).await;
        };
        let stamp = loan.ends.nanos().div_ceil(meter.grain());
        self.log(key, |log| {
            for _ in 0..permits {
                if let Some(place) = log.0.iter().rposition(|other| *other == stamp) {
                    log.0.remove(place);
                }
            }
        });
        Ok(permits)
    }

    pub(crate) async fn reset(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
    ) -> Result<bool, StoreError> {
        self.log(key, |log| log.0.clear());
        self.counters.reset(key, quota, Consistency::Leased).await
    }

    fn keep(&self, at: Time, cost: u64, loan: Option<Loan>) {
        let mut kept = self.kept.lock().expect("no test goes on after a panic");
        kept.push(Kept { at, cost, loan });
    }

    fn release(&self, loan: &Loan, permits: u64) {
        let mut kept = self.kept.lock().expect("no test goes on after a panic");
        let lent = kept.iter_mut().find(|kept| kept.loan == Some(*loan));
        lent.expect("a loan of this store").cost -= permits;
    }

    fn log<T>(&self, key: CounterKey<'_>, work: impl FnOnce(&mut Stamps) -> T) -> T {
        let mut logs = self.logs.lock().expect("no test goes on after a panic");
        work(logs.entry(key.limit.0).or_default())
    }
}

// === impl Stamps ===

impl Stamps {
    /// Charges at `now` what is remembered as of `stamped`.
    fn charge(&mut self, meter: &SlidingLog, cost: u64, now: Time, stamped: Time) -> Decision {
        let n_expired = meter.expired(self, now);
        self.0.drain(..usize::try_from(n_expired).expect("few"));
        let (decision, _) = meter.decide(self, cost, 0, now);
        if decision.is_allowed() {
            let newest = self.0.last().copied().unwrap_or(0);
            let stamp = stamped.nanos().div_ceil(meter.grain()).max(newest);
            for _ in 0..cost {
                self.0.push(stamp);
            }
        }
        decision
    }

    fn look(&self, meter: &SlidingLog, now: Time) -> Decision {
        meter.decide(self, 0, 0, now).0
    }
}

impl Log for Stamps {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn nth_oldest(&self, n: u64) -> Option<u64> {
        self.0.get(usize::try_from(n).ok()?).copied()
    }
}
