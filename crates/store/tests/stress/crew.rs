//! The threads, what they ask, and the replay of what they were told.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use tidegate_algorithms::{Algorithm, Allowance, Decision, Headroom, Quota, QuotaSpec, RefundTo};
use tidegate_store::conformance::model::{Model, ModelCharge};
use tidegate_store::{
    Admission, Charge, Charging, Consistency, CounterKey, Decisions, EmbeddedStore, LimitId, Mode,
    OnFull, Store, StoreConfig,
};

use crate::clock::SequenceClock;
use crate::random::Random;

/// More than the machine's cores, so that holders of counters get interrupted.
const THREADS: u64 = 4;

/// Who calls. Each limit has a counter for each of them.
const CALLERS: [&[&str]; 2] = [&["ann"], &["bob"]];

/// The limit of callers that come once.
const NEWCOMERS: LimitId = LimitId(1_000);

/// The smallest store there is: room for 512 callers at first, so it grows soon.
const CONFIG: StoreConfig = StoreConfig {
    max_memory: 1 << 20,
};

/// Limits and a store to race in.
pub(crate) struct Crew {
    specs: Vec<QuotaSpec>,
    quotas: Vec<Quota>,
    newcomers: Quota,
    store: EmbeddedStore<SequenceClock>,
}

/// What each thread does.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) requests: u64,
    /// The most limits that a request names.
    pub(crate) most_limits: usize,
    pub(crate) charging: Charging,
    /// Whether callers never seen come along.
    pub(crate) newcomers: bool,
}

/// What happened, and its place in the order of things.
struct Event {
    number: u64,
    act: Act,
}

enum Act {
    Charge {
        charges: Vec<ModelCharge>,
        answer: (Admission, Vec<Decision>),
    },
    Refund {
        counter: usize,
        cost: u64,
    },
}

// === impl Crew ===

impl Crew {
    pub(crate) fn new(specs: Vec<QuotaSpec>) -> Self {
        // They stay for the day, so that the table has to grow for them.
        let newcomers = QuotaSpec {
            window: Duration::from_hours(24),
            ..spec(1_000_000, Algorithm::FixedWindow, Allowance::Hard)
        };
        Self {
            quotas: specs.iter().map(quota).collect(),
            specs,
            newcomers: quota(&newcomers),
            store: EmbeddedStore::with_clock(CONFIG, SequenceClock::default()),
        }
    }

    /// Lets the threads loose and explains what they were told.
    pub(crate) fn race(&self, plan: Plan) {
        let empty = self.store.stats();
        let mut events: Vec<Event> = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|seed| scope.spawn(move || self.run(plan, seed)))
                .collect();
            threads
                .into_iter()
                .flat_map(|thread| thread.join().expect("no thread fails"))
                .collect()
        });
        events.sort_unstable_by_key(|event| event.number);
        let told = events
            .windows(2)
            .all(|pair| pair[0].number < pair[1].number);
        assert!(told, "two things cannot have happened at once");
        self.replay(plan, &events);

        let stats = self.store.stats();
        assert_eq!((stats.evicted, stats.untracked), (0, 0));
        let has_grown = stats.used_bytes > 2 * empty.used_bytes;
        assert_eq!(has_grown, plan.newcomers, "{stats:?}");
    }

    fn replay(&self, plan: Plan, events: &[Event]) {
        let counters = 0..self.counters();
        let mut model = Model::new(counters.map(|counter| &self.specs[counter / CALLERS.len()]));
        for Event { number, act } in events {
            let now = SequenceClock::time(*number);
            match act {
                Act::Charge { charges, answer } => {
                    let expected = model.charge(charges, plan.charging, Headroom::Absent, now);
                    assert_eq!(*answer, expected, "number {number} at {now:?}: {charges:?}");
                }
                Act::Refund { counter, cost } => model.refund(*counter, *cost, now),
            }
        }
    }

    fn run(&self, plan: Plan, seed: u64) -> Vec<Event> {
        let mut random = Random(seed);
        (0..plan.requests)
            .map(|request| {
                let act = if random.below(20) == 0 {
                    self.refund(&mut random)
                } else {
                    let name = format!("{seed}/{request}");
                    self.charge(plan, &mut random, plan.newcomers.then_some(&name))
                };
                let number = SequenceClock::last();
                Event { number, act }
            })
            .collect()
    }

    fn refund(&self, random: &mut Random) -> Act {
        let counter = random.below(self.counters());
        let cost = random.below(4) as u64;
        let quota = &self.quotas[counter / CALLERS.len()];
        let refund = self.store.refund(
            key(counter),
            quota,
            cost,
            RefundTo::Current,
            Consistency::Node,
        );
        done(refund).expect("a refund");
        Act::Refund { counter, cost }
    }

    fn charge(&self, plan: Plan, random: &mut Random, newcomer: Option<&String>) -> Act {
        let charges = self.ask(plan, random);
        let mut asked: Vec<Charge<'_>> = charges
            .iter()
            .map(|charge| Charge {
                key: key(charge.counter),
                quota: &self.quotas[charge.counter / CALLERS.len()],
                cost: charge.cost,
                mode: charge.mode,
                headroom: Headroom::Absent,
                on_full: OnFull::Deny,
                consistency: Consistency::Strict,
            })
            .collect();
        let values: Vec<&str> = newcomer.into_iter().map(String::as_str).collect();
        if newcomer.is_some() {
            asked.push(Charge {
                key: CounterKey {
                    limit: NEWCOMERS,
                    values: &values,
                },
                quota: &self.newcomers,
                cost: 1,
                mode: Mode::Enforce,
                headroom: Headroom::Absent,
                on_full: OnFull::Deny,
                consistency: Consistency::Strict,
            });
        }
        let mut decisions = Decisions::new();
        let receipt = self
            .store
            .charge_now(&asked, plan.charging, &mut decisions)
            .expect("a decision");
        let (told, newcomers) = decisions.split_at(charges.len());
        assert!(newcomers.iter().all(Decision::is_allowed), "never seen");
        let answer = (receipt.admission, told.to_vec());
        Act::Charge { charges, answer }
    }

    /// What a request asks. A log that remembers refusals is named only once.
    fn ask(&self, plan: Plan, random: &mut Random) -> Vec<ModelCharge> {
        let mut charges: Vec<ModelCharge> = Vec::new();
        for _ in 0..=random.below(plan.most_limits) {
            let counter = random.below(self.counters());
            let algorithm = self.specs[counter / CALLERS.len()].algorithm;
            let adds_up = algorithm != Algorithm::SlidingLog { log_refused: true };
            if adds_up || charges.iter().all(|other| other.counter != counter) {
                charges.push(ModelCharge {
                    counter,
                    cost: random.pick(&[0, 1, 1, 1, 2, 3, 100]),
                    mode: random.pick(&[Mode::Enforce, Mode::Enforce, Mode::Quota, Mode::Shadow]),
                });
            }
        }
        charges
    }

    fn counters(&self) -> usize {
        self.specs.len() * CALLERS.len()
    }
}

/// `limit` a second.
pub(crate) fn spec(limit: u64, algorithm: Algorithm, allowance: Allowance) -> QuotaSpec {
    QuotaSpec {
        limit,
        window: Duration::from_secs(1),
        algorithm,
        allowance,
    }
}

fn quota(spec: &QuotaSpec) -> Quota {
    Quota::new(spec).expect("valid")
}

fn key(counter: usize) -> CounterKey<'static> {
    CounterKey {
        limit: LimitId((counter / CALLERS.len()) as u128),
        values: CALLERS[counter % CALLERS.len()],
    }
}

/// The answer of a store that never waits.
fn done<T>(answer: impl Future<Output = T>) -> T {
    match pin!(answer).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("the embedded store waits for nothing"),
    }
}
