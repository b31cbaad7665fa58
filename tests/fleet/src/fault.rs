//! What goes wrong in a fleet, and when.

mod load;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, thread};

use serde::Deserialize;

use crate::clock::{self, now};
use crate::http::Connection;
use crate::node::{End, Node};
use crate::redis::Redis;
use crate::rules;
use crate::scenario::{Consistency, Scenario};

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
    #[serde(default = "unchanged")]
    pub factor: f64,
    /// Of a reload: how nodes share the limits from then on, if otherwise than before.
    pub consistency: Option<Consistency>,
    /// Of a grant or refund: how many permits. They go to all callers together, by way of `node`.
    #[serde(default)]
    pub hits: u64,
    /// The scenario that a reload, grant or refund is about. A reload is about all without it.
    pub scenario: Option<String>,
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

fn unchanged() -> f64 {
    1.0
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
    /// Changes judged limits and their twins by `factor`, in the rules file.
    Reload,
    /// Gives permits back by the admin interface.
    Grant,
    /// Gives permits back by a check with `refund`.
    Refund,
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
    /// How limits are charged, if not as by default.
    pub charging: Option<&'a str>,
}

/// When a fault began and ended.
#[derive(Clone, Debug)]
pub struct FaultSpan {
    /// What was done.
    pub action: Action,
    /// When it began.
    pub from: u64,
    /// When it ended: Redis answers, the node listens or is gone.
    pub to: u64,
    /// Of a reload: by how much the limits were multiplied.
    pub factor: f64,
    /// Of a grant or refund: how many permits, and of which scenario.
    pub given: Option<(u64, String)>,
    /// Of a busy Redis: the share of a processor's time that it used.
    pub redis_load: Option<f64>,
}

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
            let mut span = FaultSpan::new(step.action, now());
            span.factor = step.factor;
            apply(step, world, &mut span)?;
            span.to = now();
            spans.push(span);
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

/// Does a step, and completes what is known of it.
fn apply(step: &FaultStep, world: &World<'_>, span: &mut FaultSpan) -> Result<(), String> {
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
        Action::FailOver => span.from = redis.fail_over()?,
        Action::BusyHost => {
            let cores = thread::available_parallelism().map_or(1, usize::from);
            let _busy = load::BusyProcesses::start(6 * cores)?;
            clock::sleep(step.lasts);
        }
        Action::BusyRedis => span.redis_load = Some(load::occupy(redis.main(), step.lasts)?),
        Action::CutRegions => {
            redis.cut_regions(true);
            clock::sleep(step.lasts);
            redis.cut_regions(false);
        }
        Action::Reload => rules.reload(step)?,
        Action::Grant | Action::Refund => span.given = rules.give(step, node)?,
    }
    Ok(())
}

// === impl RulesFile ===

impl RulesFile<'_> {
    /// Replaces the file by one with other limits, as a whole, so that no node reads half of it.
    fn reload(&self, step: &FaultStep) -> Result<(), String> {
        let mut scenarios = self.scenarios.to_vec();
        for scenario in &mut scenarios {
            if !step.is_about(scenario) {
                continue;
            }
            scenario.limit.limit = (scenario.limit.limit as f64 * step.factor) as u64;
            scenario.consistency = step.consistency.unwrap_or(scenario.consistency);
        }
        let new = self.path.with_extension("new");
        fs::write(&new, rules::write(&scenarios, self.charging))
            .and_then(|()| fs::rename(&new, self.path))
            .map_err(|error| error.to_string())
    }

    /// Gives permits of a limit and of its twin back. Returns how many, and of which scenario.
    fn give(&self, step: &FaultStep, node: &Node) -> Result<Option<(u64, String)>, String> {
        let mut scenarios = self.scenarios.iter().enumerate();
        let Some((number, scenario)) = scenarios.find(|(_, scenario)| step.is_about(scenario))
        else {
            return Ok(None);
        };
        let addresses = node.addresses().ok_or("a grant needs a node that runs")?;
        let (hits, domain) = (step.hits, rules::DOMAIN);
        for is_twin in [false, true]
            .into_iter()
            .take(1 + usize::from(scenario.twin))
        {
            let key = rules::key(number, is_twin);
            let (address, path, body) = if step.action == Action::Grant {
                let entries = format!(r#"[{{"key":"{key}","value":"all"}}]"#);
                let body = format!(r#"{{"domain":"{domain}","entries":{entries},"hits":{hits}}}"#);
                (addresses.admin, "/api/v1/keys/grant", body)
            } else {
                let body = format!(
                    r#"{{"domain":"{domain}","descriptors":[{{"{key}":"all"}}],"refund":{hits}}}"#
                );
                (addresses.http, "/v1/check", body)
            };
            let response = Connection::default().post(address, path, &body);
            let status = response.map_err(|error| error.to_string())?.status;
            if status != 200 {
                return Err(format!("{path} answered with {status}"));
            }
        }
        Ok(Some((hits, scenario.name.clone())))
    }
}

// === impl FaultStep ===

impl FaultStep {
    fn is_about(&self, scenario: &Scenario) -> bool {
        self.scenario
            .as_ref()
            .is_none_or(|name| *name == scenario.name)
    }
}

// === impl FaultSpan ===

impl FaultSpan {
    /// A fault that begins at a time, and ends at once as far as is known.
    pub fn new(action: Action, from: u64) -> Self {
        Self {
            action,
            from,
            to: from,
            factor: 1.0,
            given: None,
            redis_load: None,
        }
    }
}
