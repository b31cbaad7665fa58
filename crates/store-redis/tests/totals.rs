//! Totals in Redis: the scripts against the model, and what they leave behind.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use tidegate_algorithms::Time;
use tidegate_store::conformance::totals::ModelTotals;
use tidegate_store::{
    CounterId, CounterSums, CounterUpdate, NodeId, SlotTotal, Totals, TotalsSender,
};
use tidegate_store_redis::RedisTotals;
use tidegate_store_redis::client::{Client, ClientConfig, Command, Reply, Route, Value};
use tidegate_store_redis::test_util::{ClusterSetup, PATIENCE, RedisServer};
use tokio::runtime::{Builder, Runtime};

/// Long, because keys expire by Redis' own clock while the test has another.
const SLOT_NANOS: u64 = 25_000_000_000;

/// Slots in an epoch.
const SLOTS: u64 = 4;

const START: u64 = 1_800_000_000_123_456;

const NODES: u64 = 3;

/// The totals in Redis, with their time in the test's hands.
struct Subject {
    client: Client,
    totals: RedisTotals,
    time_key: String,
}

/// One exchange of one node.
#[derive(Clone, Debug)]
struct Step {
    node: u64,
    after: Duration,
    updates: Vec<Update>,
}

/// What it sends about one counter.
#[derive(Clone, Debug)]
struct Update {
    counter: u128,
    /// How many slots before the current one it reads from.
    reads: u64,
    base: u64,
    /// How many slots before the current one, admitted, refunded.
    totals: Vec<(u64, u64, u64)>,
}

/// An update with the totals that it borrows.
struct Sent {
    update: Update,
    current: u64,
    totals: Vec<SlotTotal>,
}

// === impl Subject ===

impl Subject {
    fn new(server: &RedisServer) -> Self {
        static NAMES: AtomicU32 = AtomicU32::new(0);
        let client = client(server);
        let name = NAMES.fetch_add(1, Ordering::Relaxed).to_string();
        let time_key = format!("now:{name}");
        Self {
            totals: RedisTotals::by_stored_time(&client, &name, &time_key),
            client,
            time_key,
        }
    }

    async fn set_time(&self, now: Time) {
        let set = |command: &mut Command<'_>| {
            let micros = now.nanos() / 1_000;
            command.arg("SET").arg(&self.time_key).number(micros);
        };
        self.client.call(Route::Any, set).await.unwrap();
    }
}

// === impl Update ===

impl Update {
    /// A total in the current slot.
    fn of(counter: u128, admitted: u64) -> Self {
        Self {
            counter,
            reads: SLOTS,
            base: 0,
            totals: vec![(0, admitted, 0)],
        }
    }

    fn at(&self, now: Time) -> Sent {
        let current = now.nanos() / SLOT_NANOS;
        // Not before the epoch before the current one.
        let oldest = (current / SLOTS - 1) * SLOTS;
        let totals = self.totals.iter();
        Sent {
            current,
            totals: totals
                .map(|&(age, admitted, refunded)| SlotTotal {
                    slot: (current - age).max(oldest),
                    admitted,
                    refunded,
                })
                .collect(),
            update: Self {
                reads: self.reads.min(current - oldest),
                ..self.clone()
            },
        }
    }
}

// === impl Sent ===

impl Sent {
    fn update(&self) -> CounterUpdate<'_> {
        CounterUpdate {
            counter: CounterId(self.update.counter),
            slot_nanos: SLOT_NANOS,
            epoch_slots: SLOTS,
            current: self.current,
            first: self.current - self.update.reads,
            totals: &self.totals,
            base: self.update.base,
        }
    }
}

fn client(server: &RedisServer) -> Client {
    let config = ClientConfig::from_url(&server.url()).unwrap();
    Client::new(&config).unwrap().with_timeout(PATIENCE)
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn sender(node: u64) -> TotalsSender {
    TotalsSender {
        node: NodeId(node),
        life: Duration::from_mins(5),
    }
}

/// Numbers as large as they come.
fn amount() -> impl Strategy<Value = u64> {
    prop_oneof![0..20_u64, 0..1_u64 << 50]
}

fn update() -> impl Strategy<Value = Update> {
    let total = (
        0..2 * SLOTS,
        amount(),
        prop_oneof![3 => Just(0), 1 => amount()],
    );
    let base = prop_oneof![3 => Just(0), 1 => amount()];
    (0..4_u128, 0..2 * SLOTS, base, vec(total, 0..4)).prop_map(|(counter, reads, base, totals)| {
        Update {
            counter,
            reads,
            base,
            totals,
        }
    })
}

fn step() -> impl Strategy<Value = Step> {
    (0..NODES, 0..40_000_000_u64, vec(update(), 0..4)).prop_map(|(node, micros, updates)| Step {
        node,
        after: Duration::from_micros(micros),
        updates,
    })
}

/// Whatever nodes send, Redis and the model reply the same.
#[test]
fn redis_replies_what_the_model_does() {
    let server = RedisServer::start();
    let runtime = runtime();
    let config = ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest!(config, |(steps in vec(step(), 1..20))| {
        runtime.block_on(async {
            let subject = Subject::new(&server);
            let mut now = Time::from_micros(START);
            let model = ModelTotals::at(now);
            for step in &steps {
                now = now.plus(step.after);
                model.set_time(now);
                subject.set_time(now).await;
                let sent: Vec<Sent> = step.updates.iter().map(|it| it.at(now)).collect();
                let updates: Vec<CounterUpdate<'_>> = sent.iter().map(Sent::update).collect();
                let (mut expected, mut replies) = (Vec::new(), Vec::new());
                let sender = sender(step.node);
                let reply = model.exchange_now(sender, &updates, &mut expected);
                let exchange = subject.totals.exchange(sender, &updates, &mut replies);
                assert_eq!(exchange.await.unwrap(), reply);
                assert_eq!(replies, expected, "{step:?}");
            }
        });
    });
}

/// The order in which totals arrive does not matter, nor how often they do, as long as nodes refund what they admitted.
#[test]
fn totals_that_come_late_or_twice_change_nothing() {
    let server = RedisServer::start();
    let runtime = runtime();
    let config = ProptestConfig {
        cases: 32,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let messages = vec((0..NODES, 1..100_u64, 0..50_u64), 1..20);
    let shuffled = messages.prop_flat_map(|messages| {
        let repeated: Vec<_> = messages.iter().chain(&messages).copied().collect();
        (Just(messages), Just(repeated).prop_shuffle())
    });
    proptest!(config, |((messages, shuffled) in shuffled)| {
        let sums = |messages: &[(u64, u64, u64)]| runtime.block_on(async {
            let subject = Subject::new(&server);
            let now = Time::from_micros(START);
            subject.set_time(now).await;
            for &(node, admitted, refunded) in messages {
                let totals = vec![(0, admitted, refunded.min(admitted))];
                let update = Update { totals, ..Update::of(1, 0) };
                exchange(&subject.totals, node, &update, now).await;
            }
            exchange(&subject.totals, NODES, &Update::of(1, 0), now).await.sums
        });
        prop_assert_eq!(sums(&messages), sums(&shuffled));
    });
}

/// Every key has an end, and at the end there is none.
#[test]
fn nothing_is_left_behind() {
    let server = RedisServer::start();
    runtime().block_on(async {
        let client = client(&server);
        let totals = RedisTotals::new(&client, "short");
        let sender = TotalsSender {
            node: NodeId(1),
            life: Duration::from_millis(100),
        };
        let update = Update {
            base: 5,
            totals: vec![(0, 1, 0), (SLOTS, 1, 1)],
            ..Update::of(1, 0)
        };
        let sent = update.at(Time::from_micros(START));
        let updates = [CounterUpdate {
            slot_nanos: 10_000_000,
            ..sent.update()
        }];
        let mut replies = Vec::new();
        let exchange = totals.exchange(sender, &updates, &mut replies);
        assert_eq!(exchange.await.unwrap().members, 1);
        let gone = async {
            while ask(&client, &["DBSIZE"]).await.integer().unwrap() > 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, gone).await.unwrap();
    });
}

/// However many counters there are: the time in a reply is not to be old when all replies are in.
#[test]
fn the_greeting_goes_last() {
    const COUNTERS: u128 = 10_000;
    let server = RedisServer::start();
    server.must(&["CONFIG", "SET", "slowlog-log-slower-than", "0"]);
    runtime().block_on(async {
        let totals = RedisTotals::new(&client(&server), "many");
        let now = Time::from_micros(START);
        let sent: Vec<Sent> = (0..COUNTERS)
            .map(|counter| Update::of(counter, 1).at(now))
            .collect();
        let updates: Vec<CounterUpdate<'_>> = sent.iter().map(Sent::update).collect();
        let mut replies = Vec::new();
        // A busy machine may be too late.
        while totals
            .exchange(sender(1), &updates, &mut replies)
            .await
            .is_err()
        {}
        assert_eq!(replies.len(), updates.len());
    });
    let newest = server.must(&["SLOWLOG", "GET", "1"]);
    let entry = newest.array().unwrap().next().and_then(Value::array);
    let words = entry.unwrap().nth(3).and_then(Value::array).unwrap();
    // EVALSHA, the script, one key and that, the node and how long it is believed.
    assert_eq!(words.len(), 6);
}

/// In a Cluster every counter is where it belongs, and all of them are told in one go.
#[test]
fn counters_lie_anywhere_in_a_cluster() {
    let cluster = ClusterSetup::start(3);
    runtime().block_on(async {
        let config = ClientConfig::from_url(&cluster.url()).unwrap();
        let client = Client::new(&config).unwrap();
        let totals = RedisTotals::new(&client, "cluster");
        let now = Time::from_micros(START);
        let mut replies = Vec::new();
        for (node, members) in [(1, 1), (2, 2)] {
            let sent: Vec<Sent> = (0..50)
                .map(|counter| Update::of(counter, node).at(now))
                .collect();
            let updates: Vec<CounterUpdate<'_>> = sent.iter().map(Sent::update).collect();
            let exchange = totals.exchange(sender(node), &updates, &mut replies);
            assert_eq!(exchange.await.unwrap().members, members);
        }
        assert_eq!(replies.len(), 50);
        assert!(replies.iter().all(|reply| reply.sums[0].1 == 3));
    });
}

/// Keys of another version are not touched.
#[test]
fn another_version_is_left_alone() {
    let server = RedisServer::start();
    runtime().block_on(async {
        let subject = Subject::new(&server);
        let now = Time::from_micros(START);
        subject.set_time(now).await;
        exchange(&subject.totals, 1, &Update::of(1, 5), now).await;
        let found = ask(&subject.client, &["KEYS", "tg2:e:*"]).await;
        let key = found
            .array()
            .unwrap()
            .next()
            .unwrap()
            .str()
            .unwrap()
            .to_owned();
        let other = key.replacen("tg2", "tg3", 1);
        ask(&subject.client, &["COPY", &key, &other]).await;
        exchange(&subject.totals, 2, &Update::of(1, 7), now).await;
        let fields = ask(&subject.client, &["HLEN", &other]).await;
        assert_eq!(fields.integer().unwrap(), 3);
        let reply = exchange(&subject.totals, 3, &Update::of(1, 0), now).await;
        assert_eq!(reply.sums[0].1, 12);
    });
}

async fn exchange(totals: &RedisTotals, node: u64, update: &Update, now: Time) -> CounterSums {
    let mut replies = Vec::new();
    let sent = update.at(now);
    let updates = [sent.update()];
    let exchange = totals.exchange(sender(node), &updates, &mut replies);
    exchange.await.unwrap();
    replies.remove(0)
}

async fn ask(client: &Client, words: &[&str]) -> Reply {
    let write = |command: &mut Command<'_>| {
        for word in words {
            command.arg(word);
        }
    };
    client.call(Route::Any, write).await.unwrap()
}
