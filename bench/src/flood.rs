//! More callers than there is room for: does memory stay, does speed, does a refusal?

use std::error::Error;
use std::time::{Duration, Instant};

use tidegate_algorithms::{Algorithm, Allowance, QuotaSpec, Refill};
use tidegate_store::{StoreConfig, SystemClock};

use crate::child::Figures;
use crate::contender::{Answer, Store, Subject};
use crate::key::Key;
use crate::machine::resident_bytes;

/// The cap under which the flood comes.
const CONFIG: StoreConfig = StoreConfig {
    max_memory: 64 << 20,
};

/// The flood comes in so many parts of equal size.
const PARTS: u64 = 10;

/// Callers between two looks at the clock and at the offender.
const CHUNK: u64 = 1_024;

/// What one part of the flood came to.
struct Part {
    nanos_each: f64,
    resident: u64,
}

/// Lets `keys` callers come, each once, while one that is refused asks again and again.
pub fn run(keys: u64) -> Result<Figures, Box<dyn Error>> {
    let before = resident_bytes();
    let spec = QuotaSpec {
        limit: 1,
        window: Duration::from_hours(24),
        algorithm: Algorithm::TokenBucket {
            burst: None,
            refill: Refill::Continuous,
        },
        allowance: Allowance::Hard,
    };
    let store = Store::with(&spec, CONFIG, SystemClock::default())?;
    let offender = Key::new(u64::MAX);
    store.check(&offender);
    let parts: Vec<Part> = (0..PARTS)
        .map(|part| flood_part(&store, &offender, part, keys / PARTS))
        .collect();
    let first = &parts[0];
    let slowest = parts.iter().map(|part| part.nanos_each).fold(0.0, f64::max);
    let most = parts.iter().map(|part| part.resident).max().unwrap_or(0);
    Ok(Figures::from([
        ("first_nanos".to_owned(), first.nanos_each),
        ("last_nanos".to_owned(), parts[parts.len() - 1].nanos_each),
        ("slowest_nanos".to_owned(), slowest),
        (
            "resident_mib".to_owned(),
            mebibytes(most - before.min(most)),
        ),
        (
            "growth_mib".to_owned(),
            mebibytes(most - first.resident.min(most)),
        ),
    ]))
}

/// # Panics
///
/// If the offender is let through: then the table forgot somebody it must not forget.
fn flood_part(store: &Store<SystemClock>, offender: &Key, part: u64, keys: u64) -> Part {
    let mut chunk: Vec<Key> = (0..CHUNK).map(Key::new).collect();
    let (mut took, mut asked) = (Duration::ZERO, 0_u64);
    while asked < keys {
        for key in &mut chunk {
            key.set(part * keys + asked);
            asked += 1;
        }
        let started = Instant::now();
        store.check_each(&chunk);
        took += started.elapsed();
        assert_eq!(
            store.check(offender),
            Answer::Refused,
            "the offender was let through"
        );
    }
    Part {
        nanos_each: took.as_secs_f64() * 1e9 / asked as f64,
        resident: resident_bytes(),
    }
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
