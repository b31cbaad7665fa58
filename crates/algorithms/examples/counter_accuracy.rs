//! How often a sliding counter decides otherwise than the exact log.
//!
//! Each caller of a fixed, seeded mixture is simulated alone, for limits are per caller. A decision is
//! wrong if the exact count of the window before it says otherwise. It is made in two ways:
//!
//! - every request counts, refused or not, which we take to be how the published figure was made;
//! - refused requests cost nothing, as Tidegate decides: the exact count is of what this limiter
//!   admitted.
//!
//! `docs/algorithms.md` holds what this prints and describes the mixture.
//!
//! `cargo run --release -p tidegate-algorithms --example counter_accuracy`

use std::collections::VecDeque;
use std::time::Duration;

use tidegate_algorithms::counter::Ring;
use tidegate_algorithms::sub_windows::{Counts, SubWindows};
use tidegate_algorithms::{
    Algorithm, Allowance, Meter, Quota, QuotaSpec, Rounding, Time, fixed_window, sliding_counter,
};

/// The same traffic under a limit that some callers reach, and under one that only abusers do.
const LIMITS: [u64; 2] = [100, 300];

/// Requests per second of the busiest ordinary caller, on average.
const BUSIEST: f64 = 1.0;

/// Requests per second of an abuser's loop.
const LOOP: f64 = 1_000.0 / 60.0;

const WINDOW: Duration = Duration::from_mins(1);
const SECOND: f64 = 1e9;

/// Nanoseconds that each caller is watched for.
const DAY: u64 = 86_400_000_000_000;

const CALLERS: u32 = 160_000;

/// A limit that no caller reaches: with it, all is counted and what remains tells the estimate.
const UNREACHED: u64 = 1_000_000_000;

/// How a caller behaves; shares of callers in [`Habit::of`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Habit {
    /// Requests at random, evenly through the day.
    Steady,
    /// Bursts of a page load or a batch, with long pauses.
    Bursty,
    /// At random, three times as much at the peak of the day as on average, near none at night.
    Diurnal,
    /// Quiet for most of the day, then for a while a loop far above the limit.
    Abuser,
}

/// What a refused request costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    /// As much as an admitted one.
    Counts,
    Free,
}

/// Who estimates.
enum Limiter {
    Fixed(fixed_window::FixedWindow, fixed_window::State),
    Two(sliding_counter::SlidingCounter, sliding_counter::State),
    Many(SubWindows, Ring),
}

/// A limiter with the exact log of what it counted.
struct Judged {
    limiter: Limiter,
    limit: u64,
    refused: Refused,
    counted: VecDeque<u64>,
}

/// What was counted of one kind of limiter.
#[derive(Default)]
struct Tally {
    requests: u64,
    /// Over the limit by the exact count.
    over: u64,
    admitted_wrongly: u64,
    refused_wrongly: u64,
    /// The most that was counted in any window.
    most: usize,
}

/// `SplitMix64`: small, seeded, good enough for arrivals.
struct Random(u64);

fn main() {
    let kinds = kinds();
    let mut tallies: Vec<[[Tally; 2]; 2]> = kinds.iter().map(|_| Default::default()).collect();
    for caller in 0..CALLERS {
        let arrivals = arrivals(caller);
        for ((_, quota), tallies) in kinds.iter().zip(&mut tallies) {
            for (limit, tallies) in LIMITS.into_iter().zip(tallies) {
                for (refused, tally) in [Refused::Counts, Refused::Free].into_iter().zip(tallies) {
                    let mut judged = Judged::new(quota, limit, refused);
                    for &now in &arrivals {
                        judged.ask(now, tally);
                    }
                }
            }
        }
    }
    for (n, limit) in LIMITS.into_iter().enumerate() {
        let rows = kinds
            .iter()
            .zip(&tallies)
            .map(|((name, _), tallies)| (*name, &tallies[n]));
        print(limit, rows);
    }
}

#[expect(clippy::cast_precision_loss, reason = "printed to a few digits")]
fn print<'a>(limit: u64, rows: impl Iterator<Item = (&'static str, &'a [Tally; 2])>) {
    let mut is_first = true;
    for (name, [counting, free]) in rows {
        if std::mem::take(&mut is_first) {
            let over = counting.over as f64 / counting.requests as f64 * 100.0;
            println!(
                "\n{limit} per minute, {CALLERS} callers, {} requests, {over:.2} % of them over:\n",
                counting.requests
            );
            println!(
                "| limiter | admitted wrongly | refused wrongly | wrong | wrong, refused free | most in a minute |"
            );
            println!("|---|---|---|---|---|---|");
        }
        println!(
            "| {name} | {} | {} | {:.4} % | {:.4} % | {} |",
            counting.admitted_wrongly,
            counting.refused_wrongly,
            counting.wrong(),
            free.wrong(),
            free.most
        );
    }
}

fn kinds() -> Vec<(&'static str, Quota)> {
    let counter = |sub_windows, rounding| Algorithm::SlidingCounter {
        sub_windows,
        rounding,
    };
    [
        ("fixed window", Algorithm::FixedWindow),
        ("counter, rounded down", counter(1, Rounding::Down)),
        ("counter, rounded up", counter(1, Rounding::Up)),
        ("4 sub-windows (15 s)", counter(4, Rounding::Down)),
        ("12 sub-windows (5 s)", counter(12, Rounding::Down)),
        ("60 sub-windows (1 s)", counter(60, Rounding::Down)),
        ("600 sub-windows (0.1 s)", counter(600, Rounding::Down)),
    ]
    .map(|(name, algorithm)| {
        let allowance = Allowance::Hard;
        let spec = QuotaSpec {
            limit: UNREACHED,
            window: WINDOW,
            algorithm,
            allowance,
        };
        (name, Quota::new(&spec).expect("these numbers are valid"))
    })
    .into()
}

/// When one caller comes in a day, in order.
fn arrivals(caller: u32) -> Vec<u64> {
    let mut random = Random(u64::from(caller) + 1);
    // Zipf: the caller of rank k comes 1/k as often as the first, but each at least twice an hour.
    let rank = f64::from(caller % 4_000 + 1);
    let per_second = (BUSIEST / rank).max(1.0 / 1_800.0);
    let mut times = Vec::new();
    let mut now = 0.0;
    let habit = Habit::of(caller);
    while let Some(next) = habit.next(now, per_second, &mut random) {
        now = next;
        times.push(to_nanos(now));
    }
    times
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a time within a day"
)]
fn to_nanos(seconds: f64) -> u64 {
    // Some minutes in, so that no window begins at the epoch.
    600_000_000_000 + (seconds * SECOND) as u64
}

// === impl Habit ===

impl Habit {
    /// Of a thousand callers 729 are steady, 200 bursty, 70 diurnal, and one is an abuser.
    fn of(caller: u32) -> Self {
        match caller.wrapping_mul(2_654_435_761) % 1_000 {
            0..729 => Self::Steady,
            729..929 => Self::Bursty,
            929..999 => Self::Diurnal,
            _ => Self::Abuser,
        }
    }

    /// The next arrival after `now`, in seconds; `None` after a day.
    fn next(self, now: f64, per_second: f64, random: &mut Random) -> Option<f64> {
        let day = Duration::from_nanos(DAY).as_secs_f64();
        let next = match self {
            Self::Steady => now + random.wait(per_second),
            Self::Bursty if random.unit() < 0.95 => now + random.wait(10.0),
            // A burst is 20 requests on average, so pauses are as long as 20 requests take.
            Self::Bursty => now + random.wait(per_second / 20.0),
            Self::Diurnal => {
                let mut at = now;
                // Thinning: arrivals at the peak rate, kept as often as the hour says.
                loop {
                    at += random.wait(per_second * 3.0);
                    let of_day = (at / day * std::f64::consts::TAU).sin().max(0.0);
                    if at > day || random.unit() < of_day {
                        break at;
                    }
                }
            }
            // Loops of 1,000 requests on average, some five in a day.
            Self::Abuser if random.unit() < 0.999 => now + random.wait(LOOP),
            Self::Abuser => now + random.wait(5.0 / day),
        };
        (next < day).then_some(next)
    }
}

// === impl Judged ===

impl Judged {
    fn new(quota: &Quota, limit: u64, refused: Refused) -> Self {
        let limiter = match quota.meter() {
            Meter::FixedWindow(meter) => Limiter::Fixed(*meter, fixed_window::State::default()),
            Meter::SlidingCounter(meter) => Limiter::Two(*meter, sliding_counter::State::default()),
            Meter::SubWindows(meter) => Limiter::Many(*meter, Ring::new(meter.parts())),
            other => unreachable!("not compared here: {other:?}"),
        };
        Self {
            limiter,
            limit,
            refused,
            counted: VecDeque::new(),
        }
    }

    fn ask(&mut self, now: u64, tally: &mut Tally) {
        let window = u64::try_from(WINDOW.as_nanos()).expect("a minute");
        while self
            .counted
            .front()
            .is_some_and(|then| then + window <= now)
        {
            self.counted.pop_front();
        }
        let fits = (self.counted.len() as u64) < self.limit;
        let is_admitted = self.limiter.estimate(Time::from_nanos(now)) < self.limit;
        if is_admitted || self.refused == Refused::Counts {
            self.limiter.count(Time::from_nanos(now));
            self.counted.push_back(now);
        }
        tally.requests += 1;
        tally.over += u64::from(!fits);
        tally.admitted_wrongly += u64::from(is_admitted && !fits);
        tally.refused_wrongly += u64::from(!is_admitted && fits);
        tally.most = tally.most.max(self.counted.len());
    }
}

// === impl Limiter ===

impl Limiter {
    /// What the limiter thinks was counted in the window before `now`.
    fn estimate(&mut self, now: Time) -> u64 {
        let if_it_came = match self {
            Self::Fixed(meter, state) => meter.decide(*state, 1, 0, now).0,
            Self::Two(meter, state) => meter.decide(*state, 1, 0, now).0,
            Self::Many(meter, ring) => {
                meter.advance(ring, now);
                meter.decide(ring, 1, 0, now).0
            }
        };
        UNREACHED - 1 - if_it_came.remaining
    }

    fn count(&mut self, now: Time) {
        match self {
            Self::Fixed(meter, state) => *state = meter.decide(*state, 1, 0, now).1,
            Self::Two(meter, state) => *state = meter.decide(*state, 1, 0, now).1,
            Self::Many(_, ring) => ring.add(1),
        }
    }
}

// === impl Tally ===

impl Tally {
    /// Wrong decisions, in percent of all.
    #[expect(clippy::cast_precision_loss, reason = "printed to a few digits")]
    fn wrong(&self) -> f64 {
        (self.admitted_wrongly + self.refused_wrongly) as f64 / self.requests as f64 * 100.0
    }
}

// === impl Random ===

impl Random {
    /// From 0 up to, not including, 1.
    #[expect(
        clippy::cast_precision_loss,
        reason = "53 bits are what a double holds"
    )]
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// The wait for the next of random arrivals at this rate.
    fn wait(&mut self, per_second: f64) -> f64 {
        -(1.0 - self.unit()).ln() / per_second
    }
}
