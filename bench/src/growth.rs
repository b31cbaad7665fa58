//! How much memory a caller takes. Each function here wants a process of its own.

use std::error::Error;
use std::str::FromStr;
use std::time::Duration;

use tidegate_algorithms::{Algorithm, Allowance, QuotaSpec, Rounding, Time};
use tidegate_store::{ManualClock, StoreConfig, SystemClock};

use crate::allocator;
use crate::child::Figures;
use crate::contender::{Contender, Counting, Store, Subject, Terms};
use crate::key::Key;
use crate::machine::resident_bytes;

const HOUR: Duration = Duration::from_hours(1);

/// How many sub-windows the counter of the table is cut into.
const SUB_WINDOWS: u16 = 60;

/// How long the log of the table is.
const LOG: u64 = 500;

/// In which order logs fill up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// One after the other: what one outgrows, the next can use.
    InTurn,
    /// All at once: the worst that can happen to a store that moves what grows.
    AllAtOnce,
}

/// Memory since some moment.
struct Gauge {
    resident: u64,
    asked: usize,
}

/// Memory for each caller.
struct Reading {
    resident: f64,
    asked: f64,
}

/// Lets `keys` callers come one by one and looks at the memory from a tenth of them on, at every
/// hundredth more: at the tenth, at the end and at the worst point between.
pub fn grow(contender: Contender, counting: Counting, keys: u64) -> Figures {
    let gauge = Gauge::start();
    // A token takes 86 s to come back, so that all callers are live until the last one has come.
    let terms = Terms {
        limit: 1_000,
        window: 24 * HOUR,
        counting,
        keys,
    };
    let subject = contender.build(&terms);
    let (mut key, mut next_look) = (Key::new(0), keys / 10);
    let mut readings = Vec::new();
    for number in 0..keys {
        key.set(number);
        subject.check(&key);
        let seen = number + 1;
        if seen == next_look || seen == keys {
            readings.push(gauge.read(subject.as_ref(), seen));
            next_look = seen + seen.div_ceil(100);
        }
    }
    let mut figures = Figures::new();
    for (name, of) in [
        (
            "resident",
            (|reading| reading.resident) as fn(&Reading) -> f64,
        ),
        ("asked", |reading| reading.asked),
    ] {
        let values: Vec<f64> = readings.iter().map(of).collect();
        figures.insert(format!("{name}_at_tenth"), values[0]);
        figures.insert(format!("{name}_at_end"), values[values.len() - 1]);
        figures.insert(
            format!("{name}_at_worst"),
            values.iter().copied().fold(0.0, f64::max),
        );
    }
    figures
}

/// Fills a log for each of `keys` callers.
pub fn logs(keys: u64, order: Order) -> Result<Figures, Box<dyn Error>> {
    let gauge = Gauge::start();
    let spec = QuotaSpec {
        limit: LOG,
        window: HOUR,
        algorithm: Algorithm::SlidingLog { log_refused: false },
        allowance: Allowance::Hard,
    };
    let store = Store::with(&spec, StoreConfig::default(), SystemClock::default())?;
    match order {
        Order::InTurn => (0..keys).for_each(|number| ask(&store, number, LOG)),
        Order::AllAtOnce => (0..LOG).for_each(|_| ask_once(&store, keys)),
    }
    Ok(gauge.read(&store, keys).figures())
}

/// Lets each of `keys` callers ask in each sub-window of an hour.
pub fn sub_windows(keys: u64) -> Result<Figures, Box<dyn Error>> {
    let gauge = Gauge::start();
    let spec = QuotaSpec {
        limit: 1_000,
        window: HOUR,
        algorithm: Algorithm::SlidingCounter {
            sub_windows: SUB_WINDOWS,
            rounding: Rounding::Down,
        },
        allowance: Allowance::Hard,
    };
    let start = Time::from_nanos(0).plus(500_000 * HOUR);
    let store = Store::with(&spec, StoreConfig::default(), ManualClock::at(start))?;
    for _ in 0..=SUB_WINDOWS {
        ask_once(&store, keys);
        store.clock().advance(HOUR / u32::from(SUB_WINDOWS));
    }
    Ok(gauge.read(&store, keys).figures())
}

fn ask_once(subject: &dyn Subject, keys: u64) {
    let mut key = Key::new(0);
    for number in 0..keys {
        key.set(number);
        subject.check(&key);
    }
}

fn ask(subject: &dyn Subject, number: u64, times: u64) {
    let key = Key::new(number);
    for _ in 0..times {
        subject.check(&key);
    }
}

// === impl Gauge ===

impl Gauge {
    fn start() -> Self {
        allocator::enable();
        Self {
            resident: resident_bytes(),
            asked: allocator::live_bytes(),
        }
    }

    fn read(&self, subject: &dyn Subject, keys: u64) -> Reading {
        assert_eq!(
            subject.forgotten(),
            0,
            "memory for callers it no longer knows"
        );
        let resident = resident_bytes().saturating_sub(self.resident);
        let asked = allocator::live_bytes().saturating_sub(self.asked) as u64;
        // A subject that reserves addresses and takes memory as it grows knows better than the
        // allocator what it took.
        let asked = subject.bytes_taken().unwrap_or(asked);
        Reading {
            resident: resident as f64 / keys as f64,
            asked: asked as f64 / keys as f64,
        }
    }
}

// === impl Reading ===

impl Reading {
    fn figures(&self) -> Figures {
        Figures::from([
            ("resident".to_owned(), self.resident),
            ("asked".to_owned(), self.asked),
        ])
    }
}

// === impl Order ===

impl FromStr for Order {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "InTurn" => Ok(Self::InTurn),
            "AllAtOnce" => Ok(Self::AllAtOnce),
            _ => Err(format!("no order {name}")),
        }
    }
}
