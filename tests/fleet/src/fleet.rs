//! One fleet from its start to its end: servers, nodes, traffic, faults, measurements.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::thread::{self, ScopedJoinHandle};

use tidegate_store_redis::test_util::{Folder, wait_until};

use crate::clock::{self, micros, now};
use crate::drive;
use crate::fault::{self, Action, FaultSpan, RulesFile, World};
use crate::judge::{Finding, Measured};
use crate::node::{Node, NodeSetup};
use crate::plan;
use crate::probe::{self, ProbeResult};
use crate::record::Record;
use crate::redis::Redis;
use crate::rules;
use crate::scenario::{FleetSpec, Scenario};

/// What came of one scenario.
#[derive(Clone, Debug)]
pub struct ScenarioReport {
    /// Its name.
    pub name: String,
    /// Its limit and how it is shared.
    pub subject: String,
    /// What the judges found.
    pub findings: Vec<Finding>,
    /// The share of degraded answers, in percent.
    pub degraded: f64,
    /// How many requests were sent.
    pub requests: usize,
}

/// The metric of what nodes saw above a limit.
const OVERSHOOT: &str = "tidegate_eventual_overshoot_hits_total";

/// Traffic begins so long after the counts before it are read.
const HEAD_START: f64 = 0.5;

/// So many seconds after the traffic, nodes have heard of all that others allowed.
const EXCHANGE: f64 = 1.0;

/// Runs a fleet and judges its scenarios. If it could not be run, no promise was measured.
pub fn run(
    spec: &FleetSpec,
    executable: &Path,
    settings: &[(String, String)],
) -> Vec<ScenarioReport> {
    // Test servers panic when they do not start.
    let finished = thread::scope(|scope| {
        let thread = scope.spawn(|| try_run(spec, executable, settings));
        let panicked = Err("the harness panicked".to_owned());
        thread.join().unwrap_or(panicked)
    });
    finished.unwrap_or_else(|error| {
        println!("  error: {error}");
        let scenarios = spec.scenarios.iter();
        let failed = scenarios.map(|scenario| ScenarioReport::failed(scenario, &error));
        failed.collect()
    })
}

fn try_run(
    spec: &FleetSpec,
    executable: &Path,
    settings: &[(String, String)],
) -> Result<Vec<ScenarioReport>, String> {
    let folder = Folder::new();
    let redis = Redis::start(spec.redis, spec.round_trip);
    let rules = folder.path().join("rules.yaml");
    let charging = spec.charging.as_deref();
    fs::write(&rules, rules::write(&spec.scenarios, charging))
        .map_err(|error| error.to_string())?;
    let rules_file = RulesFile {
        path: &rules,
        scenarios: &spec.scenarios,
        charging,
    };
    let nodes: Vec<Node> = (0..spec.all_nodes())
        .map(|number| {
            Node::new(NodeSetup {
                executable: executable.to_owned(),
                rules: rules.clone(),
                config: if spec.memory_node && number + 1 == spec.nodes {
                    "store: memory\n".to_owned()
                } else {
                    redis.node_config(number)
                },
                folder: folder.path().join(format!("node-{number}")),
                settings: [&spec.settings[..], settings].concat(),
            })
        })
        .collect();
    for node in &nodes[..spec.nodes] {
        node.start()?;
    }
    let members = spec.nodes - usize::from(spec.memory_node);
    wait_for_members(&nodes[..members], redis.members(members));
    measure(
        spec,
        &World {
            nodes: &nodes,
            redis: &redis,
            rules: rules_file,
        },
    )
}

/// Waits until each node knows how many there are.
fn wait_for_members(nodes: &[Node], expected: usize) {
    let expected = expected as f64;
    let knows = |node: &Node| node.metric("tidegate_members", "") == Some(expected);
    wait_until("each node knows all members", || nodes.iter().all(knows));
}

fn measure(spec: &FleetSpec, world: &World<'_>) -> Result<Vec<ScenarioReport>, String> {
    let World { nodes, redis, .. } = *world;
    let start = spec.start_after(now() + micros(HEAD_START));
    // What happens while an aligned start is awaited does not count.
    clock::sleep_until(start - micros(HEAD_START));
    let overshoot = overshoot_of(nodes);
    let calls = redis.script_calls();
    let plans = plan::plan(&spec.scenarios, nodes.len(), start, spec.seconds);
    let stop = AtomicBool::new(false);
    let (records, probes, faults) = run_all(spec, world, &plans, start, &stop);
    let faults = faults?;
    clock::sleep_until(start + micros(spec.seconds));
    let end = start + micros(spec.seconds);
    let script_calls = redis.script_calls().saturating_sub(calls);
    // Nodes count what is above a limit when they hear of it, which may be after the last window.
    clock::sleep(EXCHANGE);
    let after = overshoot_of(nodes);
    let overshoot: Vec<f64> = overshoot
        .iter()
        .zip(&after)
        .map(|(before, after)| (after - before).max(0.0))
        .collect();
    let all = spec.scenarios.iter().zip(records).zip(probes);
    Ok(all
        .map(|((scenario, records), probes)| {
            let (twin, judged) = records.into_iter().partition(|record| record.is_twin);
            judge(&Measured {
                scenario,
                nodes: nodes.len(),
                start,
                end,
                judged,
                twin,
                faults: faults.clone(),
                probes,
                overshoot: overshoot.clone(),
                script_calls,
            })
        })
        .collect())
}

type AllResults = (
    Vec<Vec<Record>>,
    Vec<Vec<ProbeResult>>,
    Result<Vec<FaultSpan>, String>,
);

/// Traffic, probes and faults at the same time.
fn run_all(
    spec: &FleetSpec,
    world: &World<'_>,
    plans: &[Vec<plan::PlannedRequest>],
    start: u64,
    stop: &AtomicBool,
) -> AllResults {
    let nodes = world.nodes;
    thread::scope(|scope| {
        let traffic = scope.spawn(|| drive::drive(&spec.scenarios, nodes, plans, stop));
        let faults = scope.spawn(|| fault::inject(&spec.faults, start, world, stop));
        let probes: Vec<_> = spec
            .scenarios
            .iter()
            .enumerate()
            .map(|(number, scenario)| {
                scope.spawn(move || probe::run(scenario, number, nodes, stop))
            })
            .collect();
        let probes = probes.into_iter().map(ScopedJoinHandle::join);
        let probes = probes.map(Result::unwrap_or_default).collect();
        let failed = Err("injecting faults panicked".to_owned());
        let faults = faults.join().unwrap_or(failed);
        let empty = vec![Vec::new(); spec.scenarios.len()];
        (traffic.join().unwrap_or(empty), probes, faults)
    })
}

fn judge(measured: &Measured<'_>) -> ScenarioReport {
    let scenario = measured.scenario;
    let findings = scenario.judges.iter().map(|judge| judge.judge(measured));
    ScenarioReport {
        name: scenario.name.clone(),
        subject: scenario.subject(),
        findings: findings.collect(),
        degraded: measured.degraded_percent(),
        requests: measured.judged.len() + measured.twin.len(),
    }
}

fn overshoot_of(nodes: &[Node]) -> Vec<f64> {
    let metric = |node: &Node| node.metric(OVERSHOOT, "").unwrap_or(0.0);
    nodes.iter().map(metric).collect()
}

// === impl ScenarioReport ===

impl ScenarioReport {
    /// The report of a scenario that could not be run.
    fn failed(scenario: &Scenario, error: &str) -> Self {
        Self {
            name: scenario.name.clone(),
            subject: scenario.subject(),
            findings: vec![Finding::nothing("all".to_owned(), error)],
            degraded: 0.0,
            requests: 0,
        }
    }
}

// === impl FleetSpec ===

impl FleetSpec {
    /// When traffic begins: at a time, or at the next multiple of `align`.
    fn start_after(&self, time: u64) -> u64 {
        let step = self.align.map_or(1, micros).max(1);
        time.div_ceil(step) * step
    }

    /// How many nodes there ever are: those at the start, and those that faults start later.
    pub fn all_nodes(&self) -> usize {
        let started = self
            .faults
            .iter()
            .filter(|step| step.action == Action::StartNode);
        let later = started.map(|step| step.node + 1).max().unwrap_or(0);
        self.nodes.max(later)
    }
}
