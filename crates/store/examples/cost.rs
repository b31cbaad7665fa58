//! Time and memory of decisions beside those of an earlier commit: `scripts/bench --only store --before COMMIT` builds
//! this program for both commits and runs it.
//!
//! - `cost` prints one figure of each kind.
//! - `cost BEFORE` runs the program BEFORE and itself in turn, and prints medians and spreads.

#![expect(clippy::print_stdout, reason = "the figures are what it is for")]
#![expect(
    clippy::disallowed_methods,
    reason = "it reads clocks; nothing is decided by them"
)]
#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "figures are shown to three digits, names have few bits"
)]

use std::env;
use std::error::Error;
use std::process::Command;
use std::time::{Duration, Instant};

use tidegate_algorithms::{Algorithm, Allowance, Headroom, Quota, QuotaSpec, Refill};
use tidegate_store::{
    Charge, Charging, Consistency, CounterKey, Decisions, EmbeddedStore, LimitId, Mode, OnFull,
    StoreConfig, SystemClock,
};

/// Rounds of both programs.
const ROUNDS: usize = 15;

const KEYS: u64 = 1_000_000;
const DECISIONS: u64 = 4_000_000;

/// Several times the slots of the store that is flooded.
const FLOOD: u64 = 16_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let Some(before) = env::args().nth(1) else {
        for (name, figure) in figures()? {
            println!("{name}: {figure}");
        }
        return Ok(());
    };
    let current = env::current_exe()?;
    let mut rounds = Vec::new();
    for round in 0..ROUNDS {
        // There and back again, so that a drift of the machine falls on both alike.
        let pair = if round % 2 == 0 {
            let first = run(before.as_ref())?;
            (first, run(&current)?)
        } else {
            let second = run(&current)?;
            (run(before.as_ref())?, second)
        };
        rounds.push(pair);
    }
    println!("| what | before | now | ratio, round by round |");
    println!("|---|---|---|---|");
    for (row, (name, _)) in rounds[0].0.iter().enumerate() {
        let column = |of: fn(f64, f64) -> f64| {
            let figures = rounds
                .iter()
                .map(|(before, now)| of(before[row].1, now[row].1));
            median_and_spread(figures.collect())
        };
        let columns = [
            column(|before, _| before),
            column(|_, now| now),
            column(|before, now| now / before),
        ];
        println!("| {name} | {} |", columns.join(" | "));
    }
    Ok(())
}

/// Runs a program of this kind, and parses its figures.
fn run(program: &std::path::Path) -> Result<Vec<(String, f64)>, Box<dyn Error>> {
    let output = Command::new(program).output()?;
    let text = String::from_utf8(output.stdout)?;
    text.lines()
        .map(|line| {
            let (name, figure) = line.split_once(": ").ok_or("a name and a figure")?;
            Ok((name.to_owned(), figure.parse()?))
        })
        .collect()
}

fn median_and_spread(mut figures: Vec<f64>) -> String {
    figures.sort_by(f64::total_cmp);
    let [least, greatest] = [figures[0], figures[figures.len() - 1]];
    let median = figures[figures.len() / 2];
    format!("{median:.3} ({least:.3}-{greatest:.3})")
}

fn figures() -> Result<[(&'static str, f64); 4], Box<dyn Error>> {
    let store = store(256);
    // Not so fast that the bucket fills between two requests, and never exhausted.
    let hot = bucket(1_000_000_000)?;
    let hot = nanos_each(&store, &hot, (0..DECISIONS).map(|_| 0));
    let store = self::store(256);
    let empty = store.stats().used_bytes;
    let thousand = bucket(1_000)?;
    nanos_each(&store, &thousand, 0..KEYS);
    let bytes = (store.stats().used_bytes - empty) as f64 / KEYS as f64;
    // A bijection that scatters the keys.
    let scattered = (0..DECISIONS).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15) % KEYS);
    let uniform = nanos_each(&store, &thousand, scattered);
    let flood = nanos_each(&self::store(64), &bucket(1)?, 0..FLOOD);
    Ok([
        ("decision on one hot key, ns", hot),
        ("decision over a million keys, ns", uniform),
        ("a new key in a flood through 64 MiB, ns", flood),
        ("memory of a bucket at a million keys, bytes", bytes),
    ])
}

fn store(mebibytes: usize) -> EmbeddedStore<SystemClock> {
    let config = StoreConfig {
        max_memory: mebibytes << 20,
    };
    EmbeddedStore::with_clock(config, SystemClock::default())
}

fn bucket(limit: u64) -> Result<Quota, Box<dyn Error>> {
    Ok(Quota::new(&QuotaSpec {
        limit,
        window: Duration::from_hours(24),
        algorithm: Algorithm::TokenBucket {
            burst: None,
            refill: Refill::Continuous,
        },
        allowance: Allowance::Hard,
    })?)
}

/// Charges one request of each of `callers`, and gives the nanoseconds that one took.
fn nanos_each(
    store: &EmbeddedStore<SystemClock>,
    quota: &Quota,
    callers: impl Iterator<Item = u64>,
) -> f64 {
    let mut decisions = Decisions::new();
    let (mut requests, started) = (0_u64, Instant::now());
    for caller in callers {
        // Seven bits a byte are text.
        let bytes: [u8; 8] = std::array::from_fn(|at| (caller >> (7 * at)) as u8 & 0x7F);
        let name = std::str::from_utf8(&bytes).unwrap_or_default();
        let charge = Charge {
            key: CounterKey {
                limit: LimitId(1),
                values: &[name],
            },
            quota,
            cost: 1,
            mode: Mode::Enforce,
            headroom: Headroom::Absent,
            on_full: OnFull::default(),
            consistency: Consistency::Strict,
        };
        decisions.clear();
        let charged = store.charge_now(&[charge], Charging::AllOrNone, &mut decisions);
        assert!(charged.is_ok(), "a decision");
        requests += 1;
    }
    started.elapsed().as_nanos() as f64 / requests as f64
}
