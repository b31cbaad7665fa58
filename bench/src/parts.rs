//! What a decision cannot do without, measured by itself: the clock, the hash of the key, and the one
//! cache line of memory. Beside the figure of a whole decision they are its profile, and the least that
//! any store with a keyed hash and exact time can cost.

use std::hash::{BuildHasher, RandomState};
use std::hint::black_box;
use std::time::Instant;

use tidegate_store::{Clock, SystemClock};

use crate::key::Key;
use crate::statistic::Statistic;

/// How often a part is done in one sample.
const TIMES: u32 = 1_000_000;

/// Words in a cache line.
const LINE: usize = 8;

/// Nanoseconds to read the clock of the store.
pub fn clock(rounds: usize) -> Statistic {
    let clock = SystemClock::new();
    sample(rounds, |sum| sum ^ clock.now().nanos())
}

/// Nanoseconds for SipHash-1-3 of a key's 32 digits, as the standard library computes it.
pub fn hash(rounds: usize) -> Statistic {
    let (hasher, key) = (RandomState::new(), Key::new(7));
    sample(rounds, |sum| {
        sum ^ hasher.hash_one(black_box(key.as_string()))
    })
}

/// Nanoseconds for one line at random of so much memory. Each place depends on the line before, as a
/// request depends on the one before it being answered.
pub fn line(rounds: usize, bytes: u64) -> Statistic {
    let words = usize::try_from(bytes / 8).expect("a table fits memory");
    let memory = vec![1_u64; words.next_multiple_of(LINE)];
    let lines = (memory.len() / LINE) as u64;
    sample(rounds, |place| {
        let mixed = place.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let line = usize::try_from((u128::from(mixed) * u128::from(lines)) >> 64).expect("a line");
        mixed.wrapping_add(memory[line * LINE])
    })
}

/// The time of one step of a chain of them.
fn sample(rounds: usize, mut step: impl FnMut(u64) -> u64) -> Statistic {
    let round = |seed| {
        let started = Instant::now();
        let mut value = seed;
        for _ in 0..TIMES {
            value = step(value);
        }
        black_box(value);
        started.elapsed().as_secs_f64() * 1e9 / f64::from(TIMES)
    };
    let samples: Vec<f64> = (1..=rounds as u64).map(round).collect();
    Statistic::of(&samples)
}
