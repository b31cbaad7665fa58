//! A flood of invented keys in simulated time, and what others get meanwhile and afterwards.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tidegate_algorithms::Time;
use tidegate_store::{Clock as _, EmbeddedStore, ManualClock, StoreConfig, StoreStats};

use crate::target::{REQUESTS, Target};

pub(crate) const START: Time = Time::from_nanos(1_800_000_000_000_000_000);

/// Callers that ask five times their quota, one after the other.
const GREEDY_CALLERS: u64 = 8;

/// The spans of a second in which several threads send requests at once.
const SPANS_IN_A_SECOND: u64 = 100;

/// Callers that ask half their quota.
pub(crate) const HONEST_CALLERS: u64 = 1_000;

/// A flood.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attack {
    /// Invented keys.
    pub(crate) keys: u64,
    /// Requests for each of them, one right after the other.
    pub(crate) requests_per_key: u64,
    /// Times that the flood goes over all its keys.
    pub(crate) rounds: u64,
    /// Requests in a second.
    pub(crate) rate: u64,
    /// The cap of the store.
    pub(crate) max_memory: usize,
    /// Threads that send the requests of the flood, while those of other callers come from another one.
    pub(crate) threads: u64,
}

/// What others got.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// Requests of the offender that were allowed after it was denied for the first time, beyond those that are
    /// without a flood.
    pub(crate) offender: u64,
    /// The most requests that a fresh caller was allowed which asked five times its quota.
    pub(crate) greedy: u64,
    /// The requests that the same caller is allowed without a flood.
    pub(crate) quota: u64,
    /// Honest callers that were allowed all that they asked for.
    pub(crate) honest: u64,
    /// Whether the store was within its cap all the time.
    pub(crate) is_bounded: bool,
    /// Limits of which a fresh caller is not counted exactly a minute after the flood.
    pub(crate) inexact: Vec<&'static str>,
    /// The store in the end.
    pub(crate) stats: StoreStats,
}

/// A caller among the flood, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Caller {
    Offender,
    Greedy(u64),
    Honest(u64),
}

/// A store under attack.
struct Scene<'a> {
    store: Arc<EmbeddedStore<ManualClock>>,
    target: &'a Target,
    /// The next callers, and the times of their requests.
    queue: BinaryHeap<Reverse<(Time, Caller)>>,
    /// Requests that the callers were allowed, and that they made.
    allowed: [Vec<u64>; 3],
    asked: [Vec<u64>; 3],
    is_bounded: bool,
}

// === impl Outcome ===

impl Outcome {
    /// Whether no caller got too much, and memory stayed within its cap.
    pub(crate) fn is_limited(&self) -> bool {
        self.offender == 0 && self.greedy <= 2 * self.quota && self.is_bounded
    }

    /// Whether, besides, nine in ten honest callers were allowed all their requests, and callers are counted exactly
    /// afterwards.
    pub(crate) fn is_held(&self) -> bool {
        self.is_limited() && self.honest * 10 >= HONEST_CALLERS * 9 && self.inexact.is_empty()
    }
}

// === impl Attack ===

impl Attack {
    /// Runs the flood on a limit, and reports what other callers of the same limit got.
    pub(crate) fn on(self, target: &Target) -> Outcome {
        self.by(target, target)
    }

    /// Runs a flood of requests that are charged to the limit of `flood`, and reports what callers of `target` got.
    pub(crate) fn by(self, flood: &Target, target: &Target) -> Outcome {
        let mut scene = Scene::new(target, self);
        scene.flood(flood, self);
        // As the server does, once a second.
        for _ in 0..60 {
            scene.store.clock().advance(Duration::from_secs(1));
            scene.store.recognise_idle(0, 1);
        }
        let inexact = Target::all()
            .iter()
            .filter(|target| !target.is_counted_exactly(&scene.store))
            .map(|target| target.name)
            .collect();
        let mut alone = Scene::new(target, self);
        alone.play_until(START.plus(self.duration()));
        let [offender, greedy, honest] = &scene.allowed;
        let pairs = greedy.iter().zip(&alone.allowed[1]);
        // A bucket that was just used may allow less than its limit.
        let pairs = pairs.map(|(&allowed, &alone)| (allowed, alone.max(REQUESTS)));
        let worst = pairs.max_by_key(|&(allowed, alone)| allowed * 1_000 / alone);
        let (greedy, quota) = worst.expect("some are greedy");
        Outcome {
            offender: offender[0].saturating_sub(alone.allowed[0][0]),
            greedy,
            quota,
            honest: honest.iter().filter(|&&n| n == REQUESTS / 2).count() as u64,
            is_bounded: scene.is_bounded,
            inexact,
            stats: scene.store.stats(),
        }
    }

    /// Sends one of the requests.
    fn send(self, flood: &Target, store: &EmbeddedStore<ManualClock>, number: u64) {
        let key = number / self.requests_per_key % self.keys;
        flood.charge(store, &format!("invented {key}"));
    }

    fn duration(self) -> Duration {
        let requests = self.keys * self.requests_per_key * self.rounds;
        Duration::from_secs(requests / self.rate)
    }
}

// === impl Scene ===

impl<'a> Scene<'a> {
    /// A store with an offender, and the other callers of an attack on their way.
    fn new(target: &'a Target, attack: Attack) -> Self {
        let config = StoreConfig {
            max_memory: attack.max_memory,
        };
        let counts = || {
            [1, GREEDY_CALLERS, HONEST_CALLERS]
                .map(|callers| vec![0; usize::try_from(callers).expect("few")])
        };
        let mut scene = Self {
            store: Arc::new(EmbeddedStore::with_clock(config, ManualClock::at(START))),
            target,
            queue: BinaryHeap::new(),
            allowed: counts(),
            asked: counts(),
            is_bounded: true,
        };
        scene.invite(attack.duration());
        scene
    }

    /// Schedules the callers: the offender at once, the others from a quarter of the flood on.
    fn invite(&mut self, duration: Duration) {
        while self.target.charge(&self.store, "offender") {}
        let quarter = duration / 4;
        // The last one has asked all that it will when the flood ends.
        let at = |n: u64, of: u64, requests: u32| {
            let span = duration.saturating_sub(quarter + self.target.pause * requests);
            let part = span * u32::try_from(n).expect("few") / u32::try_from(of).expect("few");
            START.plus(quarter + part)
        };
        let offender = (START.plus(self.target.pause), Caller::Offender);
        let greedy = (0..GREEDY_CALLERS).map(|n| (at(n, GREEDY_CALLERS, 40), Caller::Greedy(n)));
        let honest = (0..HONEST_CALLERS).map(|n| (at(n, HONEST_CALLERS, 2), Caller::Honest(n)));
        let all = [offender].into_iter().chain(greedy).chain(honest);
        self.queue.extend(all.map(Reverse));
    }

    /// Sends the requests of the flood, those of a short span at once if several threads send them.
    fn flood(&mut self, flood: &Target, attack: Attack) {
        let span = match attack.threads {
            1 => 1,
            _ => attack.rate / SPANS_IN_A_SECOND,
        };
        let all = attack.keys * attack.rounds * attack.requests_per_key;
        for first in (0..all).step_by(usize::try_from(span).expect("few")) {
            let until = all.min(first + span);
            let nanos = u128::from(until) * 1_000_000_000 / u128::from(attack.rate);
            let now = START.plus(Duration::from_nanos(u64::try_from(nanos).expect("years")));
            if attack.threads == 1 {
                self.play_until(now);
                attack.send(flood, &self.store, first);
            } else {
                let store = Arc::clone(&self.store);
                thread::scope(|scope| {
                    for thread in 0..attack.threads {
                        let own = (first..until).filter(move |n| n % attack.threads == thread);
                        let store = &store;
                        scope.spawn(move || own.for_each(|n| attack.send(flood, store, n)));
                    }
                    self.play_until(now);
                });
            }
            if first % 1_000 < span {
                let stats = self.store.stats();
                self.is_bounded &= stats.used_bytes <= stats.max_bytes;
            }
        }
    }

    /// Sends the requests of callers that are due by `now`, and sets the clock to it.
    fn play_until(&mut self, now: Time) {
        while let Some(&Reverse((at, caller))) = self.queue.peek()
            && at <= now
        {
            self.queue.pop();
            self.set_clock(at);
            self.ask(caller, at);
        }
        self.set_clock(now);
    }

    fn ask(&mut self, caller: Caller, at: Time) {
        let (sort, number, most) = match caller {
            Caller::Offender => (0, 0, u64::MAX),
            Caller::Greedy(n) => (1, n, 5 * REQUESTS),
            Caller::Honest(n) => (2, n, REQUESTS / 2),
        };
        let number = usize::try_from(number).expect("few");
        let name = match caller {
            Caller::Offender => "offender".to_owned(),
            Caller::Greedy(_) => format!("greedy {number}"),
            Caller::Honest(_) => format!("honest {number}"),
        };
        self.allowed[sort][number] += u64::from(self.target.charge(&self.store, &name));
        self.asked[sort][number] += 1;
        if self.asked[sort][number] < most {
            self.queue
                .push(Reverse((at.plus(self.target.pause), caller)));
        }
    }

    fn set_clock(&self, now: Time) {
        let clock = self.store.clock();
        clock.advance(now.since(clock.now()));
    }
}
