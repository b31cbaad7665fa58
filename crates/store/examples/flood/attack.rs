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

/// The limit of every caller, in a day, so that nothing of a flood expires before its end.
const LIMIT: u64 = 4;
const WINDOW: Duration = Duration::from_hours(24);

/// The pause between two requests of a caller that asks for more than its quota.
const PAUSE: Duration = Duration::from_millis(950);

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
    /// Requests of the offender that were allowed after it was denied for the first time.
    pub(crate) offender: u64,
    /// The most that a fresh caller was allowed which asked five times its quota.
    pub(crate) greedy: u64,
    /// What such a caller is allowed in a store of its own.
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
        let kinds = [
            ("fixed_window", Algorithm::FixedWindow, Allowance::Hard),
            ("fixed_window soft_for", Algorithm::FixedWindow, soft_for),
            ("token_bucket", bucket(Refill::Continuous), Allowance::Hard),
            ("interval bucket", bucket(Refill::Interval), Allowance::Hard),
            (
                "leaky_bucket",
                Algorithm::LeakyBucket { queue: None },
                Allowance::Hard,
            ),
            ("sliding_log", log, Allowance::Hard),
            ("sliding_log soft_for", log, soft_for),
            ("sliding_counter", counter(1), Allowance::Hard),
            ("sub_windows", counter(60), Allowance::Hard),
        ];
        (1..)
            .zip(kinds)
            .map(|(number, (name, algorithm, allowance))| Self {
                name,
                quota: Quota::new(&QuotaSpec {
                    limit: LIMIT,
                    window: WINDOW,
                    algorithm,
                    allowance,
                })
                .expect("a valid quota"),
                limit: LimitId(number),
            })
            .collect()
    }

    /// Requests by which a key is driven over this limit.
    pub(crate) fn to_be_denied(&self) -> u64 {
        LIMIT + self.quota.most_extra() + 1
    }

    /// Runs a flood, and reports what other callers got.
    pub(crate) fn attack(&self, attack: Attack) -> Outcome {
        let quota = self.quota_alone();
        let mut scene = Scene::new(self, attack.max_memory);
        scene.invite(attack.duration());
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
        let [offender, greedy, honest] = &scene.allowed;
        Outcome {
            offender: offender[0],
            greedy: greedy.iter().copied().max().unwrap_or(0),
            quota,
            honest: honest.iter().filter(|&&n| n == LIMIT / 2).count() as u64,
            is_bounded: scene.is_bounded,
            inexact,
            stats: scene.store.stats(),
        }
    }

    /// What a caller is allowed in an empty store that asks five times its quota.
    fn quota_alone(&self) -> u64 {
        let mut scene = Scene::new(self, 1 << 20);
        let start = scene.store.clock().now();
        scene.queue.push(Reverse((start, Caller::Greedy(0))));
        scene.play_until(Time::MAX);
        scene.allowed[1][0].max(LIMIT)
    }

    /// Whether a fresh caller of this limit is allowed just its quota of what it asks at once.
    fn is_counted_exactly(&self, store: &EmbeddedStore<ManualClock>) -> bool {
        let ask = |store: &_, _| u64::from(self.charge(store, "after the flood"));
        let ask_all = |store| (0..5 * LIMIT).map(|n| ask(store, n)).sum::<u64>();
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
            cost: 1,
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
    fn new(target: &'a Target, max_memory: usize) -> Self {
        let config = StoreConfig { max_memory };
        let counts = || {
            [1, GREEDY_CALLERS, HONEST_CALLERS]
                .map(|callers| vec![0; usize::try_from(callers).expect("few")])
        };
        Self {
            store: EmbeddedStore::with_clock(config, ManualClock::at(START)),
            target,
            queue: BinaryHeap::new(),
            allowed: counts(),
            asked: counts(),
            is_bounded: true,
        }
    }

    /// Schedules the callers: the offender at once, the others from a quarter of the flood on.
    fn invite(&mut self, duration: Duration) {
        while self.target.charge(&self.store, "offender") {}
        let quarter = duration / 4;
        // The last one has asked all that it will when the flood ends.
        let span = duration.saturating_sub(quarter + 5 * 2 * PAUSE * 4);
        let at = |n: u64, of: u64| {
            let part = span * u32::try_from(n).expect("few") / u32::try_from(of).expect("few");
            START.plus(quarter + part)
        };
        let offender = (START.plus(PAUSE), Caller::Offender);
        let greedy = (0..GREEDY_CALLERS).map(|n| (at(n, GREEDY_CALLERS), Caller::Greedy(n)));
        let honest = (0..HONEST_CALLERS).map(|n| (at(n, HONEST_CALLERS), Caller::Honest(n)));
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
        if now < Time::MAX {
            self.set_clock(now);
        }
    }

    fn ask(&mut self, caller: Caller, at: Time) {
        let (sort, number, most) = match caller {
            Caller::Offender => (0, 0, u64::MAX),
            Caller::Greedy(n) => (1, n, 5 * LIMIT),
            Caller::Honest(n) => (2, n, LIMIT / 2),
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
            self.queue.push(Reverse((at.plus(PAUSE), caller)));
        }
    }

    fn set_clock(&self, now: Time) {
        let clock = self.store.clock();
        clock.advance(now.since(clock.now()));
    }
}
