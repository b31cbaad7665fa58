use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use tidegate_algorithms::{Algorithm, Allowance, QuotaSpec};
use tidegate_store::{LimitId, Mode, OnFull, StoreConfig};

use super::*;

/// A log in memory.
#[derive(Clone, Default)]
struct LogBuffer(Arc<Mutex<Vec<u8>>>);

// === impl LogBuffer ===

impl Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("one thread").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The future of every request has that of its charge in it, and is moved now and then.
#[test]
fn the_future_of_a_charge_is_small() {
    let store = AnyStore::Memory(EmbeddedStore::new(StoreConfig::default()));
    let mut decisions = Decisions::new();
    let charge = store.charge(&[], Charging::AllOrNone, &mut decisions);
    assert!(size_of_val(&charge) <= 256, "{}", size_of_val(&charge));
}

/// Charges a log that is larger than the whole store, so that `on_full` decides.
fn overflow(store: &AnyStore) {
    let limit = 300_000;
    let quota = Quota::new(&QuotaSpec {
        limit,
        window: Duration::from_hours(1),
        algorithm: Algorithm::SlidingLog { log_refused: false },
        allowance: Allowance::Hard,
    });
    let charge = Charge {
        key: CounterKey {
            limit: LimitId(1),
            values: &["caller"],
        },
        quota: &quota.expect("valid"),
        cost: limit,
        mode: Mode::Enforce,
        headroom: Headroom::Absent,
        on_full: OnFull::default(),
        consistency: Consistency::Strict,
    };
    let mut decisions = Decisions::new();
    let charged = store
        .local()
        .charge_now(&[charge], Charging::AllOrNone, &mut decisions);
    charged.expect("a decision");
}

/// A full memory is logged once for all requests since the last look, and is part of the health.
#[test]
fn full_memory_is_logged() {
    let max_memory = 1 << 20;
    let store = AnyStore::Memory(EmbeddedStore::new(StoreConfig { max_memory }));
    let (log, mut seen) = (LogBuffer::default(), 0);
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(move || writer.clone())
        .with_ansi(false)
        .without_time()
        .finish();
    tracing::subscriber::with_default(subscriber, || {
        store.log_full_memory(&mut seen);
        assert_eq!(store.health(), StoreHealth::Whole);
        overflow(&store);
        overflow(&store);
        assert_eq!(store.health(), StoreHealth::Full);
        store.log_full_memory(&mut seen);
        store.log_full_memory(&mut seen);
    });
    let bytes = log.0.lock().expect("one thread").clone();
    let text = String::from_utf8(bytes).expect("text");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains("memory for counters is full"), "{text}");
    assert!(text.contains("decided.count=2"), "{text}");
}
