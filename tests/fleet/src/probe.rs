//! Callers that send until they are denied, stop, and find out whether the wait they were told was true.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, ScopedJoinHandle};

use crate::client::Client;
use crate::clock::{self, SECOND, micros, now};
use crate::drive;
use crate::node::Node;
use crate::plan::{PlannedRequest, RandomNumbers};
use crate::record::{Outcome, Record};
use crate::scenario::{ProbeSpec, Role, Scenario};

/// What one caller found.
#[derive(Clone, Debug)]
pub struct ProbeResult {
    /// Permits that it got before its first denial.
    pub allowed: u64,
    /// The wait that its last denial told, in microseconds.
    pub told: u64,
    /// What it tried then.
    pub trial: Trial,
    /// Whether a node answered it without Redis.
    pub is_degraded: bool,
}

/// What a caller does after a denial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trial {
    /// It waited as long as it was told and sent one request.
    Waited {
        /// Whether that was allowed.
        is_allowed: bool,
    },
    /// It sent requests all the time until one was allowed.
    Polled {
        /// How long that took, in microseconds.
        allowed_after: u64,
    },
    /// It sent requests for as long as a scenario tries, and none was allowed.
    PolledInVain,
}

/// One caller on its way.
struct Prober<'a> {
    scenario: &'a Scenario,
    number: usize,
    spec: &'a ProbeSpec,
    nodes: &'a [Node],
    caller: u32,
    /// One for each node.
    clients: Vec<Client>,
    random: RandomNumbers,
    is_degraded: bool,
}

/// A caller that polls sends so often.
const POLL: u64 = 20_000;

/// Runs all callers of a scenario.
pub fn run(
    scenario: &Scenario,
    number: usize,
    nodes: &[Node],
    stop: &AtomicBool,
) -> Vec<ProbeResult> {
    let Some(spec) = &scenario.probe else {
        return Vec::new();
    };
    let next = AtomicU32::new(0);
    let take = || {
        let caller = next.fetch_add(1, Ordering::Relaxed);
        (caller < spec.callers && !stop.load(Ordering::Relaxed)).then_some(caller)
    };
    let work = || {
        let mut results = Vec::new();
        while let Some(caller) = take() {
            let mut prober = Prober {
                scenario,
                number,
                spec,
                nodes,
                caller,
                clients: nodes.iter().map(|_| Client::default()).collect(),
                random: RandomNumbers::new(u64::from(caller) + 1),
                is_degraded: false,
            };
            results.extend(prober.run());
        }
        results
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..spec.parallel).map(|_| scope.spawn(work)).collect();
        let results = threads.into_iter().map(ScopedJoinHandle::join);
        results.flat_map(Result::unwrap_or_default).collect()
    })
}

// === impl Prober ===

impl Prober<'_> {
    fn run(&mut self) -> Option<ProbeResult> {
        let (allowed, denial) = self.send_until_denied()?;
        let told = denial.retry_after?;
        let trial = self.try_out(&denial, told);
        Some(ProbeResult {
            allowed,
            told,
            trial,
            is_degraded: self.is_degraded,
        })
    }

    /// Sends at the caller's rate. Returns what was allowed before the first denial, and the last denial.
    fn send_until_denied(&mut self) -> Option<(u64, Record)> {
        let most = 4 * self.scenario.limit.capacity() + 200;
        let step = 1e6 / self.spec.rate;
        let begin = now();
        let (mut allowed, mut denied) = (0, 0);
        for count in 0..most {
            clock::sleep_until(begin + (step * count as f64) as u64);
            let record = self.send()?;
            match record.outcome {
                Outcome::Allowed if denied == 0 => allowed += record.taken(),
                Outcome::Denied if denied == self.spec.after_denial => {
                    return Some((allowed, record));
                }
                Outcome::Denied => denied += 1,
                _ => {}
            }
        }
        None
    }

    /// Four of five callers wait as they are told; the others poll.
    fn try_out(&mut self, denial: &Record, told: u64) -> Trial {
        let longest = micros(self.spec.longest_wait);
        let polls = self.caller % 5 == 4;
        if told <= longest && !polls {
            clock::sleep_until(denial.received + told);
            let record = self.send();
            let is_allowed = record.is_some_and(|record| record.outcome == Outcome::Allowed);
            return Trial::Waited { is_allowed };
        }
        let end = denial.received + longest + SECOND;
        let mut next = now();
        while next < end {
            clock::sleep_until(next);
            next += POLL;
            let Some(record) = self.send() else {
                break;
            };
            if record.outcome == Outcome::Allowed {
                let allowed_after = record.received - denial.received;
                return Trial::Polled { allowed_after };
            }
        }
        Trial::PolledInVain
    }

    fn send(&mut self) -> Option<Record> {
        let weights = self.spec.spread.weights(self.nodes.len());
        let node = self.random.choose(&weights);
        let request = PlannedRequest {
            scenario: self.number,
            role: Role::Honest,
            is_twin: false,
            due: now(),
            caller: self.caller,
            cost: self.spec.cost,
            batch: 1,
        };
        let mut answered = None;
        drive::send(
            self.scenario,
            self.nodes,
            node,
            &request,
            &mut self.clients[node],
            |record| answered = Some(record),
        );
        let record = answered.filter(|record| record.outcome != Outcome::Unanswered)?;
        self.is_degraded |= record.is_degraded;
        Some(record)
    }
}
