//! A clock that numbers its readings.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_algorithms::Time;
use tidegate_store::Clock;

/// An edge of seconds in the year 2027.
const START: u64 = 1_800_000_000_000_000_000;

/// Readings at the same time, so that there are ties.
const PER_TICK: u64 = 3;

/// Nanoseconds between ticks: not a divisor of anything.
const TICK: u64 = 3_777_777;

thread_local! {
    /// The number of this thread's last reading.
    static LAST: Cell<u64> = const { Cell::new(0) };
}

#[derive(Debug, Default)]
pub(crate) struct SequenceClock {
    next: AtomicU64,
}

// === impl SequenceClock ===

impl SequenceClock {
    /// The number of this thread's last reading.
    pub(crate) fn last() -> u64 {
        LAST.get()
    }

    pub(crate) fn time(number: u64) -> Time {
        Time::from_nanos(START + number / PER_TICK * TICK)
    }
}

impl Clock for SequenceClock {
    fn now(&self) -> Time {
        let number = self.next.fetch_add(1, Ordering::SeqCst);
        LAST.set(number);
        // The counters are held: now is the time to let the others run into them.
        if number.is_multiple_of(5) {
            std::thread::yield_now();
        }
        Self::time(number)
    }
}
