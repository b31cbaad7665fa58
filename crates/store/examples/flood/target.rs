//! Limits under attack, and requests that are charged to them.

use std::time::Duration;

use tidegate_algorithms::{
    Algorithm, Allowance, Headroom, Percent, Quota, QuotaSpec, Refill, Rounding,
};
use tidegate_store::{
    Admission, Charge, Charging, Clock as _, Consistency, CounterKey, Decisions, EmbeddedStore,
    LimitId, ManualClock, Mode, OnFull, StoreConfig,
};

use crate::attack::START;

/// Requests that use up a limit: each costs a quarter of it.
pub(crate) const REQUESTS: u64 = 4;

/// The longest pause between two requests of a caller.
const LONGEST_PAUSE: Duration = Duration::from_millis(950);

/// A limit under attack.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The name of the kind of limit.
    pub(crate) name: &'static str,
    pub(crate) quota: Quota,
    limit: LimitId,
    /// The pause between two requests of a caller.
    pub(crate) pause: Duration,
    /// A limit that each request is charged to as well, and that never denies.
    second: Option<Quota>,
    charging: Charging,
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
                    second: None,
                    charging: Charging::AllOrNone,
                },
            )
            .collect()
    }

    /// The limit of that name.
    pub(crate) fn named(name: &str) -> Self {
        let mut all = Self::all().into_iter();
        all.find(|target| target.name == name)
            .expect("there is one")
    }

    /// The same limit with requests that are charged to a second one, too.
    pub(crate) fn with_second_limit(self) -> Self {
        let quota = Quota::new(&QuotaSpec {
            limit: 1_000_000,
            window: Duration::from_hours(1),
            algorithm: Algorithm::TokenBucket {
                burst: None,
                refill: Refill::Continuous,
            },
            allowance: Allowance::Hard,
        });
        Self {
            second: quota.ok(),
            ..self
        }
    }

    /// The same limit in a domain that charges every limit that matches.
    pub(crate) fn with_every_match(self) -> Self {
        Self {
            charging: Charging::EveryMatch,
            ..self
        }
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

    /// Whether a fresh caller of this limit is allowed just its quota of what it asks at once.
    pub(crate) fn is_counted_exactly(&self, store: &EmbeddedStore<ManualClock>) -> bool {
        let ask = |store: &_, _| u64::from(self.charge(store, "after the flood"));
        let ask_all = |store| (0..5 * REQUESTS).map(|n| ask(store, n)).sum::<u64>();
        let config = StoreConfig {
            max_memory: 1 << 20,
        };
        let alone = EmbeddedStore::with_clock(config, ManualClock::at(store.clock().now()));
        ask_all(store) == ask_all(&alone)
    }

    /// Charges one request of a caller, and says whether it is allowed.
    pub(crate) fn charge(&self, store: &EmbeddedStore<ManualClock>, caller: &str) -> bool {
        let values = [caller];
        let charge_of = |limit, quota, cost| Charge {
            key: CounterKey {
                limit,
                values: &values,
            },
            quota,
            cost,
            mode: Mode::Enforce,
            headroom: Headroom::Absent,
            on_full: OnFull::default(),
            consistency: Consistency::Strict,
        };
        let first = charge_of(self.limit, &self.quota, self.cost());
        let mut decisions = Decisions::new();
        let receipt = match &self.second {
            None => store.charge_now(&[first], self.charging, &mut decisions),
            Some(second) => {
                let second = charge_of(LimitId(0), second, 1);
                store.charge_now(&[second, first], self.charging, &mut decisions)
            }
        };
        receipt.expect("a decision").admission == Admission::Admitted
    }
}
