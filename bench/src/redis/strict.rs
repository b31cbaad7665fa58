//! Decisions of the store itself, without a server around it.

use std::cell::Cell;
use std::error::Error;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tidegate_algorithms::{Algorithm, Allowance, Headroom, Quota, QuotaSpec, Refill};
use tidegate_store::{
    Admission, Charge, Charging, Consistency, CounterKey, Decisions, LimitId, Mode, OnFull, Store,
};
use tidegate_store_redis::RedisStore;
use tidegate_store_redis::client::{Client, ClientConfig};
use tidegate_store_redis::test_util::RedisServer;
use tokio::task::LocalSet;

use crate::service::{Keys, LIMITED, Spread};

/// Decides so often about callers at random, so many decisions under way at a time.
pub fn decide(
    redis: &RedisServer,
    keys: u64,
    decisions: u64,
    depth: usize,
    seed: u64,
) -> Result<(), Box<dyn Error>> {
    on_local_set(async {
        let bucket = Rc::new(Bucket::on(redis)?);
        bucket.take("first").await?;
        let left = Rc::new(Cell::new(decisions));
        let mut workers = Vec::new();
        for worker in 0..depth as u64 {
            let (bucket, left) = (Rc::clone(&bucket), Rc::clone(&left));
            let keys = Keys {
                entry: LIMITED,
                count: keys,
                spread: Spread::Even,
            };
            workers.push(tokio::task::spawn_local(async move {
                for caller in keys.callers(seed * 1_000 + worker) {
                    let Some(fewer) = left.get().checked_sub(1) else {
                        break;
                    };
                    left.set(fewer);
                    bucket
                        .take(&format!("u{caller:07}"))
                        .await
                        .map_err(|fault| fault.to_string())?;
                }
                Ok::<_, String>(())
            }));
        }
        for worker in workers {
            worker.await??;
        }
        Ok(())
    })
}

/// How long lone decisions take, one after the other.
pub fn alone(redis: &RedisServer, decisions: usize) -> Result<Vec<Duration>, Box<dyn Error>> {
    on_local_set(async {
        let bucket = Bucket::on(redis)?;
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

/// A limit that nobody reaches, in Redis.
struct Bucket {
    store: RedisStore,
    quota: Quota,
}

// === impl Bucket ===

impl Bucket {
    fn on(redis: &RedisServer) -> Result<Self, Box<dyn Error>> {
        let config = ClientConfig {
            // A busy machine is no reason to give up here.
            timeout: Duration::from_secs(5),
            ..ClientConfig::from_url(&redis.url())?
        };
        let quota = QuotaSpec {
            limit: 1_000_000,
            window: Duration::from_mins(1),
            algorithm: Algorithm::TokenBucket {
                burst: None,
                refill: Refill::Continuous,
            },
            allowance: Allowance::Hard,
        };
        Ok(Self {
            store: RedisStore::new(Client::new(&config)?),
            quota: Quota::new(&quota)?,
        })
    }

    async fn take(&self, caller: &str) -> Result<(), Box<dyn Error>> {
        let values = [caller];
        let charge = Charge {
            key: CounterKey {
                limit: LimitId(0x0123_4567_89AB_CDEF_0123_4567_89AB_CDEF),
                values: &values,
            },
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
}

fn on_local_set<T>(
    work: impl Future<Output = Result<T, Box<dyn Error>>>,
) -> Result<T, Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    LocalSet::new().block_on(&runtime, work)
}
