//! No input makes an algorithm panic, overflow or contradict itself: not even states that no charge
//! can have left.

use std::time::Duration;

use proptest::prelude::*;
use tidegate_algorithms::sliding_log::{Log, LogMut};
use tidegate_algorithms::sub_windows::Counts;
use tidegate_algorithms::{
    Algorithm, Allowance, ChargeStamp, Decision, Headroom, Inquiry, Meter, Outcome, Percent, Quota,
    QuotaSpec, Refill, RefundTo, Retry, Rounding, SoftPeriod, Ticks, Time, fixed_window,
    interval_bucket, leaky_bucket, sliding_counter, token_bucket,
};

use crate::history::cases;

/// Numbers of every size, the ends of the range among them.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..4_u64,
        (0..64_u32, any::<u64>()).prop_map(|(bits, noise)| (1 << bits) | (noise % (1 << bits))),
        (0..4_u64).prop_map(|n| u64::MAX - n),
        (0..4_u64).prop_map(|n| Time::MAX.nanos() - 2 + n),
    ]
}

fn spec() -> impl Strategy<Value = QuotaSpec> {
    let algorithm = (
        0..6_u8,
        prop::option::of(number()),
        any::<bool>(),
        any::<u16>(),
    );
    let algorithm = algorithm.prop_map(|(kind, size, flag, parts)| match kind {
        0 => Algorithm::TokenBucket {
            burst: size,
            refill: Refill::Continuous,
        },
        1 => Algorithm::TokenBucket {
            burst: size,
            refill: Refill::Interval,
        },
        2 => Algorithm::LeakyBucket { queue: size },
        3 => Algorithm::FixedWindow,
        4 => Algorithm::SlidingLog { log_refused: flag },
        _ => {
            let rounding = if flag { Rounding::Up } else { Rounding::Down };
            Algorithm::SlidingCounter {
                sub_windows: parts % 70,
                rounding,
            }
        }
    });
    let only_for = prop::option::of(number().prop_map(Duration::from_nanos));
    let allowance = (0..3_u8, 0..1_100_u32, only_for);
    let allowance = allowance.prop_map(|(kind, percent, only_for)| match kind {
        0 => Allowance::Hard,
        1 => Allowance::Soft {
            over: Percent(percent),
            only_for,
        },
        _ => Allowance::Elastic {
            over: Percent(percent),
        },
    });
    (number(), number(), algorithm, allowance).prop_map(|(limit, window, algorithm, allowance)| {
        QuotaSpec {
            limit,
            window: Duration::from_nanos(window),
            algorithm,
            allowance,
        }
    })
}

/// A log with anything in it, oldest first.
struct AnyLog(Vec<u64>);

/// Counts of anything.
struct AnyCounts {
    newest: u64,
    counts: Vec<u64>,
}

impl Log for AnyLog {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn nth_oldest(&self, n: u64) -> Option<u64> {
        self.0.get(usize::try_from(n).ok()?).copied()
    }
}

impl LogMut for AnyLog {
    fn drop_oldest(&mut self, n: u64) {
        self.0
            .drain(..usize::try_from(n).expect("no more than there are"));
    }

    fn drop_newest(&mut self, n: u64) {
        self.0
            .truncate(self.0.len() - usize::try_from(n).expect("no more than there are"));
    }

    fn remove(&mut self, first: u64, n: u64) {
        let index = |n| usize::try_from(n).expect("no more than there are");
        self.0.drain(index(first)..index(first + n));
    }

    fn push(&mut self, stamp: u64, n: u64) {
        // What matters here is that it may be called, not that a million fit.
        assert!(self.0.last().is_none_or(|newest| *newest <= stamp));
        self.0.extend((0..n.min(10)).map(|_| stamp));
    }
}

impl Counts for AnyCounts {
    fn newest(&self) -> u64 {
        self.newest
    }

    fn total(&self) -> u64 {
        self.counts
            .iter()
            .fold(0, |sum, count| sum.saturating_add(*count))
    }

    fn count(&self, age: u64) -> u64 {
        usize::try_from(age)
            .ok()
            .and_then(|age| self.counts.get(age))
            .copied()
            .unwrap_or(0)
    }

    fn advance(&mut self, sub_window: u64) {
        self.newest = sub_window;
    }

    fn add(&mut self, cost: u64) {
        self.counts[0] = self.counts[0].saturating_add(cost);
    }

    fn take(&mut self, _age: u64, cost: u64) -> u64 {
        cost / 2
    }
}

/// Asks everything there is to ask of one quota.
fn exercise(
    quota: &Quota,
    [a, b, c]: [u64; 3],
    many: &[u64],
    (cost, extra, now): (u64, u64, Time),
) -> Decision {
    let to = if extra % 2 == 0 {
        RefundTo::Current
    } else {
        RefundTo::Charge(ChargeStamp {
            at: Time::from_nanos(b),
            resets_at: Time::from_nanos(c),
            is_shared: false,
        })
    };
    match quota.meter() {
        Meter::TokenBucket(meter) => {
            let state = token_bucket::State {
                tat: Ticks(u128::from(a) << 64 | u128::from(b)),
            };
            let state = if c % 2 == 0 {
                token_bucket::State {
                    tat: Ticks::from_nanos(a),
                }
            } else {
                state
            };
            let (decision, next) = meter.decide(state, cost, extra, now);
            meter.expires_at(meter.refund(next, cost, to, now));
            decision
        }
        Meter::LeakyBucket(meter) => {
            let state = leaky_bucket::State {
                next_departure: Ticks(u128::from(a) << (b % 65)),
            };
            let (decision, next) = meter.decide(state, cost, extra, now);
            meter.expires_at(meter.refund(next, cost, to, now));
            decision
        }
        Meter::IntervalBucket(meter) => {
            let state = interval_bucket::State {
                period: a,
                missing: b,
            };
            let (decision, next) = meter.decide(state, cost, extra, now);
            meter.expires_at(meter.refund(next, cost, to, now));
            meter.expires_at(state);
            decision
        }
        Meter::FixedWindow(meter) => {
            let state = fixed_window::State {
                window: a,
                count: b,
            };
            let (decision, next) = meter.decide(state, cost, extra, now);
            meter.expires_at(meter.refund(next, cost, to, now));
            meter.expires_at(meter.count_refused(state, cost, now));
            decision
        }
        Meter::SlidingCounter(meter) => {
            let state = sliding_counter::State {
                window: a,
                previous: b,
                current: c,
            };
            let (decision, next) = meter.decide(state, cost, extra, now);
            meter.expires_at(meter.refund(next, cost, to, now));
            meter.expires_at(state);
            decision
        }
        Meter::SlidingLog(meter) => {
            let mut log = AnyLog(many.to_vec());
            log.0.sort_unstable();
            let (decision, entry) = meter.decide(&log, cost, extra, now);
            if let Some(entry) = entry {
                meter.write(&mut log, entry);
                meter.expires_at(entry.stamp);
            }
            meter.refund(&mut log, cost, to, now);
            decision
        }
        Meter::SubWindows(meter) => {
            let mut counts = AnyCounts {
                newest: a,
                counts: many.to_vec(),
            };
            // Decides no nonsense even where nobody brought the counts up to now.
            meter.decide(&counts, cost, extra, now);
            meter.advance(&mut counts, now);
            let (decision, _) = meter.decide(&counts, cost, extra, now);
            meter.refund(&mut counts, cost, to, now);
            meter.expires_at(&counts);
            decision
        }
    }
}

proptest! {
    #![proptest_config(cases(4_000))]

    /// Nothing panics, and every answer is in itself consistent.
    #[test]
    fn any_numbers_any_state_any_time(
        spec in spec(),
        numbers in [number(), number(), number()],
        many in prop::collection::vec(number(), 1..20),
        cost in number(), extra in number(), now in number(), word in prop::option::of(number()),
    ) {
        let Ok(quota) = Quota::new(&spec) else { return Ok(()) };
        let now = Time::from_nanos(now);
        // Marked, so that most of them are periods.
        let period = word.and_then(|word| SoftPeriod::from_word(word | 1 << 63));
        let decide = |extra| (exercise(&quota, numbers, &many, (cost, extra, now)), ());
        let answers = [
            decide(extra).0,
            quota.judge(period, Headroom::Available, now, Inquiry::Request, decide).0,
            quota.judge(period, Headroom::Absent, now, Inquiry::Look, decide).0,
        ];
        for decision in answers {
            prop_assert!(decision.remaining <= decision.limit);
            if let Outcome::Denied { retry: Retry::After(wait) } = decision.outcome {
                prop_assert!(wait > Duration::ZERO || now == Time::MAX || saturates(&numbers, &many));
            }
            quota.next_soft_period(period, &decision, now);
        }
        prop_assert!(!quota.promise().to_string().is_empty());
    }

    /// What is refused as a quota says what to do about it.
    #[test]
    fn an_error_is_a_sentence(spec in spec()) {
        if let Err(error) = Quota::new(&spec) {
            prop_assert!(error.to_string().contains(": "));
        }
    }
}

/// Whether a made-up state lies beyond what 64 bits of nanoseconds can say.
fn saturates(numbers: &[u64], many: &[u64]) -> bool {
    numbers.iter().chain(many).any(|number| *number > 1 << 40)
}
