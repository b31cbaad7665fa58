use std::io::{self, Write};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use tidegate_algorithms::{Algorithm, Allowance, Headroom, QuotaSpec};
use tidegate_share::{EventualConfig, SharedConfig};
use tidegate_store::{LimitId, Mode, OnFull, StoreConfig};
use tidegate_store_redis::client::ClientConfig;

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

/// A store whose Redis is not there, with little memory for the standby and none for eventual limits.
fn shared() -> AnyStore {
    let config = ClientConfig::from_url("redis://127.0.0.1:1").expect("a URL");
    let client = Client::new(&config).expect("no TLS");
    let eventual = EventualConfig {
        memory: StoreConfig { max_memory: 0 },
        ..EventualConfig::default()
    };
    let config = SharedConfig {
        standby_memory: StoreConfig {
            max_memory: 1 << 20,
        },
        eventual,
        ..SharedConfig::default()
    };
    let local = EmbeddedStore::new(StoreConfig::default());
    AnyStore::Shared(Box::new(Shared {
        store: SharedStore::new(RedisStore::new(client.clone()), local, config),
        members: RedisMembers::new(&client, "test"),
        totals: RedisTotals::new(&client, "test"),
        elsewhere: Vec::new(),
        regions: Vec::new(),
        files: RestartFiles::default(),
    }))
}

/// Charges a log that is larger than the whole store, so that `on_full` decides.
fn overflow(store: &AnyStore, consistency: Consistency) {
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
        consistency,
    };
    let (charges, mut decisions) = ([charge], Decisions::new());
    if let (AnyStore::Shared(_), Consistency::Strict) = (store, consistency) {
        // As the limiter does when Redis does not answer.
        let charged = store.charge_alone(&charges, Charging::AllOrNone, &mut decisions);
        assert!(charged.is_ok(), "{charged:?}");
        return;
    }
    let mut charged = pin!(store.charge(&charges, Charging::AllOrNone, &mut decisions));
    let polled = charged
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Ready(Ok(_))), "{polled:?}");
}

#[test]
fn full_memory_is_logged() {
    let max_memory = 1 << 20;
    let store = AnyStore::Memory(EmbeddedStore::new(StoreConfig { max_memory }));
    check_full_memory(&store, Consistency::Strict, 2);
}

/// An eventual limit that finds no room counts hits. Its share, which is charged instead, finds none either here.
#[test]
fn full_memory_of_eventual_limits_is_logged() {
    check_full_memory(&shared(), Consistency::Eventual, 2 * 300_000 + 2);
}

#[test]
fn full_memory_of_a_node_without_redis_is_logged() {
    check_full_memory(&shared(), Consistency::Strict, 2);
}

/// Rules that the standby has no room for are rejected, and those of each store are counted apart.
#[test]
fn rules_have_to_fit_every_store() {
    let quota = |it: u64| {
        Quota::new(&QuotaSpec {
            limit: 1,
            window: Duration::from_mins(it),
            algorithm: Algorithm::FixedWindow,
            allowance: Allowance::Hard,
        })
    };
    let quotas: Vec<_> = (1..=1_023).map(|it| quota(it).expect("valid")).collect();
    let store = shared();
    let reserve = |consistency: &dyn Fn(usize) -> Consistency| {
        let limits = quotas.iter().enumerate();
        let mut limits = limits.map(|(index, quota)| (quota, consistency(index)));
        store.reserve(&mut limits, OldCounters::Drop)
    };
    assert_eq!(
        reserve(&|_| Consistency::Strict),
        Err(StoreError::TooManyWindows { most: 1_022 })
    );
    let mixed = |index: usize| match index % 2 {
        0 => Consistency::Node,
        _ => Consistency::Strict,
    };
    assert_eq!(reserve(&mixed), Ok(()));
}

/// A full memory is logged once for all requests since the last look, and is part of the health.
fn check_full_memory(store: &AnyStore, consistency: Consistency, count: u64) {
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
        overflow(store, consistency);
        overflow(store, consistency);
        assert_eq!(store.health(), StoreHealth::Full);
        store.log_full_memory(&mut seen);
        store.log_full_memory(&mut seen);
    });
    let bytes = log.0.lock().expect("one thread").clone();
    let text = String::from_utf8(bytes).expect("text");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains("memory for counters is full"), "{text}");
    assert!(text.contains(&format!("decided.count={count} ")), "{text}");
}
