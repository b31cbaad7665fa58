//! What a node tells of Redis while all is well, so that nobody is surprised when it is not.

use std::collections::BTreeSet;

use tidegate_store_redis::test_util::{ClusterSetup, RedisServer, ServerOptions, wait_until};

use super::KINDS;
use super::node::{Door, Node, Patience};

/// What Redis says of itself, with a label for each server.
const OF_REDIS: [&str; 4] = [
    "tidegate_redis_used_memory_bytes",
    "tidegate_redis_cpu_seconds_total",
    "tidegate_redis_evicted_keys_total",
    "tidegate_redis_connections",
];

/// A number of what Redis says of itself.
fn said(redis: &RedisServer, name: &str) -> f64 {
    let info = redis.must(&["INFO"]);
    let info = info.value().str().unwrap().to_owned();
    let lines = info.lines();
    let number = |line: &str| line.strip_prefix(name)?.strip_prefix(':')?.parse().ok();
    lines.into_iter().find_map(number).expect("a number")
}

fn wait_for_words(node: &Node, n_servers: usize) {
    wait_until("Redis has said how it is", || {
        node.page().labels(OF_REDIS[0], "server").len() == n_servers
    });
}

#[test]
fn memory_and_time_of_redis_are_told_as_it_says() {
    let redis = RedisServer::start_with(ServerOptions {
        settings: vec![vec!["maxmemory".to_owned(), "64mb".to_owned()]],
        ..ServerOptions::default()
    });
    let node = Node::start(&redis.url(), Patience::Endless);
    wait_for_words(&node, 1);
    let page = node.page();
    let told = |name: &str| -> f64 { page.values(name, "").next().unwrap().parse().unwrap() };
    let memory = told("tidegate_redis_used_memory_bytes") / said(&redis, "used_memory");
    assert!((0.5..2.0).contains(&memory), "{memory} of what it says");
    assert_eq!(page.sum("tidegate_redis_max_memory_bytes", ""), 64 << 20);
    let cpu = said(&redis, "used_cpu_user") + said(&redis, "used_cpu_sys");
    let told_cpu = told("tidegate_redis_cpu_seconds_total");
    assert!(0.0 < told_cpu && told_cpu <= cpu, "{told_cpu} s of {cpu} s");
    assert_eq!(page.sum("tidegate_redis_evicted_keys_total", ""), 0);
    assert!(page.sum("tidegate_redis_connections", "") >= 1);
}

/// How long calls take, and how many go out together.
#[test]
fn calls_are_timed_and_the_depth_of_the_pipeline_is_told() {
    const N_CALLS: u64 = 200;
    let redis = RedisServer::start();
    let node = Node::start(&redis.url(), Patience::Endless);
    node.ask_until_mended();
    let before = node.page();
    let times = usize::try_from(N_CALLS).unwrap();
    assert_eq!(node.tally(Door::Grpc, "ample", "busy", times).n_degraded, 0);
    let after = node.page();
    let growth = |name: &str| after.growth(&before, name, "");
    let (calls, writes) = (
        growth("tidegate_store_calls_total"),
        growth("tidegate_store_writes_total"),
    );
    assert!(calls >= N_CALLS, "{calls}");
    assert!(writes < calls, "{calls} calls in {writes} writes");
    assert!(growth("tidegate_store_call_duration_seconds_count") >= N_CALLS);
    let seconds = |page: &super::page::Page| -> f64 {
        let sum = page.values("tidegate_store_call_duration_seconds_sum", "");
        sum.map(|it| it.parse::<f64>().unwrap()).sum()
    };
    assert!(seconds(&after) > seconds(&before));
    wait_until("no call waits", || {
        node.page().sum("tidegate_store_waiting_calls", "") == 0
    });
}

/// Each server of a Cluster has its own series, and there are no others.
#[test]
fn each_server_of_a_cluster_is_told_of_by_its_address() {
    let cluster = ClusterSetup::start(3);
    let node = Node::start(&cluster.url(), Patience::Endless);
    wait_for_words(&node, 3);
    // Enough that every server is asked.
    for number in 0..30 {
        assert!(node.ask("ample", &format!("caller {number}")).is_allowed);
    }
    let page = node.page();
    let addresses: Vec<_> = cluster.servers().iter().map(RedisServer::address).collect();
    let addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
    let addresses: BTreeSet<&str> = addresses.iter().map(String::as_str).collect();
    for name in OF_REDIS.into_iter().chain([
        "tidegate_store_breaker",
        "tidegate_store_calls_total",
        "tidegate_store_call_errors_total",
        "tidegate_store_call_duration_seconds_count",
        "tidegate_store_waiting_calls",
    ]) {
        assert_eq!(page.labels(name, "server"), addresses, "{name}");
    }
    for address in addresses {
        let label = format!("server=\"{address}\"");
        assert!(page.sum("tidegate_redis_used_memory_bytes", &label) > 0);
        assert!(page.sum("tidegate_store_call_duration_seconds_count", &label) > 0);
    }
    let kinds = page.labels("tidegate_store_call_errors_total", "kind");
    assert_eq!(kinds, BTreeSet::from(KINDS));
    let states = page.labels("tidegate_store_breaker", "state");
    assert_eq!(states, BTreeSet::from(["closed", "open"]));
}

/// Whoever is woken by an alarm of docs/failure.md finds what it names.
#[test]
fn what_the_alarms_name_is_on_the_page() {
    let redis = RedisServer::start_with(ServerOptions {
        settings: vec![vec!["maxmemory".to_owned(), "64mb".to_owned()]],
        ..ServerOptions::default()
    });
    let node = Node::start(&redis.url(), Patience::Endless);
    wait_for_words(&node, 1);
    wait_until("others were heard", || {
        let page = node.page();
        let ages = [
            "tidegate_heartbeat_age_seconds",
            "tidegate_eventual_sync_age_seconds",
        ];
        ages.iter()
            .all(|name| page.values(name, "").next().is_some())
    });
    let page = node.get("/metrics");
    let doc = include_str!("../../../../../docs/failure.md");
    let is_of_name = |byte: char| byte.is_ascii_lowercase() || byte == '_';
    let names: BTreeSet<&str> = doc
        .split(|byte| !is_of_name(byte))
        .filter(|word| word.starts_with("tidegate_"))
        .collect();
    assert!(names.len() >= 20, "{names:?}");
    for name in names {
        assert!(page.contains(&format!("# TYPE {name} ")), "{name}");
    }
}
