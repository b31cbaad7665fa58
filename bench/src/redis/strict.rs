//! Decisions of the store itself, without a server around it.

use std::cell::Cell;
use std::error::Error;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tidegate_algorithms::{Algorithm, Allowance, Headroom, Quota, QuotaSpec, Refill};
use tidegate_store::{
    Admission, Charge, Charging, Consistency, CounterKey, Decisions, Draw, Lender, LimitId, Mode,
    OnFull, Store,
};
use tidegate_store_redis::RedisStore;
use tidegate_store_redis::client::{Client, ClientConfig};
use tidegate_store_redis::test_util::RedisServer;
use tokio::task::LocalSet;

use crate::service::{Keys, LIMITED, Spread};

/// A bucket that refills continuously, as large as its limit.
pub const TOKEN_BUCKET: Algorithm = Algorithm::TokenBucket {
    burst: None,
    refill: Refill::Continuous,
};

/// Work for Redis.
#[derive(Clone, Copy)]
pub struct Work {
    /// Each piece of it.
    pub task: Task,
    /// The algorithm of the counters.
    pub algorithm: Algorithm,
    /// Callers, at random.
    pub keys: u64,
    /// Pieces in all.
    pub times: u64,
    /// Pieces under way at a time.
    pub depth: usize,
}

/// One piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// A decision.
    Decide,
    /// A draw, and the refund of half of its permits.
    DrawAndRefund,
}

/// Decides so often about callers at random, so many decisions under way at a time.
pub fn decide(
    redis: &RedisServer,
    keys: u64,
    decisions: u64,
    depth: usize,
    seed: u64,
) -> Result<(), Box<dyn Error>> {
    let work = Work {
        task: Task::Decide,
        algorithm: TOKEN_BUCKET,
        keys,
        times: decisions,
        depth,
    };
    work.run(redis, seed)
}

// === impl Work ===

impl Work {
    /// Does it all.
    pub fn run(self, redis: &RedisServer, seed: u64) -> Result<(), Box<dyn Error>> {
        on_local_set(async {
            let counter = Rc::new(Counter::on(redis, self.algorithm)?);
            counter.take("first").await?;
            let left = Rc::new(Cell::new(self.times));
            let mut workers = Vec::new();
            for worker in 0..self.depth as u64 {
                let (counter, left) = (Rc::clone(&counter), Rc::clone(&left));
                let work = self.repeat(counter, left, seed * 1_000 + worker);
                workers.push(tokio::task::spawn_local(work));
            }
            for worker in workers {
                worker.await??;
            }
            Ok(())
        })
    }

    async fn repeat(
        self,
        counter: Rc<Counter>,
        left: Rc<Cell<u64>>,
        seed: u64,
    ) -> Result<(), String> {
        let keys = Keys {
            entry: LIMITED,
            count: self.keys,
            spread: Spread::Even,
        };
        for caller in keys.callers(seed) {
            let Some(fewer) = left.get().checked_sub(1) else {
                break;
            };
            left.set(fewer);
            let caller = format!("u{caller:07}");
            let done = match self.task {
                Task::Decide => counter.take(&caller).await,
                Task::DrawAndRefund => counter.draw_and_refund(&caller).await,
            };
            done.map_err(|fault| fault.to_string())?;
        }
        Ok(())
    }
}

/// How long lone decisions take, one after the other.
pub fn alone(redis: &RedisServer, decisions: usize) -> Result<Vec<Duration>, Box<dyn Error>> {
    on_local_set(async {
        let bucket = Counter::on(redis, TOKEN_BUCKET)?;
        bucket.take("alone").await?;
        let mut spans = Vec::with_capacity(decisions);
        for _ in 0..decisions {
            let begun = Instant::now();
            bucket.take("alone").await?;
            spans.push(begun.elapsed());
        }
        Ok(spans)
    })
}

/// Counters of a limit that nobody reaches, in Redis.
pub struct Counter {
    store: RedisStore,
    quota: Quota,
}

// === impl Counter ===

impl Counter {
    pub fn on(redis: &RedisServer, algorithm: Algorithm) -> Result<Self, Box<dyn Error>> {
        let config = ClientConfig {
            // A busy machine is no reason to give up here.
            timeout: Some(Duration::from_secs(5)),
            min_timeout: Some(Duration::from_secs(5)),
            ..ClientConfig::from_url(&redis.url())?
        };
        let quota = QuotaSpec {
            limit: 1_000_000,
            window: Duration::from_mins(1),
            algorithm,
            allowance: Allowance::Hard,
        };
        Ok(Self {
            store: RedisStore::new(Client::new(&config)?),
            quota: Quota::new(&quota)?,
        })
    }

    /// Makes one strict decision.
    pub async fn take(&self, caller: &str) -> Result<(), Box<dyn Error>> {
        let values = [caller];
        let charge = Charge {
            key: key(&values),
            quota: &self.quota,
            cost: 1,
            mode: Mode::Enforce,
            headroom: Headroom::Absent,
            on_full: OnFull::Deny,
            consistency: Consistency::Strict,
        };
        let mut decisions = Decisions::new();
        let asked = [charge];
        let charged = self
            .store
            .charge(&asked, Charging::AllOrNone, &mut decisions);
        match charged.await?.admission {
            Admission::Admitted => Ok(()),
            Admission::Refused => Err("a decision that refuses".into()),
        }
    }

    /// Draws some permits and gives half of them back.
    async fn draw_and_refund(&self, caller: &str) -> Result<(), Box<dyn Error>> {
        let values = [caller];
        let draw = Draw {
            least: 1,
            most: 16,
            one_in: 64,
            reserve: 256,
            life: self.quota.window() / 64,
        };
        let loan = self.store.draw(key(&values), &self.quota, draw).await?;
        if loan.permits != draw.most {
            return Err(format!("a loan of {} permits", loan.permits).into());
        }
        let half = loan.permits / 2;
        self.store
            .give_back(key(&values), &self.quota, &loan, half)
            .await?;
        Ok(())
    }
}

fn key<'a>(values: &'a [&'a str]) -> CounterKey<'a> {
    CounterKey {
        limit: LimitId(0x0123_4567_89AB_CDEF_0123_4567_89AB_CDEF),
        values,
    }
}

pub fn on_local_set<T>(
    work: impl Future<Output = Result<T, Box<dyn Error>>>,
) -> Result<T, Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    LocalSet::new().block_on(&runtime, work)
}
