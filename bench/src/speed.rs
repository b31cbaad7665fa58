//! How fast subjects decide.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::contender::Subject;
use crate::key::{Draw, Key};
use crate::statistic::Statistic;

/// Requests between two looks at the clock. Their keys (32 bytes of text and a `String` each) stay
/// in the second-level cache, as a key that has just come off the wire would.
const CHUNK: usize = 1_024;

/// Decisions per nanosecond of the threads of one sample, taken together.
#[derive(Clone, Copy, Debug)]
pub struct Rate(f64);

/// Samples each item `rounds` times, there and back again (A B, B A, ...), so that a drift of the
/// machine falls on all alike. The results are in the order of the items.
pub fn interleave<T>(
    items: &[T],
    rounds: usize,
    mut sample: impl FnMut(&T, usize) -> f64,
) -> Vec<Statistic> {
    let mut samples = vec![Vec::with_capacity(rounds); items.len()];
    for round in 0..rounds {
        let mut order: Vec<usize> = (0..items.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for index in order {
            samples[index].push(sample(&items[index], round));
        }
    }
    samples.iter().map(|each| Statistic::of(each)).collect()
}

/// Lets every caller below `keys` ask once.
pub fn fill(subject: &dyn Subject, keys: u64) {
    let mut chunk = empty_chunk();
    let mut next = 0;
    while next < keys {
        for key in &mut chunk {
            key.set(next % keys);
            next += 1;
        }
        subject.check_each(&chunk);
    }
}

/// Lets one thread for each of `subjects` ask for callers drawn from `keys` of them, for about
/// `budget` each. Making the keys is not in the time; that the subject reads them is.
///
/// # Panics
///
/// If a request is refused: the limits are set so that none is, and refusing is another path.
pub fn sample(subjects: &[&dyn Subject], keys: u64, seed: usize, budget: Duration) -> Rate {
    let barrier = &Barrier::new(subjects.len());
    let rates: Vec<f64> = thread::scope(|scope| {
        let start = |(thread, &subject)| {
            let draw = Draw::new((seed * subjects.len() + thread) as u64);
            scope.spawn(move || {
                barrier.wait();
                ask_for(subject, keys, draw, budget)
            })
        };
        let threads: Vec<_> = subjects.iter().enumerate().map(start).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no thread panics"))
            .collect()
    });
    Rate(rates.iter().sum())
}

fn ask_for(subject: &dyn Subject, keys: u64, mut draw: Draw, budget: Duration) -> f64 {
    let mut chunk = empty_chunk();
    let (mut asked, mut took) = (0_u32, Duration::ZERO);
    while took < budget {
        for key in &mut chunk {
            key.set(draw.below(keys));
        }
        let started = Instant::now();
        let allowed = subject.check_each(&chunk);
        took += started.elapsed();
        assert_eq!(allowed, CHUNK, "a request was refused");
        asked += 1;
    }
    f64::from(asked) * CHUNK as f64 / nanos(took)
}

fn empty_chunk() -> Vec<Key> {
    (0..CHUNK).map(|_| Key::new(0)).collect()
}

fn nanos(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e9
}

// === impl Rate ===

impl Rate {
    /// How long one decision takes, in nanoseconds.
    pub fn nanos_each(self) -> f64 {
        1.0 / self.0
    }

    /// Millions of decisions per second.
    pub fn millions_per_second(self) -> f64 {
        self.0 * 1e3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_go_there_and_back() {
        let mut order = Vec::new();
        interleave(&['a', 'b'], 3, |item, _| {
            order.push(*item);
            0.0
        });
        assert_eq!(order, ['a', 'b', 'b', 'a', 'a', 'b']);
    }

    #[test]
    fn a_rate_reads_both_ways() {
        let rate = Rate(0.02);
        assert!((rate.nanos_each() - 50.0).abs() < 1e-9);
        assert!((rate.millions_per_second() - 20.0).abs() < 1e-9);
    }
}
