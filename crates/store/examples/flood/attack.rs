//! A flood of invented keys in simulated time, and what others get meanwhile and afterwards.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write as _;
use std::time::Duration;

use tidegate_algorithms::{
    Algorithm, Allowance, Headroom, Percent, Quota, QuotaSpec, Refill, Rounding, Time,
};
use tidegate_store::{
    Charge, Charging, Clock as _, Consistency, CounterKey, Decisions, EmbeddedStore, LimitId,
    ManualClock, Mode, OnFull, StoreConfig, StoreStats,
};

const START: Time = Time::from_nanos(1_800_000_000_000_000_000);

/// Requests that use up a limit: each costs a quarter of it.
const REQUESTS: u64 = 4;

/// The longest pause between two requests of a caller.
const LONGEST_PAUSE: Duration = Duration::from_millis(950);

/// Callers that ask five times their quota, one after the other.
const GREEDY_CALLERS: u64 = 8;

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

/// A limit under attack.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The name of the kind of limit.
    pub(crate) name: &'static str,
    pub(crate) quota: Quota,
    limit: LimitId,
    /// The pause between two requests of a caller.
    pause: Duration,
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
    store: EmbeddedStore<ManualClock>,
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

// === impl Target ===

impl Target {
    /// A limit of each kind of state.
    pub(crate) fn all() -> Vec<Self> {
        let soft_for = Allowance::Soft {
            over: Percent(50),
            only_for: Some(Duration::from_secs(30)),
        };
        let bucket = |refill| Algorithm::TokenBucket {
            burst: None,
            refill,
        };
        let counter = |sub_windows| Algorithm::SlidingCounter {
            sub_windows,
            rounding: Rounding::Down,
        };
        let log = Algorithm::SlidingLog { log_refused: false };
        let (hard, window) = (Allowance::Hard, Algorithm::FixedWindow);
        let (second, minute) = (Duration::from_secs(1), Duration::from_mins(1));
        // Nothing of a flood expires before its end.
        let day = Duration::from_hours(24);
        let leaky = Algorithm::LeakyBucket { queue: None };
        let continuous = bucket(Refill::Continuous);
        let kinds = [
            ("fixed_window", 4, day, window, hard),
            ("fixed_window soft_for", 4, day, window, soft_for),
            ("token_bucket", 4, day, continuous, hard),
            ("interval bucket", 4, day, bucket(Refill::Interval), hard),
            ("leaky_bucket", 4, day, leaky, hard),
            ("sliding_log", 4, day, log, hard),
            ("sliding_log soft_for", 4, day, log, soft_for),
            ("sliding_counter", 4, day, counter(1), hard),
            ("sub_windows", 4, day, counter(60), hard),
            ("sliding_log of 100", 100, day, log, hard),
            ("sliding_log a minute", 4, minute, log, hard),
            ("token_bucket a minute", 4, minute, continuous, hard),
            ("fixed_window a second", 4, second, window, hard),
        ];
        (1..)
            .zip(kinds)
            .map(
                |(number, (name, limit, window, algorithm, allowance))| Self {
                    name,
                    quota: Quota::new(&QuotaSpec {
                        limit,
                        window,
                        algorithm,
                        allowance,
                    })
                    .expect("a valid quota"),
                    limit: LimitId(number),
                    // Five times the quota within half a window.
                    pause: LONGEST_PAUSE.min(window / 50),
                },
            )
            .collect()
    }

    /// Requests by which a key is driven over this limit.
    pub(crate) fn to_be_denied(&self) -> u64 {
        REQUESTS + self.quota.most_extra() / self.cost() + 1
    }

    /// The cost of each request.
    fn cost(&self) -> u64 {
        self.quota.limit() / REQUESTS
    }

    /// Counters of denied callers that a store has room for while all of them are in use.
    pub(crate) fn most_in_use(&self, max_memory: usize) -> u64 {
        let store = EmbeddedStore::with_clock(StoreConfig { max_memory }, ManualClock::at(START));
        let (mut with_room, mut without_room) = (0, 0);
        while without_room <= with_room / 16 {
            let key = format!("in use {}", with_room + without_room);
            let before = store.stats().untracked;
            while self.charge(&store, &key) && store.stats().untracked == before {}
            if store.stats().untracked == before {
                with_room += 1;
            } else {
                without_room += 1;
            }
        }
        with_room
    }

    /// Runs a flood, and reports what other callers got.
    pub(crate) fn attack(&self, attack: Attack) -> Outcome {
        let mut scene = Scene::new(self, attack);
        scene.flood(attack);
        // As the server does, once a second.
        for _ in 0..60 {
            scene.store.clock().advance(Duration::from_secs(1));
            scene.store.recognise_idle(0, 1);
        }
        let inexact = Self::all()
            .iter()
            .filter(|target| !target.is_counted_exactly(&scene.store))
            .map(|target| target.name)
            .collect();
        let mut alone = Scene::new(self, attack);
        alone.play_until(START.plus(attack.duration()));
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

    /// Whether a fresh caller of this limit is allowed just its quota of what it asks at once.
    fn is_counted_exactly(&self, store: &EmbeddedStore<ManualClock>) -> bool {
        let ask = |store: &_, _| u64::from(self.charge(store, "after the flood"));
        let ask_all = |store| (0..5 * REQUESTS).map(|n| ask(store, n)).sum::<u64>();
        let config = StoreConfig {
            max_memory: 1 << 20,
        };
        let alone = EmbeddedStore::with_clock(config, ManualClock::at(store.clock().now()));
        ask_all(store) == ask_all(&alone)
    }

    /// Charges one request of a caller, and says whether it is allowed.
    fn charge(&self, store: &EmbeddedStore<ManualClock>, caller: &str) -> bool {
        let charge = Charge {
            key: CounterKey {
                limit: self.limit,
                values: &[caller],
            },
            quota: &self.quota,
            cost: self.cost(),
            mode: Mode::Enforce,
            headroom: Headroom::Absent,
            on_full: OnFull::default(),
            consistency: Consistency::Strict,
        };
        let mut decisions = Decisions::new();
        store
            .charge_now(&[charge], Charging::AllOrNone, &mut decisions)
            .expect("a decision");
        decisions[0].is_allowed()
    }
}

// === impl Attack ===

impl Attack {
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
            store: EmbeddedStore::with_clock(config, ManualClock::at(START)),
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

    fn flood(&mut self, attack: Attack) {
        let mut key = String::new();
        let mut requests = 0_u64;
        for n in (0..attack.rounds).flat_map(|_| 0..attack.keys) {
            key.clear();
            write!(key, "invented {n}").expect("a string takes everything");
            for _ in 0..attack.requests_per_key {
                requests += 1;
                let nanos = u128::from(requests) * 1_000_000_000 / u128::from(attack.rate);
                let now = START.plus(Duration::from_nanos(u64::try_from(nanos).expect("years")));
                self.play_until(now);
                self.target.charge(&self.store, &key);
            }
            if n % 1_000 == 0 {
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
