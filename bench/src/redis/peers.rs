//! What stands beside us: the smallest script that limits anything, and the client most people use.

use std::error::Error;
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use redis::Script;
use redis::aio::MultiplexedConnection;
use tokio::task::JoinSet;

use super::bare::Bare;
use crate::service::{Keys, LIMITED, Spread};

/// Counts, and lets the count end: no limiter does with less.
const SMALLEST: &str = "local count = redis.call('INCR', KEYS[1]) \
     redis.call('EXPIRE', KEYS[1], ARGV[1]) \
     return count";

/// Runs the smallest script so often by `redis-benchmark`, over so many keys, so many at a time.
pub fn smallest_script(
    server: SocketAddr,
    times: u64,
    keys: u64,
    depth: usize,
) -> Result<(), Box<dyn Error>> {
    let sha = Bare::connect(server)?.text(&["SCRIPT", "LOAD", SMALLEST])?;
    let [times, keys, depth] = [times, keys, depth as u64].map(|number| number.to_string());
    let port = server.port().to_string();
    let status = Command::new("redis-benchmark")
        .args(["-h", "127.0.0.1", "-p", &port, "-c", "1", "-q"])
        .args(["-P", &depth, "-n", &times, "-r", &keys])
        .args(["EVALSHA", &sha, "1", "user:__rand_int__", "60"])
        .stdout(Stdio::null())
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("redis-benchmark: {status}").into())
    }
}

/// Runs the smallest script so often by redis-rs over one connection, so many at a time.
pub async fn redis_rs(
    server: SocketAddr,
    keys: u64,
    times: u64,
    depth: usize,
) -> Result<(), Box<dyn Error>> {
    let client = redis::Client::open(format!("redis://{server}"))?;
    let connection = client.get_multiplexed_async_connection().await?;
    let script = std::sync::Arc::new(Script::new(SMALLEST));
    let keys = Keys {
        entry: LIMITED,
        count: keys,
        spread: Spread::Even,
    };
    let each = times / depth as u64;
    let mut workers = JoinSet::new();
    for worker in 0..depth as u64 {
        let (script, connection) = (script.clone(), connection.clone());
        workers.spawn(async move { repeat(&script, connection, keys, worker, each).await });
    }
    while let Some(worker) = workers.join_next().await {
        worker??;
    }
    Ok(())
}

async fn repeat(
    script: &Script,
    mut connection: MultiplexedConnection,
    keys: Keys,
    seed: u64,
    times: u64,
) -> redis::RedisResult<()> {
    let times = usize::try_from(times).unwrap_or(usize::MAX);
    for caller in keys.callers(seed + 1).take(times) {
        let mut invocation = script.prepare_invoke();
        invocation.key(format!("user:{caller:012}")).arg(60);
        let _: i64 = invocation.invoke_async(&mut connection).await?;
    }
    Ok(())
}
