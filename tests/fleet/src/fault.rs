//! What goes wrong in a fleet, and when.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, thread};

use serde::Deserialize;

use crate::clock::{self, now};
use crate::node::{End, Node};
use crate::redis::Redis;
use crate::rules;
use crate::scenario::Scenario;

/// One thing that is done to a fleet.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultStep {
    /// When, in seconds from the start of the traffic.
    pub at: f64,
    /// What.
    #[serde(rename = "do")]
    pub action: Action,
    /// To which node, if to one.
    #[serde(default)]
    pub node: usize,
    /// How long it lasts, in seconds, where it ends by itself.
    #[serde(default)]
    pub lasts: f64,
    /// Of a reload: by how much the limits are multiplied.
    #[serde(default)]
    pub factor: f64,
    /// How often it is done.
    #[serde(default = "once")]
    pub times: u32,
    /// From one time to the next, in seconds.
    #[serde(default)]
    pub every: f64,
}

fn once() -> u32 {
    1
}

/// What is done.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// `kill -9` of a node.
    KillNode,
    /// SIGTERM to a node.
    TerminateNode,
    /// Starts a node, for the first time or again.
    StartNode,
    /// Stops Redis by SIGSTOP and continues it.
    StallRedis,
    /// `kill -9` of Redis, and a start with nothing in it.
    KillRedis,
    /// FLUSHALL.
    FlushRedis,
    /// SENTINEL FAILOVER.
    FailOver,
    /// Six runnable processes for each core.
    BusyHost,
    /// A Redis that is near its end: long commands of others.
    BusyRedis,
    /// Cuts the regions off from each other, and joins them again.
    CutRegions,
    /// Changes all judged limits and their twins by `factor`, in the rules file.
    Reload,
}

/// What faults happen to.
#[derive(Clone, Copy, Debug)]
pub struct World<'a> {
    /// The nodes.
    pub nodes: &'a [Node],
    /// Their Redis.
    pub redis: &'a Redis,
    /// Their rules.
    pub rules: RulesFile<'a>,
}

/// The rules file of a fleet.
#[derive(Clone, Copy, Debug)]
pub struct RulesFile<'a> {
    /// Where it is.
    pub path: &'a Path,
    /// The scenarios that it was made of.
    pub scenarios: &'a [Scenario],
}

/// When a fault began and ended.
#[derive(Clone, Copy, Debug)]
pub struct FaultSpan {
    /// What was done.
    pub action: Action,
    /// When it began.
    pub from: u64,
    /// When it ended: Redis answers, the node listens or is gone.
    pub to: u64,
    /// Of a reload: by how much the limits were multiplied.
    pub factor: f64,
}

/// Processes that use all the processor time they can get; killed when dropped.
struct BusyProcesses(Vec<Child>);

// === impl Action ===

impl Action {
    /// Whether Redis, or that of another region, is away while it lasts.
    pub fn is_outage(self) -> bool {
        matches!(self, Self::StallRedis | Self::KillRedis | Self::CutRegions)
    }
}

/// Does all steps at their times, each by itself. Returns when each one happened.
pub fn inject(
    steps: &[FaultStep],
    start: u64,
    world: &World<'_>,
    stop: &AtomicBool,
) -> Result<Vec<FaultSpan>, String> {
    let inject_one = |step: &FaultStep| {
        let mut spans = Vec::new();
        for time in 0..step.times {
            let at = step.at + f64::from(time) * step.every;
            clock::sleep_until(start + clock::micros(at));
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let from = now();
            apply(step, world)?;
            spans.push(FaultSpan {
                action: step.action,
                from,
                to: now(),
                factor: step.factor,
            });
        }
        Ok(spans)
    };
    let inject_one = &inject_one;
    thread::scope(|scope| {
        let threads: Vec<_> = steps
            .iter()
            .map(|step| scope.spawn(move || inject_one(step)))
            .collect();
        let spans = threads.into_iter().map(|thread| {
            let failed = Err("a fault could not be injected".to_owned());
            thread.join().unwrap_or(failed)
        });
        let spans: Result<Vec<Vec<FaultSpan>>, String> = spans.collect();
        let mut spans = spans?.concat();
        spans.sort_by_key(|span| span.from);
        Ok(spans)
    })
}

fn apply(step: &FaultStep, world: &World<'_>) -> Result<(), String> {
    let World {
        nodes,
        redis,
        rules,
    } = *world;
    let node = nodes.get(step.node).ok_or("a fault names no node")?;
    match step.action {
        Action::KillNode => node.end(End::Kill),
        Action::TerminateNode => node.end(End::Terminate),
        Action::StartNode => node.start()?,
        Action::StallRedis => {
            let server = redis.main();
            server.pause();
            clock::sleep(step.lasts);
            server.resume();
        }
        Action::KillRedis => {
            let server = redis.main();
            server.kill();
            clock::sleep(step.lasts);
            server.restart();
        }
        Action::FlushRedis => redis.all().into_iter().for_each(|server| {
            let _ = server.try_command(&["FLUSHALL"]);
        }),
        Action::FailOver => redis.fail_over()?,
        Action::BusyHost => {
            let cores = thread::available_parallelism().map_or(1, usize::from);
            let _busy = BusyProcesses::start(6 * cores)?;
            clock::sleep(step.lasts);
        }
        Action::BusyRedis => occupy(redis, step.lasts)?,
        Action::CutRegions => {
            redis.cut_regions(true);
            clock::sleep(step.lasts);
            redis.cut_regions(false);
        }
        Action::Reload => rules.reload(step.factor)?,
    }
    Ok(())
}

/// Keeps Redis busy for about nine tenths of its time: two clients, each with four commands under way.
fn occupy(redis: &Redis, seconds: f64) -> Result<(), String> {
    let address = redis.main().address();
    let end = now() + clock::micros(seconds);
    thread::scope(|scope| {
        let clients: Vec<_> = (0..2)
            .map(|_| scope.spawn(move || occupy_until(address, end)))
            .collect();
        for client in clients {
            let failed = Err(io::ErrorKind::Other.into());
            let finished = client.join().unwrap_or(failed);
            finished.map_err(|error| format!("Redis could not be kept busy: {error}"))?;
        }
        Ok(())
    })
}

fn occupy_until(address: SocketAddr, end: u64) -> io::Result<()> {
    const COMMAND: &str = "EVAL 'local x = 0 for i = 1, 20000 do x = x + i end return x' 0\r\n";
    const COUNT: usize = 4;
    let mut stream = TcpStream::connect(address)?;
    let mut replies = BufReader::new(stream.try_clone()?);
    let mut reply = String::new();
    while now() < end {
        let began = now();
        stream.write_all(COMMAND.repeat(COUNT).as_bytes())?;
        for _ in 0..COUNT {
            replies.read_line(&mut reply)?;
        }
        reply.clear();
        clock::sleep((now() - began) as f64 / 9e6);
    }
    Ok(())
}

// === impl RulesFile ===

impl RulesFile<'_> {
    /// Replaces the file by one with other limits, as a whole, so that no node reads half of it.
    fn reload(&self, factor: f64) -> Result<(), String> {
        let mut scenarios = self.scenarios.to_vec();
        for scenario in &mut scenarios {
            scenario.limit.limit = (scenario.limit.limit as f64 * factor) as u64;
        }
        let new = self.path.with_extension("new");
        fs::write(&new, rules::write(&scenarios))
            .and_then(|()| fs::rename(&new, self.path))
            .map_err(|error| error.to_string())
    }
}

// === impl BusyProcesses ===

impl BusyProcesses {
    fn start(count: usize) -> Result<Self, String> {
        let mut processes = Self(Vec::new());
        for _ in 0..count {
            let child = Command::new("sh")
                .args(["-c", "while :; do :; done"])
                .stdin(Stdio::null())
                .spawn()
                .map_err(|error| error.to_string())?;
            processes.0.push(child);
        }
        Ok(processes)
    }
}

impl Drop for BusyProcesses {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
