//! Totals in Redis: the scripts against the model, and what they leave behind.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use tidegate_algorithms::Time;
use tidegate_store::conformance::totals::ModelTotals;
use tidegate_store::{
    CounterKey, Edge, LimitId, NodeId, Sums, Tally, Teller, Telling, Totals, View,
};
use tidegate_store_redis::RedisTotals;
use tidegate_store_redis::client::{Client, ClientConfig, Command, Reply, Route, Value};
use tidegate_store_redis::test_util::{ClusterSetup, PATIENCE, RedisServer};
use tokio::runtime::{Builder, Runtime};

/// Long, for keys expire by Redis' own clock while the test has another.
const LENGTH: Duration = Duration::from_secs(100);

const START: u64 = 1_800_000_000_123_456;

const NODES: u64 = 3;

/// The totals in Redis, with their time in the test's hands.
struct Subject {
    client: Client,
    totals: RedisTotals,
    time_key: String,
}

/// What one node tells in one go.
#[derive(Clone, Debug)]
struct Step {
    node: u64,
    after: Duration,
    tellings: Vec<Told>,
}

/// What it tells about one counter.
#[derive(Clone, Copy, Debug)]
struct Told {
    counter: u128,
    total: u64,
    late: Option<u64>,
    edge: Edge,
    resets: u64,
    view: Option<View>,
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

// === impl Told ===

impl Told {
    fn telling(&self, now: Time) -> Telling<'static> {
        let Self {
            total,
            late,
            edge,
            resets,
            view,
            ..
        } = *self;
        Telling {
            key: CounterKey {
                limit: LimitId(self.counter),
                values: &["{caller}", "b"],
            },
            length: LENGTH,
            epoch: now.nanos() / u64::try_from(LENGTH.as_nanos()).unwrap(),
            total,
            late,
            edge,
            resets,
            view,
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

fn teller(node: u64) -> Teller {
    Teller {
        node: NodeId(node),
        life: Duration::from_mins(5),
    }
}

/// Numbers as large as they come.
fn amount() -> impl Strategy<Value = u64> {
    prop_oneof![0..20_u64, 0..1_u64 << 50]
}

fn told() -> impl Strategy<Value = Told> {
    let edge = prop_oneof![Just(Edge::Forgets), Just(Edge::Carries)];
    let view = (0..1_000_u64, 0..50_u64, 0..50_u64).prop_map(|(used, current, before)| View {
        used,
        heard: Sums { current, before },
    });
    (
        0..4_u128,
        amount(),
        prop::option::of(amount()),
        edge,
        prop_oneof![4 => Just(0), 1 => 1..3_u64],
        prop::option::of(view),
    )
        .prop_map(|(counter, total, late, edge, resets, view)| Told {
            counter,
            total,
            late,
            edge,
            resets,
            view,
        })
}

fn step() -> impl Strategy<Value = Step> {
    (0..NODES, 0..40_000_000_u64, vec(told(), 0..4)).prop_map(|(node, micros, tellings)| Step {
        node,
        after: Duration::from_micros(micros),
        tellings,
    })
}

/// Whatever nodes tell, Redis and the model say the same.
#[test]
fn redis_tells_what_the_model_does() {
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
                let tellings = step.tellings.iter().map(|told| told.telling(now));
                let tellings: Vec<Telling<'_>> = tellings.collect();
                let (mut expected, mut tallies) = (Vec::new(), Vec::new());
                let teller = teller(step.node);
                let heard = model.exchange_now(teller, &tellings, &mut expected);
                let exchange = subject.totals.exchange(teller, &tellings, &mut tallies);
                assert_eq!(exchange.await.unwrap(), heard);
                assert_eq!(tallies, expected, "{step:?}");
            }
        });
    });
}

/// Nobody minds in what order totals arrive, nor how often.
#[test]
fn totals_that_come_late_or_twice_change_nothing() {
    let server = RedisServer::start();
    let runtime = runtime();
    let config = ProptestConfig {
        cases: 32,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let messages = vec((0..NODES, 1..100_u64), 1..20);
    let shuffled = messages.prop_flat_map(|messages| {
        let repeated: Vec<_> = messages.iter().chain(&messages).copied().collect();
        (Just(messages), Just(repeated).prop_shuffle())
    });
    proptest!(config, |((messages, shuffled) in shuffled)| {
        let sums = |messages: &[(u64, u64)]| runtime.block_on(async {
            let subject = Subject::new(&server);
            let now = Time::from_micros(START);
            subject.set_time(now).await;
            for &(node, total) in messages {
                exchange(&subject.totals, node, total, now).await;
            }
            exchange(&subject.totals, NODES, 0, now).await.others
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
        let teller = Teller {
            node: NodeId(1),
            life: Duration::from_millis(100),
        };
        let told = Told {
            counter: 1,
            total: 1,
            late: Some(1),
            edge: Edge::Carries,
            resets: 0,
            view: None,
        };
        let tellings = [Telling {
            length: Duration::from_millis(50),
            ..told.telling(Time::from_micros(START))
        }];
        let mut tallies = Vec::new();
        let exchange = totals.exchange(teller, &tellings, &mut tallies);
        assert_eq!(exchange.await.unwrap().members, 1);
        let gone = async {
            while ask(&client, &["DBSIZE"]).await.integer().unwrap() > 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, gone).await.unwrap();
    });
}

/// However many counters there are: what it says of the time is not to be old when all is heard.
#[test]
fn the_greeting_goes_last() {
    const COUNTERS: u128 = 10_000;
    let server = RedisServer::start();
    server.must(&["CONFIG", "SET", "slowlog-log-slower-than", "0"]);
    runtime().block_on(async {
        let totals = RedisTotals::new(&client(&server), "many");
        let told = (0..COUNTERS).map(|counter| Told {
            counter,
            total: 1,
            late: None,
            edge: Edge::Forgets,
            resets: 0,
            view: None,
        });
        let told = told.map(|told| told.telling(Time::from_micros(START)));
        let tellings: Vec<Telling<'_>> = told.collect();
        let mut tallies = Vec::new();
        // A busy machine may be too late.
        while totals
            .exchange(teller(1), &tellings, &mut tallies)
            .await
            .is_err()
        {}
        assert_eq!(tallies.len(), tellings.len());
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
        let tellings = |total| -> Vec<Telling<'static>> {
            let told = (0..50).map(|counter| Told {
                counter,
                total,
                late: None,
                edge: Edge::Forgets,
                resets: 0,
                view: None,
            });
            told.map(|told| told.telling(now)).collect()
        };
        let mut tallies = Vec::new();
        for (node, members) in [(1, 1), (2, 2)] {
            let tellings = tellings(node);
            let exchange = totals.exchange(teller(node), &tellings, &mut tallies);
            assert_eq!(exchange.await.unwrap().members, members);
        }
        assert_eq!(tallies.len(), 50);
        assert!(tallies.iter().all(|tally| tally.others.current == 1));
    });
}

/// Keys of a release to come are none of ours.
#[test]
fn another_version_is_left_alone() {
    let server = RedisServer::start();
    runtime().block_on(async {
        let subject = Subject::new(&server);
        let now = Time::from_micros(START);
        subject.set_time(now).await;
        exchange(&subject.totals, 1, 5, now).await;
        let found = ask(&subject.client, &["KEYS", "tg1:e:*"]).await;
        let key = found
            .array()
            .unwrap()
            .next()
            .unwrap()
            .str()
            .unwrap()
            .to_owned();
        let other = key.replacen("tg1", "tg2", 1);
        ask(&subject.client, &["COPY", &key, &other]).await;
        exchange(&subject.totals, 2, 7, now).await;
        let fields = ask(&subject.client, &["HLEN", &other]).await;
        assert_eq!(fields.integer().unwrap(), 2);
        assert_eq!(
            exchange(&subject.totals, 3, 0, now).await.others.current,
            12
        );
    });
}

async fn exchange(totals: &RedisTotals, node: u64, total: u64, now: Time) -> Tally {
    let told = Told {
        counter: 1,
        total,
        late: None,
        edge: Edge::Forgets,
        resets: 0,
        view: None,
    };
    let mut tallies = Vec::new();
    let tellings = [told.telling(now)];
    let exchange = totals.exchange(teller(node), &tellings, &mut tallies);
    exchange.await.unwrap();
    tallies[0]
}

async fn ask(client: &Client, words: &[&str]) -> Reply {
    let write = |command: &mut Command<'_>| {
        for word in words {
            command.arg(word);
        }
    };
    client.call(Route::Any, write).await.unwrap()
}
