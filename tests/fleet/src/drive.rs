//! Sends the planned requests at their times, whatever has become of those before, and records the answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crate::client::Client;
use crate::clock::{self, now};
use crate::node::{Addresses, Node};
use crate::plan::PlannedRequest;
use crate::record::{Outcome, Record};
use crate::rules;
use crate::scenario::Scenario;

/// The fewest and the most connections to one node.
const CONNECTIONS: (usize, usize) = (4, 48);

/// A request that a node did not answer goes to another one, as behind a load balancer, but not for ever.
const TRIES: usize = 4;

/// Sends all requests of a plan. Returns the records of each scenario in the order of their sending.
pub fn drive(
    scenarios: &[Scenario],
    nodes: &[Node],
    plans: &[Vec<PlannedRequest>],
    stop: &AtomicBool,
) -> Vec<Vec<Record>> {
    let mut records = vec![Vec::new(); scenarios.len()];
    thread::scope(|scope| {
        let mut workers = Vec::new();
        for (node, plan) in plans.iter().enumerate() {
            let next = Arc::new(AtomicUsize::new(0));
            for _ in 0..connections(plan) {
                let next = Arc::clone(&next);
                let worker = move || work(scenarios, nodes, node, plan, &next, stop);
                workers.push(scope.spawn(worker));
            }
        }
        for worker in workers {
            for (scenario, record) in worker.join().unwrap_or_default() {
                records[scenario].push(record);
            }
        }
    });
    for records in &mut records {
        records.sort_by_key(|record| record.sent);
    }
    records
}

/// As many connections as have requests under way if each takes 40 ms.
fn connections(plan: &[PlannedRequest]) -> usize {
    let (Some(first), Some(last)) = (plan.first(), plan.last()) else {
        return 0;
    };
    let seconds = (last.due - first.due) as f64 / 1e6 + 0.1;
    let wanted = plan.len() as f64 / seconds * 0.04;
    (wanted as usize).clamp(CONNECTIONS.0, CONNECTIONS.1)
}

fn work(
    scenarios: &[Scenario],
    nodes: &[Node],
    node: usize,
    plan: &[PlannedRequest],
    next: &AtomicUsize,
    stop: &AtomicBool,
) -> Vec<(usize, Record)> {
    let mut records = Vec::new();
    let mut client = Client::default();
    if let Some(addresses) = nodes[node].addresses() {
        client.open(addresses);
    }
    while let Some(request) = plan.get(next.fetch_add(1, Ordering::Relaxed)) {
        clock::sleep_until(request.due);
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let scenario = &scenarios[request.scenario];
        send(scenario, nodes, node, request, &mut client, |record| {
            records.push((request.scenario, record));
        });
    }
    records
}

/// Sends one request, to other nodes if need be, and records each of its checks.
pub fn send(
    scenario: &Scenario,
    nodes: &[Node],
    first: usize,
    request: &PlannedRequest,
    client: &mut Client,
    mut add: impl FnMut(Record),
) {
    let key = rules::key(request.scenario, request.is_twin);
    for attempt in 0..TRIES {
        let node = (first + attempt) % nodes.len();
        let mut record = Record {
            role: request.role,
            is_twin: request.is_twin,
            node,
            cost: request.cost,
            due: request.due,
            sent: now(),
            received: 0,
            outcome: Outcome::Unanswered,
            is_degraded: false,
            remaining: None,
            retry_after: None,
        };
        let Some(addresses) = addresses(&nodes[node]) else {
            continue;
        };
        let answers = client.check(addresses, scenario, request);
        record.received = now();
        if let Some(answers) = answers {
            for answer in &answers {
                record.take_answer(answer, &key);
                add(record.clone());
            }
            return;
        }
        // It may have been charged all the same.
        add(record);
    }
}

fn addresses(node: &Node) -> Option<Addresses> {
    node.is_running().then(|| node.addresses())?
}
