//! The cost of a loan in Redis, in decisions: what the smallest limit worth lending follows from.

use std::error::Error;

use tidegate_algorithms::Algorithm;
use tidegate_store_redis::test_util::RedisServer;

use super::strict::{TOKEN_BUCKET, Task, Work};
use super::{DEPTH, HOT, Sizes};
use crate::service::cpu_seconds;
use crate::table::Row;

// === impl Sizes ===

impl Sizes {
    /// Measures Redis' processor for a draw and a refund beside a decision, alone and under pressure.
    pub(super) fn loans(&self) -> Result<Vec<Row>, Box<dyn Error>> {
        let mut rows = Vec::new();
        for (name, algorithm) in [
            ("fixed window", Algorithm::FixedWindow),
            ("token bucket", TOKEN_BUCKET),
        ] {
            for (depth, how) in [(1, "one at a time"), (DEPTH, "16 at a time")] {
                let what = format!(
                    "processor of Redis for a draw and a refund, {name}, {how}, a `strict` decision beside"
                );
                rows.push(self.loan(&what, algorithm, depth)?);
            }
        }
        Ok(rows)
    }

    fn loan(&self, what: &str, algorithm: Algorithm, depth: usize) -> Result<Row, Box<dyn Error>> {
        eprintln!("redis: {what} ...");
        let redis = RedisServer::start();
        let (mut beside, mut ours) = (Vec::new(), Vec::new());
        for round in 0..self.rounds {
            let micros = |task| {
                let work = Work {
                    task,
                    algorithm,
                    keys: HOT,
                    times: self.pings as u64,
                    depth,
                };
                let before = cpu_seconds(redis.id())?;
                work.run(&redis, round as u64)?;
                let spent = cpu_seconds(redis.id())? - before;
                Ok::<_, Box<dyn Error>>(spent / work.times as f64 * 1e6)
            };
            beside.push(micros(Task::Decide)?);
            ours.push(micros(Task::DrawAndRefund)?);
        }
        Ok(Row::pair(what, "µs", &beside, &ours))
    }
}
