//! Many nodes and one Redis: what a decision costs Redis and the node, beside what one would use
//! instead.

mod bare;
mod callers;
mod commands;
mod eventual;
mod loans;
mod lone;
mod peers;
mod strict;

use std::error::Error;
use std::time::Duration;

use tidegate_store_redis::test_util::RedisServer;

use crate::arguments::Scale;
use crate::service::load::fill;
use crate::service::{
    Denials, Executable, Keys, LIMITED, Load, Noise, Process, RulesFile, Sample, Shape, Spread,
    cpu_seconds,
};
use crate::table::{About, Aim, Bound, Row, Table};
pub use bare::Bare;
use callers::PairedLoad;

/// How its section begins, by which it is found in a page.
pub const HEADING: &str = "# Through Redis\n";

const METHOD: &str = "
Written by `scripts/bench --only redis --before COMMIT --write`, on a `redis-server` of its own on this machine. *Beside* is, row by
row: the smallest script that counts and expires (`INCR`, `EXPIRE`), run by `redis-benchmark` over one connection with the same number
of commands under way (16) over as many callers; redis-rs, the client most people use, with that script; Limitador through one Redis
as it was once measured on such a machine, because it does not build here; a bare `PING` over a blocking socket; the two commands that
envoyproxy/ratelimit sends for a decision, in one write on one of ten connections, at the same 10,000 a second (both without a server
around them); one `strict` decision, so that the ratio is the cost of a loan in decisions; the same server with `--store memory`; one
call for each decision, which `strict` makes (a call is a decision, a draw or a refund; calls that wait together are one command, which
is counted in a row of its own); the executable of an earlier commit, or `strict`, as the row says; the bound that `tidegate explain`
prints; a plain `SET` with `PX` of a counter under the same name. Rates are of one node with one thread, four connections with sixteen
calls each, a million callers; hot callers are a hundred. Beside an earlier commit two nodes, each with a Redis of its own, get the same
calls in an open loop at the same time, because loans end and windows go on while a node waits for its turn: 100,000 callers, 10,000
calls a second after a minute where nobody reaches a limit, 2,000 a second after 10 s with limits per caller. The busiest of those
exceed their limit (the row of denials), most callers come a few times. The median of all rounds, with the least and the greatest in
brackets. A ratio is the median of the ratios of each round.

";

const ABOUT: About = About {
    heading: HEADING,
    method: METHOD,
    beside: "beside",
};

/// Commands under way at a time where Redis' own time is measured.
const DEPTH: usize = 16;

/// Calls under way on each of the four connections.
const IN_FLIGHT: usize = 16;

/// Callers that are hot.
const HOT: u64 = 100;

/// Thousands of decisions a second of Limitador through one Redis, as measured once on such a machine
/// (issue 4 of this repository); its library does not build with Redis alone.
const LIMITADOR: f64 = 13.0;

/// How large each measurement is.
struct Sizes {
    rounds: usize,
    keys: u64,
    /// Decisions of one measurement of Redis' own time.
    decisions: u64,
    pings: usize,
    rate: Rounds,
    hot: Rounds,
    /// Limits that nobody reaches, at a fixed rate.
    large_limits: PairedLoad,
    /// Limits that the busiest callers exceed.
    small_limits: PairedLoad,
    /// How long callers by Zipf's law are watched.
    zipf: Duration,
}

/// Rounds of one load.
#[derive(Clone, Copy)]
struct Rounds {
    count: usize,
    warmup: Duration,
    duration: Duration,
}

/// One short round, which shows that everything runs.
const QUICK: Rounds = Rounds {
    count: 1,
    warmup: Duration::from_millis(50),
    duration: Duration::from_millis(200),
};

/// Measures the whole table.
pub fn run(scale: Scale) -> Result<Table, Box<dyn Error>> {
    let sizes = Sizes::of(scale);
    let noise = Noise::begin(&[])?;
    let mut rows = vec![sizes.time_of_redis()?];
    rows.push(sizes.time_of_client()?);
    rows.push(sizes.rate()?);
    rows.push(sizes.latency()?);
    rows.push(sizes.lone_decision()?);
    rows.extend(sizes.loans()?);
    rows.push(sizes.hot()?);
    rows.extend(sizes.asked()?);
    rows.push(sizes.asked_at_rate()?);
    rows.extend(sizes.limits_per_caller()?);
    rows.push(eventual::overshoot(scale)?);
    rows.push(Sizes::bytes()?);
    Ok(Table::new(ABOUT, rows, noise.others(&[])?, scale))
}

// === impl Sizes ===

impl Sizes {
    const fn of(scale: Scale) -> Self {
        match scale {
            Scale::Full => Self {
                rounds: 7,
                keys: 1_000_000,
                decisions: 400_000,
                pings: 20_000,
                rate: Rounds {
                    count: 7,
                    warmup: Duration::from_millis(500),
                    duration: Duration::from_secs(2),
                },
                hot: Rounds {
                    count: 15,
                    warmup: Duration::from_millis(300),
                    duration: Duration::from_secs(1),
                },
                large_limits: PairedLoad {
                    callers: 100_000,
                    per_second: 10_000,
                    warmup: Duration::from_mins(1),
                    duration: Duration::from_secs(20),
                    rounds: 3,
                },
                small_limits: PairedLoad {
                    callers: 100_000,
                    per_second: 2_000,
                    warmup: Duration::from_secs(10),
                    duration: Duration::from_secs(20),
                    rounds: 3,
                },
                zipf: Duration::from_secs(20),
            },
            Scale::Quick => Self {
                rounds: 1,
                keys: 2_000,
                decisions: 2_000,
                pings: 100,
                rate: QUICK,
                hot: QUICK,
                large_limits: PairedLoad::quick(),
                small_limits: PairedLoad::quick(),
                zipf: Duration::from_millis(300),
            },
        }
    }

    /// Seconds of Redis' processor for a million decisions.
    fn time_of_redis(&self) -> Result<Row, Box<dyn Error>> {
        eprintln!("redis: its own time ...");
        let redis = RedisServer::start();
        let (mut beside, mut ours) = (Vec::new(), Vec::new());
        for round in 0..self.rounds {
            let before = cpu_seconds(redis.id())?;
            peers::smallest_script(redis.address(), self.decisions, self.keys, DEPTH)?;
            let between = cpu_seconds(redis.id())?;
            strict::decide(&redis, self.keys, self.decisions, DEPTH, round as u64)?;
            let after = cpu_seconds(redis.id())?;
            let per_million = 1e6 / self.decisions as f64;
            beside.push((between - before) * per_million);
            ours.push((after - between) * per_million);
        }
        let what = "processor of Redis for a million `strict` decisions";
        let aim = Aim::on_ratio(Bound::AtMost, 1.8, 1.4);
        Ok(Row::pair(what, "s", &beside, &ours).aiming(aim))
    }

    /// The processor's time of our client for a decision, and of the client most people use for the
    /// smallest script.
    fn time_of_client(&self) -> Result<Row, Box<dyn Error>> {
        eprintln!("redis: the client's time ...");
        let redis = RedisServer::start();
        let own = || cpu_seconds(std::process::id());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (mut beside, mut ours) = (Vec::new(), Vec::new());
        for round in 0..self.rounds {
            let before = own()?;
            let theirs = peers::redis_rs(redis.address(), self.keys, self.decisions, DEPTH);
            runtime.block_on(theirs)?;
            let between = own()?;
            strict::decide(&redis, self.keys, self.decisions, DEPTH, round as u64)?;
            let after = own()?;
            let micros = 1e6 / self.decisions as f64;
            beside.push((between - before) * micros);
            ours.push((after - between) * micros);
        }
        let what = "processor of the client for a `strict` decision, redis-rs with the smallest script beside";
        Ok(Row::pair(what, "µs", &beside, &ours))
    }

    /// Decisions a second of one node.
    fn rate(&self) -> Result<Row, Box<dyn Error>> {
        eprintln!("redis: strict decisions a second ...");
        let redis = RedisServer::start();
        let rules = RulesFile::write(1)?;
        let node = node(&rules, &redis, "strict")?;
        let callers = keys(self.keys, Spread::Even);
        let mut ours = Vec::new();
        for round in 0..self.rate.count {
            let sample = closed(&node, callers, self.rate, round)?;
            ours.push(sample.thousands_per_second());
        }
        let beside = vec![LIMITADOR; ours.len()];
        let what = "`strict` decisions through one node";
        let aim = Aim::on_ratio(Bound::AtLeast, 4.0, 7.0);
        Ok(Row::pair(what, "k/s", &beside, &ours).aiming(aim))
    }

    /// What Redis adds to a lone decision.
    fn latency(&self) -> Result<Row, Box<dyn Error>> {
        eprintln!("redis: latency ...");
        let redis = RedisServer::start();
        let mut bare = Bare::connect(redis.address())?;
        let (mut beside, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..self.rounds {
            let pings = (0..self.pings).map(|_| bare.ping());
            beside.push(middle(pings.collect::<Result<_, _>>()?));
            ours.push(middle(strict::alone(&redis, self.pings)?));
        }
        let what = "a lone `strict` decision, p50";
        let aim = Aim::on_ratio(Bound::AtMost, 1.5, 1.2);
        Ok(Row::pair(what, "µs", &beside, &ours).aiming(aim))
    }

    /// The processor's time of a call from a hot caller, leased and in memory.
    fn hot(&self) -> Result<Row, Box<dyn Error>> {
        eprintln!("redis: hot callers ...");
        let redis = RedisServer::start();
        let rules = RulesFile::write(1)?;
        let leased = node(&rules, &redis, "leased")?;
        let memory = Process::tidegate(rules.path(), 1)?;
        let callers = keys(HOT, Spread::Even);
        let (mut beside, mut ours) = (Vec::new(), Vec::new());
        for round in 0..self.hot.count {
            let run = |node| closed(node, callers, self.hot, round);
            let [memory, leased] = if round % 2 == 0 {
                let memory = run(&memory)?;
                [memory, run(&leased)?]
            } else {
                let leased = run(&leased)?;
                [run(&memory)?, leased]
            };
            beside.push(memory.cpu_micros());
            ours.push(leased.cpu_micros());
        }
        let what = "processor of a call from a hot caller, `leased`";
        let aim = Aim::on_ratio(Bound::AtMost, 1.05, 1.0);
        Ok(Row::pair(what, "µs", &beside, &ours).aiming(aim))
    }

    /// Bytes of a live bucket in Redis.
    fn bytes() -> Result<Row, Box<dyn Error>> {
        eprintln!("redis: bytes ...");
        let redis = RedisServer::start();
        strict::decide(&redis, 1_000, 1_000, DEPTH, 1)?;
        let mut bare = Bare::connect(redis.address())?;
        let (mut beside, mut ours) = (Vec::new(), Vec::new());
        let mut names = Vec::new();
        while let name = bare.text(&["RANDOMKEY"])?
            && names.len() < 100
        {
            names.push(name);
        }
        for name in &names {
            ours.push(bare.number(&["MEMORY", "USAGE", name])?);
        }
        bare.text(&["FLUSHALL"])?;
        for name in &names {
            bare.text(&["SET", name, "12", "PX", "60000"])?;
            beside.push(bare.number(&["MEMORY", "USAGE", name])?);
        }
        let aim = Aim::on_ratio(Bound::AtMost, 1.25, 1.1);
        Ok(Row::pair("a live token bucket in Redis", "B", &beside, &ours).aiming(aim))
    }
}

/// Puts a closed loop on a node.
fn closed(
    node: &Process,
    keys: Keys,
    rounds: Rounds,
    round: usize,
) -> Result<Sample, Box<dyn Error>> {
    let load = Load {
        shape: Shape::Closed {
            in_flight: IN_FLIGHT,
        },
        keys,
        denials: Denials::Fault,
        warmup: rounds.warmup,
        duration: rounds.duration,
    };
    load.run(node, round as u64)
}

/// A node on that Redis.
fn node(
    rules: &RulesFile,
    redis: &RedisServer,
    consistency: &str,
) -> Result<Process, Box<dyn Error>> {
    node_with(rules, redis, consistency, &[])
}

/// The same with these settings besides.
fn node_with(
    rules: &RulesFile,
    redis: &RedisServer,
    consistency: &str,
    settings: &[(&str, &str)],
) -> Result<Process, Box<dyn Error>> {
    node_of(&Executable::current()?, rules, redis, consistency, settings)
}

/// The same of a chosen executable.
fn node_of(
    executable: &Executable,
    rules: &RulesFile,
    redis: &RedisServer,
    consistency: &str,
    settings: &[(&str, &str)],
) -> Result<Process, Box<dyn Error>> {
    let flags = ["--store", &redis.url(), "--consistency", consistency];
    // Here every decision is to be Redis', however busy the machine is.
    let mut all = vec![("TIDEGATE_STORE_TIMEOUT", "5s")];
    // An earlier executable may not know this setting, and rejects those that it does not know.
    if *executable == Executable::current()? {
        all.push(("TIDEGATE_STORE_MIN_TIMEOUT", "5s"));
    }
    all.extend(settings);
    let node = Process::tidegate_of(executable, rules.path(), 1, &flags, &all)?;
    fill(&node, keys(1, Spread::Even))?;
    Ok(node)
}

fn keys(count: u64, spread: Spread) -> Keys {
    Keys {
        entry: LIMITED,
        count,
        spread,
    }
}

/// The median, in microseconds.
fn middle(mut spans: Vec<Duration>) -> f64 {
    spans.sort_unstable();
    spans[spans.len() / 2].as_secs_f64() * 1e6
}
