//! Plans: which request is sent to which node at what time.

use crate::clock::micros;
use crate::rules::{DOMAIN, further_key, key, own_key};
use crate::scenario::{Role, Scenario, Stream};

/// A request to send.
#[derive(Clone, Debug)]
pub struct PlannedRequest {
    /// Which scenario it belongs to.
    pub scenario: usize,
    /// Who sends it.
    pub role: Role,
    /// Whether it goes to the strict twin.
    pub is_twin: bool,
    /// When it is to be sent.
    pub due: u64,
    /// The caller.
    pub caller: u32,
    /// What each check costs.
    pub cost: u32,
    /// How many checks it has.
    pub batch: u32,
}

/// A generator of numbers that look random and are the same in every run.
#[derive(Clone, Debug)]
pub struct RandomNumbers(u64);

// === impl RandomNumbers ===

impl RandomNumbers {
    /// A generator by number.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number below 1.
    pub fn next_below_one(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A place in a list of weights.
    pub fn choose(&mut self, weights: &[f64]) -> usize {
        let mut left = self.next_below_one() * weights.iter().sum::<f64>();
        for (place, weight) in weights.iter().enumerate() {
            left -= weight;
            if left < 0.0 {
                return place;
            }
        }
        weights
            .iter()
            .rposition(|weight| *weight > 0.0)
            .unwrap_or(0)
    }
}

/// The requests of all scenarios, by node, each list in the order of its times.
pub fn plan(
    scenarios: &[Scenario],
    nodes: usize,
    start: u64,
    seconds: f64,
) -> Vec<Vec<PlannedRequest>> {
    let mut plans = vec![Vec::new(); nodes];
    for (number, scenario) in scenarios.iter().enumerate() {
        for (stream_number, stream) in scenario.traffic.iter().enumerate() {
            let mut random = RandomNumbers::new((number * 100 + stream_number + 1) as u64);
            let end = start + micros(stream.to.unwrap_or(seconds).min(seconds));
            let mut add = |node: usize, request: PlannedRequest| {
                plans[node].push(PlannedRequest {
                    scenario: number,
                    ..request
                });
            };
            plan_stream(scenario, stream, nodes, (start, end), &mut random, &mut add);
        }
    }
    for plan in &mut plans {
        plan.sort_by_key(|request| request.due);
    }
    plans
}

fn plan_stream(
    scenario: &Scenario,
    stream: &Stream,
    nodes: usize,
    (start, end): (u64, u64),
    random: &mut RandomNumbers,
    add: &mut impl FnMut(usize, PlannedRequest),
) {
    let weights = stream.spread.weights(nodes);
    let step = f64::from(stream.batch) * 1e6 / stream.rate(&scenario.limit);
    let begin = (start + micros(stream.from)) as f64;
    for count in 0_u32.. {
        // Not in step with any window, and not quite regular, as callers are.
        let due = (begin + step * (f64::from(count) + random.next_below_one())) as u64;
        if due >= end {
            break;
        }
        let node = random.choose(&weights);
        let request = PlannedRequest {
            scenario: 0,
            role: stream.role(),
            is_twin: false,
            due,
            caller: count % stream.callers.max(1) + stream.first_caller(),
            cost: stream.cost,
            batch: stream.batch,
        };
        if scenario.twin {
            let twin = PlannedRequest {
                is_twin: true,
                ..request.clone()
            };
            // Neither of the two is always the first.
            if count % 2 == 0 {
                add(node, twin);
                add(node, request);
            } else {
                add(node, request);
                add(node, twin);
            }
        } else {
            add(node, request);
        }
    }
}

/// The keys and values of a request, one of each for each of its limits. That of the judged limit is `key`.
pub fn descriptors(scenario: &Scenario, request: &PlannedRequest) -> Vec<(String, String)> {
    let (number, is_twin) = (request.scenario, request.is_twin);
    let caller = format!("c{}", request.caller);
    let value = if scenario.per_caller { &caller } else { "all" };
    let mut descriptors = vec![(key(number, is_twin), value.to_owned())];
    if scenario.own_limit.is_some() {
        descriptors.insert(0, (own_key(number, is_twin), caller.clone()));
    }
    let further = (0..scenario.also.len()).map(|place| further_key(number, is_twin, place));
    descriptors.extend(further.map(|key| (key, "all".to_owned())));
    descriptors
}

/// The body of a request by HTTP.
pub fn body(scenario: &Scenario, request: &PlannedRequest) -> String {
    let descriptors = descriptors(scenario, request).into_iter();
    let descriptors = descriptors.map(|(key, value)| format!(r#"{{"{key}":"{value}"}}"#));
    let descriptors = descriptors.collect::<Vec<_>>().join(",");
    let cost = request.cost;
    let check = format!(r#"{{"domain":"{DOMAIN}","cost":{cost},"descriptors":[{descriptors}]}}"#);
    if request.batch == 1 {
        return check;
    }
    let checks = vec![check; request.batch as usize].join(",");
    format!(r#"{{"checks":[{checks}]}}"#)
}

// === impl Stream ===

impl Stream {
    fn role(&self) -> Role {
        self.who
    }

    /// Abusers are other callers than honest ones.
    fn first_caller(&self) -> u32 {
        match self.who {
            Role::Honest => 0,
            Role::Abuser => 1_000_000,
        }
    }
}
