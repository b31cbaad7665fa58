//! The one clock that decides. Nothing else in the workspace may read one for a decision; a tidy
//! test and `clippy.toml` hold that.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tidegate_algorithms::Time;

/// Where a store gets its time from.
pub trait Clock: Send + Sync {
    /// The time now. Called once per charge, while the charge holds all its counters.
    fn now(&self) -> Time;
}

/// The machine's wall clock, read through the processor's time stamp counter where that is sound:
/// a third of the cost of asking the operating system, which is a good part of a whole decision.
///
/// It is set by the operating system's clock ten times a second, so a step of that clock is seen
/// within a tenth of a second, and may then step back itself, which every algorithm stands.
#[derive(Debug)]
pub struct SystemClock {
    counter: quanta::Clock,
    /// What to add to the counter's nanoseconds to get those since the epoch.
    offset: AtomicU64,
    /// When to set the clock next, in the counter's nanoseconds.
    set_at: AtomicU64,
}

/// A clock that never steps and tells no date: how long it has been since some point of its own. What
/// a node measures spans with; the time of decisions is the store's.
#[derive(Debug)]
pub struct Monotonic(quanta::Clock);

/// A clock that moves only when told to; for tests and replays.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

// === impl Arc ===

/// One clock that several go by.
impl<C: Clock> Clock for Arc<C> {
    #[inline]
    fn now(&self) -> Time {
        (**self).now()
    }
}

// === impl SystemClock ===

impl SystemClock {
    /// How long the clock goes by the counter alone. A counter that is wrong by one in a million,
    /// as calibrated ones are, is then wrong by a tenth of a microsecond.
    const SET_EVERY: u64 = 100_000_000;

    /// How long it may take to read both clocks, in nanoseconds; about fifty, as a rule.
    const SLOWEST_READING: u64 = 1_000;

    /// How often to read them before a slow reading is taken for want of a better one.
    const MOST_TRIES: u32 = 4;

    /// A clock that is set now.
    pub fn new() -> Self {
        let clock = Self {
            counter: quanta::Clock::new(),
            offset: AtomicU64::new(0),
            set_at: AtomicU64::new(0),
        };
        clock.set();
        clock
    }

    /// Nanoseconds by the counter, from some fixed point on.
    #[inline]
    fn counted(&self) -> u64 {
        self.counter.delta_as_nanos(0, self.counter.raw())
    }

    #[cold]
    fn set(&self) {
        let (mut wall, mut counted) = (0, 0);
        for _ in 0..Self::MOST_TRIES {
            let before = self.counted();
            wall = wall_nanos();
            counted = self.counted();
            // Who lost the processor between the two readings would set the clock wrong by as much.
            if counted.saturating_sub(before) < Self::SLOWEST_READING {
                break;
            }
        }
        // Relaxed: each word is a whole truth; whoever sees the old one is a moment behind.
        self.offset
            .store(wall.wrapping_sub(counted), Ordering::Relaxed);
        self.set_at
            .store(counted.saturating_add(Self::SET_EVERY), Ordering::Relaxed);
    }
}

impl Clone for SystemClock {
    /// Another one, set now: both tell the machine's time.
    fn clone(&self) -> Self {
        Self::new()
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> Time {
        let counted = self.counted();
        if counted >= self.set_at.load(Ordering::Relaxed) {
            self.set();
        }
        Time::from_nanos(counted.wrapping_add(self.offset.load(Ordering::Relaxed)))
    }
}

fn wall_nanos() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "this is the place")]
    let wall = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(wall.as_nanos()).unwrap_or(Time::MAX.nanos())
}

// === impl Monotonic ===

impl Monotonic {
    /// A clock that runs.
    pub fn new() -> Self {
        Self(quanta::Clock::new())
    }
}

impl Default for Monotonic {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for Monotonic {
    #[inline]
    fn now(&self) -> Time {
        Time::from_nanos(self.0.delta_as_nanos(0, self.0.raw()))
    }
}

// === impl ManualClock ===

impl ManualClock {
    /// A clock that stands at `time`.
    pub fn at(time: Time) -> Self {
        Self(AtomicU64::new(time.nanos()))
    }

    /// Moves to `time`, forwards or backwards.
    pub fn set(&self, time: Time) {
        self.0.store(time.nanos(), Ordering::Relaxed);
    }

    /// Moves forwards.
    pub fn advance(&self, by: Duration) {
        self.set(self.now().plus(by));
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Time {
        Time::from_nanos(self.0.load(Ordering::Relaxed))
    }
}
