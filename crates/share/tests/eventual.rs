//! Limits that are shared eventually, through real servers: at full speed, and between two regions that
//! are far apart and then cut off.
//!
//! A decision never waits for anybody: each is ready when it is first looked at, which every one here
//! asserts. That is why nothing is said about how long they take.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tidegate_algorithms::{Algorithm, Allowance, Headroom, Quota, QuotaSpec};
use tidegate_share::{EventualConfig, SharedConfig, SharedStore, overshoot_bound};
use tidegate_store::{
    Admission, Charge, Charging, Consistency, CounterKey, Decisions, EmbeddedStore, LimitId, Mode,
    OnFull, Store, StoreConfig,
};
use tidegate_store_redis::RedisTotals;
use tidegate_store_redis::client::{Client, ClientConfig};
use tidegate_store_redis::test_util::{Fault, FaultyProxy, PATIENCE, RedisServer};
use tokio::task::{JoinSet, LocalSet, yield_now};

/// The way to another region and back takes a third of a second.
const ONE_WAY: Duration = Duration::from_millis(150);

/// Requests between two looks at what else there is to do.
const AT_A_TIME: u32 = 50;

const KEY: CounterKey<'static> = CounterKey {
    limit: LimitId(7),
    values: &["caller"],
};

/// One node. Its common store is asked for nothing here.
#[derive(Clone)]
struct Node {
    store: Arc<SharedStore<EmbeddedStore>>,
    quota: Arc<Quota>,
}

// === impl Node ===

impl Node {
    fn new(quota: &Arc<Quota>, other_regions: usize) -> Self {
        let small = StoreConfig {
            max_memory: 1 << 20,
        };
        let config = SharedConfig {
            standby_memory: small,
            eventual: EventualConfig {
                memory: small,
                other_regions,
                ..EventualConfig::default()
            },
            ..SharedConfig::default()
        };
        let (remote, local) = (EmbeddedStore::new(small), EmbeddedStore::new(small));
        Self {
            store: Arc::new(SharedStore::new(remote, local, config)),
            quota: Arc::clone(quota),
        }
    }

    fn charge(&self, cost: u64) -> Admission {
        self.charge_to(KEY, cost)
    }

    fn charge_to(&self, key: CounterKey<'_>, cost: u64) -> Admission {
        let charge = Charge {
            key,
            quota: &self.quota,
            cost,
            mode: Mode::Enforce,
            headroom: Headroom::Absent,
            on_full: OnFull::Allow,
            consistency: Consistency::Eventual,
        };
        let mut decisions = Decisions::new();
        let charges = [charge];
        let charged = self
            .store
            .charge(&charges, Charging::AllOrNone, &mut decisions);
        at_once(charged).unwrap().admission
    }

    fn remaining(&self) -> u64 {
        let look = Charge::look(KEY, &self.quota, Consistency::Eventual);
        at_once(self.store.peek(&look)).unwrap().remaining
    }

    /// Tells and hears for as long as it is polled.
    async fn run(self, home: RedisTotals, others: Vec<RedisTotals>) {
        self.store.eventual().run(&home, &others).await;
    }

    /// Asks as fast as it can, and says how much was admitted, until `is_over`, which also hears how much
    /// was admitted just now.
    async fn flood(self, is_over: impl Fn(&Self, u64) -> bool) -> u64 {
        let mut admitted = 0;
        loop {
            let round = (0..AT_A_TIME).filter(|_| self.charge(1) == Admission::Admitted);
            let round = u64::try_from(round.count()).unwrap();
            admitted += round;
            if is_over(&self, round) {
                return admitted;
            }
            yield_now().await;
        }
    }
}

/// What a future says when it is first looked at: it waits for nobody.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("an eventual decision waits for something"),
    }
}

/// A limit in a window that does not end while the tests run.
fn quota(limit: u64) -> Arc<Quota> {
    let spec = QuotaSpec {
        limit,
        window: Duration::from_hours(24 * 3_000),
        algorithm: Algorithm::FixedWindow,
        allowance: Allowance::Hard,
    };
    Arc::new(Quota::new(&spec).unwrap())
}

fn totals(url: &str) -> RedisTotals {
    let config = ClientConfig::from_url(url).unwrap();
    RedisTotals::new(&Client::new(&config).unwrap(), "test")
}

/// Runs a test on one thread, no longer than the patience of tests.
fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let tasks = LocalSet::new();
    let test = async { tokio::time::timeout(PATIENCE, test).await };
    tasks.block_on(&runtime, test).unwrap();
}

async fn until(mut is_so: impl FnMut() -> bool) {
    let mut looks = tokio::time::interval(Duration::from_millis(5));
    while !is_so() {
        looks.tick().await;
    }
}

/// Waits until all nodes know of each other.
async fn all_know(nodes: &[Node]) {
    let members = u32::try_from(nodes.len()).unwrap();
    until(|| {
        nodes
            .iter()
            .all(|node| node.store.eventual().members() == members)
    })
    .await;
}

async fn flood_all(nodes: &[Node], is_over: impl Fn(&Node, u64) -> bool + Copy + 'static) -> u64 {
    let mut floods = JoinSet::new();
    for node in nodes {
        floods.spawn_local(node.clone().flood(is_over));
    }
    floods.join_all().await.iter().sum()
}

fn bound(nodes: &[Node]) -> u64 {
    let members = u32::try_from(nodes.len()).unwrap();
    let slack = EventualConfig::default().slack;
    overshoot_bound(&nodes[0].quota, members, slack, 1)
}

/// Four nodes at full speed use the limit up, and do not get above the bound.
#[test]
fn four_nodes_keep_to_the_bound_at_full_speed() {
    let server = RedisServer::start();
    run(async {
        let limit = 20_000;
        let quota = quota(limit);
        let nodes: Vec<Node> = (0..4).map(|_| Node::new(&quota, 0)).collect();
        for node in &nodes {
            tokio::task::spawn_local(node.clone().run(totals(&server.url()), Vec::new()));
        }
        all_know(&nodes).await;
        let admitted = flood_all(&nodes, |node, _| node.remaining() == 0).await;
        assert!(admitted >= limit, "{admitted}");
        assert!(admitted <= limit + bound(&nodes), "{admitted}");
        // What was too much is known by all who ask, and owed.
        until(|| {
            nodes.iter().all(|node| {
                node.charge(1);
                let report = node.store.eventual().report();
                report.pending == 0 && report.worst_overshoot <= admitted - limit
            })
        })
        .await;
    });
}

/// However many counters there are to tell of, all are on their way before the first reply is: one round
/// trip.
#[test]
fn many_counters_are_told_in_one_round_trip() {
    const COUNTERS: u128 = 5_000;
    let server = RedisServer::start();
    let proxy = FaultyProxy::start(server.address());
    run(async {
        let node = Node::new(&quota(1_000_000), 0);
        let sent = || proxy.received().iter().sum::<usize>();
        let sync = {
            let (node, totals) = (node.clone(), totals(&proxy.url()));
            async move || {
                for limit in 0..COUNTERS {
                    let limit = LimitId(limit);
                    node.charge_to(CounterKey { limit, ..KEY }, 1);
                }
                node.store.eventual().sync_now(&totals).await
            }
        };
        // Once to connect, and once to see what it takes. A busy machine may be too late for either.
        while sync().await.is_err() {}
        let before = sent();
        while sync().await.is_err() {}
        let whole = sent() - before;
        proxy.set(Fault::Pause);
        let before = sent();
        let paused = tokio::task::spawn_local(async move { sync().await });
        until(|| sent() - before >= whole * 9 / 10).await;
        proxy.set(Fault::None);
        // Whether the replies were in time is not the question.
        let _ = paused.await.unwrap();
    });
}

/// Two nodes in each of two regions far apart keep to the same bound; cut off from each other, each keeps
/// to its share; and when the cut is over, all see the same again.
#[test]
fn regions_decide_by_themselves_and_agree_in_the_end() {
    let servers = [RedisServer::start(), RedisServer::start()];
    let proxies = servers
        .each_ref()
        .map(|server| FaultyProxy::start(server.address()));
    let cut = |fault| proxies.iter().for_each(|proxy| proxy.set(fault));
    run(async {
        let limit = 4_000;
        let quota = quota(limit);
        let nodes: Vec<Node> = (0..4).map(|_| Node::new(&quota, 1)).collect();
        cut(Fault::Delay(ONE_WAY));
        for (number, node) in nodes.iter().enumerate() {
            let (home, other) = (number / 2, 1 - number / 2);
            let others = vec![totals(&proxies[other].url())];
            let run = node.clone().run(totals(&servers[home].url()), others);
            tokio::task::spawn_local(run);
        }
        all_know(&nodes).await;
        // Half of the limit, so that something is left for later.
        let admitted = flood_all(&nodes, |node, _| node.remaining() <= 2_000).await;
        assert!(admitted <= limit + bound(&nodes), "{admitted}");

        cut(Fault::Refuse);
        let has_its_share = |node: &Node, round| {
            let report = node.store.eventual().report();
            report.alone > 0 && round == 0
        };
        let in_cut = flood_all(&nodes, has_its_share).await;
        let total = admitted + in_cut;
        assert!(total <= limit + bound(&nodes), "{admitted} and {in_cut}");

        cut(Fault::None);
        // Counters are told of when they are asked about.
        until(|| {
            let left: Vec<u64> = nodes
                .iter()
                .map(|node| {
                    node.charge(0);
                    node.remaining()
                })
                .collect();
            let reports = nodes.iter().map(|node| node.store.eventual().report());
            let is_told = reports.map(|report| report.pending).sum::<u64>() == 0;
            is_told && left.iter().all(|&node| node == limit.saturating_sub(total))
        })
        .await;
    });
}
