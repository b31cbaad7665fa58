//! Decisions at a rate at which hardly any two wait together, beside the commands that envoyproxy/ratelimit sends.

use std::cell::{Cell, RefCell};
use std::error::Error;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tidegate_algorithms::Algorithm;
use tidegate_store_redis::test_util::RedisServer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::spawn_local;

use super::strict::{Counter, on_local_set};
use super::{Sizes, keys};
use crate::service::{Spread, Ticker, cpu_seconds};
use crate::table::{Aim, Bound, Row};

/// Decisions a second.
const RATE: u32 = 10_000;

/// The time between two decisions that are due.
const TICK: Duration = Duration::from_micros(100);

/// Connections of envoyproxy/ratelimit to Redis, its `REDIS_POOL_SIZE`.
const POOL: usize = 10;

/// Decisions that are under way, and the first fault of one.
#[derive(Default)]
struct Arrivals {
    under_way: Cell<usize>,
    fault: RefCell<Option<Box<dyn Error>>>,
}

/// A pool of connections that count as envoyproxy/ratelimit does: each decision takes a connection and sends
/// `INCRBY` and `EXPIRE` in one write.
struct IncrementPool {
    address: SocketAddr,
    idle: RefCell<Vec<TcpStream>>,
}

// === impl Sizes ===

impl Sizes {
    /// Measures Redis' processor for a million lone decisions.
    pub(super) fn lone_decision(&self) -> Result<Row, Box<dyn Error>> {
        eprintln!("redis: lone decisions ...");
        let (theirs, own) = (RedisServer::start(), RedisServer::start());
        let (mut beside, mut ours) = (Vec::new(), Vec::new());
        for round in 0..self.rounds {
            let seed = round as u64;
            let callers = || keys(self.keys, Spread::Even).callers(seed);
            beside.push(per_million(&theirs, async {
                let pool = Rc::new(IncrementPool::connect(theirs.address()).await?);
                let count = |caller| {
                    let pool = Rc::clone(&pool);
                    async move { pool.count(caller).await }
                };
                arrive(callers(), self.rate.duration, count).await
            })?);
            ours.push(per_million(&own, async {
                let counter = Rc::new(Counter::on(&own, Algorithm::FixedWindow)?);
                let decide = |caller| {
                    let counter = Rc::clone(&counter);
                    async move { counter.take(&format!("u{caller:07}")).await }
                };
                arrive(callers(), self.rate.duration, decide).await
            })?);
        }
        let what = "processor of Redis for a million lone `strict` decisions at 10,000 a second, INCRBY and EXPIRE \
                    of envoyproxy/ratelimit beside";
        let aim = Aim::on_ratio(Bound::AtMost, 1.7, 1.2);
        Ok(Row::pair(what, "s", &beside, &ours).aiming(aim))
    }
}

// === impl IncrementPool ===

impl IncrementPool {
    async fn connect(address: SocketAddr) -> Result<Self, Box<dyn Error>> {
        let mut idle = Vec::new();
        for _ in 0..POOL {
            idle.push(connect(address).await?);
        }
        let idle = RefCell::new(idle);
        Ok(Self { address, idle })
    }

    /// Counts one request of a caller in the present minute.
    async fn count(&self, caller: u64) -> Result<(), Box<dyn Error>> {
        let idle = self.idle.borrow_mut().pop();
        let mut stream = match idle {
            Some(stream) => stream,
            None => connect(self.address).await?,
        };
        stream.write_all(commands(caller)?.as_bytes()).await?;
        // Two replies of a line each.
        let mut replies = Vec::new();
        while replies.split(|&byte| byte == b'\n').count() < 3 {
            if stream.read_buf(&mut replies).await? == 0 {
                return Err("Redis closed the connection".into());
            }
        }
        if replies.contains(&b'-') {
            return Err(String::from_utf8_lossy(&replies).into());
        }
        self.idle.borrow_mut().push(stream);
        Ok(())
    }
}

async fn connect(address: SocketAddr) -> Result<TcpStream, Box<dyn Error>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Both commands of one decision, with a key as envoyproxy/ratelimit makes it.
fn commands(caller: u64) -> Result<String, Box<dyn Error>> {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let key = format!("bench_user_u{caller:07}_{}", seconds / 60 * 60);
    let mut commands = String::new();
    for (name, number) in [("INCRBY", "1"), ("EXPIRE", "60")] {
        commands.push_str("*3\r\n");
        for word in [name, &key, number] {
            write!(commands, "${}\r\n{word}\r\n", word.len())?;
        }
    }
    Ok(commands)
}

/// Seconds of that Redis' processor for a million of the decisions that `work` makes and counts.
fn per_million(
    redis: &RedisServer,
    work: impl Future<Output = Result<u64, Box<dyn Error>>>,
) -> Result<f64, Box<dyn Error>> {
    let before = cpu_seconds(redis.id())?;
    let decisions = on_local_set(work)?;
    Ok((cpu_seconds(redis.id())? - before) / decisions as f64 * 1e6)
}

/// Begins a decision about the next caller whenever one is due, waits for all of them, and returns their number.
async fn arrive<W>(
    mut callers: impl Iterator<Item = u64>,
    duration: Duration,
    decide: impl Fn(u64) -> W,
) -> Result<u64, Box<dyn Error>>
where
    W: Future<Output = Result<(), Box<dyn Error>>> + 'static,
{
    let arrivals = Rc::new(Arrivals::default());
    let mut ticker = Ticker::every(TICK)?;
    let gap = Duration::from_secs(1) / RATE;
    let mut due = Instant::now();
    let end = due + duration;
    let mut decisions = 0;
    while due < end {
        ticker.tick().await?;
        while due <= Instant::now().min(end) {
            if let Some(caller) = callers.next() {
                arrivals.under_way.set(arrivals.under_way.get() + 1);
                let (arrivals, work) = (Rc::clone(&arrivals), decide(caller));
                spawn_local(async move {
                    if let Err(fault) = work.await {
                        *arrivals.fault.borrow_mut() = Some(fault);
                    }
                    arrivals.under_way.set(arrivals.under_way.get() - 1);
                });
            }
            decisions += 1;
            due += gap;
        }
    }
    while arrivals.under_way.get() > 0 {
        ticker.tick().await?;
    }
    match arrivals.fault.take() {
        Some(fault) => Err(fault),
        None => Ok(decisions),
    }
}
