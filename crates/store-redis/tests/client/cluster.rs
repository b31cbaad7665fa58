//! A Cluster whose slots move and whose masters are lost.

use tidegate_store::StoreError;
use tidegate_store::report::Breaker;
use tidegate_store_redis::client::{Client, KnockError, Route, Script, slot_of};
use tidegate_store_redis::test_util::{ClusterSetup, PATIENCE, RedisServer};
use tokio::task::JoinSet;

use super::{ask, client, insist, n_calls, text, until, until_open};

/// A key whose slot the master at `place` has.
fn key_at(cluster: &ClusterSetup, place: usize) -> String {
    let mut keys = (0..).map(|number| format!("key-{number}"));
    let is_there = |key: &String| cluster.owner(slot_of(key.as_bytes())) == place;
    keys.find(is_there).expect("there are many")
}

#[tokio::test]
async fn calls_go_where_their_keys_are() {
    let cluster = ClusterSetup::start(3);
    let client = client(&cluster.url());
    assert!(client.is_cluster());
    calls_reach_every_master(&cluster, &client).await;
    a_url_of_one_server_is_told_of_the_cluster(&cluster).await;
    slots_move_under_calls(&cluster, &client).await;
    a_full_master_is_not_well(&cluster, &client).await;
    one_lost_master_is_lost_alone(&cluster, &client).await;
}

async fn calls_reach_every_master(
    cluster: &ClusterSetup,
    client: &tidegate_store_redis::client::Client,
) {
    for place in 0..3 {
        let key = key_at(cluster, place);
        assert_eq!(text(client, &["SET", &key, "1"]).await, "OK");
        let there = cluster.servers()[place].must(&["GET", &key]);
        assert_eq!(there.text(), Ok(Some(&b"1"[..])));
    }
    assert_eq!(client.servers(), 3);
    let sizes = (0..3).map(|number| client.call(Route::Server(number), super::words(&["DBSIZE"])));
    let mut keys = 0;
    for size in sizes {
        keys += size.await.unwrap().integer().unwrap();
    }
    assert_eq!(keys, 3);
    assert!(
        client
            .call(Route::Any, super::words(&["PING"]))
            .await
            .is_ok()
    );
}

/// At start, and when the Cluster comes up later: then nothing else would ever tell.
async fn a_url_of_one_server_is_told_of_the_cluster(cluster: &ClusterSetup) {
    let client = client(&cluster.servers()[0].url());
    let turned = client.knock(PATIENCE).await.unwrap_err();
    assert!(
        matches!(&turned, KnockError::Turned(text) if text.contains("write redis+cluster://")),
        "{turned:?}"
    );
    let elsewhere = key_at(cluster, 1);
    let error = ask(&client, &["SET", &elsewhere, "1"]).await.unwrap_err();
    assert!(
        error.to_string().contains("write redis+cluster://"),
        "{error}"
    );
    for question in [
        &["SET", &elsewhere, "1"][..],
        &["DEL", &key_at(cluster, 0), &elsewhere],
    ] {
        let client = super::client(&cluster.servers()[0].url());
        until_open(&client, question).await;
        let fault = client.report()[0].fault.clone();
        let fault = fault.expect("it is told why");
        assert!(fault.contains("write redis+cluster://"), "{fault}");
        // It answers, but is no better for that.
        let looks = looks_at(&cluster.servers()[0]);
        while looks_at(&cluster.servers()[0]) < looks + 2 {
            tokio::task::yield_now().await;
        }
        let report = &client.report()[0];
        assert_eq!((report.breaker, report.opened), (Breaker::Open, 1));
    }
}

/// How often a server was asked for its role, as whoever looks whether it is back does.
fn looks_at(server: &RedisServer) -> u64 {
    n_calls(server, "role")
}

async fn slots_move_under_calls(
    cluster: &ClusterSetup,
    client: &tidegate_store_redis::client::Client,
) {
    let key = key_at(cluster, 0);
    let slot = slot_of(key.as_bytes());
    let script = Script::new("return redis.call('INCR', KEYS[1])");
    let count = || async {
        let reply = client.eval(Route::Key(key.as_bytes()), &script, |command| {
            command.number(1).arg(&key);
        });
        reply.await.unwrap().integer().unwrap()
    };
    assert_eq!(count().await, 2);
    cluster.begin_move(slot, 1);
    // The key is still there; one that is not is asked for at the other server.
    assert_eq!(count().await, 3);
    let new = format!("{{{key}}}new");
    assert_eq!(text(client, &["SET", &new, "1"]).await, "OK");
    assert_eq!(
        cluster.servers()[0].command(&["GET", &new]).value(),
        tidegate_store_redis::client::Value::Error(
            format!("ASK {slot} 127.0.0.1:{}", cluster.servers()[1].port()).as_bytes()
        )
    );
    cluster.finish_move(slot, 1);
    let mut waiting = JoinSet::new();
    for _ in 0..100 {
        let (client, key) = (client.clone(), key.clone());
        waiting.spawn(async move { ask(&client, &["INCR", &key]).await });
    }
    while let Some(answered) = waiting.join_next().await {
        assert!(answered.unwrap().is_ok(), "a slot that moved is found");
    }
    assert_eq!(count().await, 104);
    // Once learnt, nobody is sent on any more.
    tidegate_store_redis::test_util::wait_until("a slot is asked for at the right place", || {
        cluster.owner(slot) == 1
    });
}

/// Nor is it taken for that because it does not have the key by which a server is asked whether it is back.
async fn a_full_master_is_not_well(
    cluster: &ClusterSetup,
    client: &tidegate_store_redis::client::Client,
) {
    let place = (cluster.owner(slot_of(b"tg1:{probe}")) + 1) % 3;
    let (full, key) = (&cluster.servers()[place], key_at(cluster, place));
    full.must(&["CONFIG", "SET", "maxmemory", "1"]);
    until_open(client, &["SET", &key, "1"]).await;
    let report = || {
        let mut servers = client.report().into_iter();
        let port = full.port().to_string();
        let found = servers.find(|server| server.address.ends_with(&port));
        found.expect("it is one of them")
    };
    // Each look is refused twice, by MOVED and for want of memory; who looks again was not content.
    let before = n_refused(full, "eval");
    until(|| n_refused(full, "eval") >= before + 5).await;
    assert_eq!(report().breaker, Breaker::Open, "somebody looked");
    full.must(&["CONFIG", "SET", "maxmemory", "0"]);
    insist(client, &["SET", &key, "1"]).await;
}

/// How often a server refused to run a command.
fn n_refused(server: &RedisServer, command: &str) -> u64 {
    let stats = server.must(&["INFO", "commandstats"]);
    let stats = String::from_utf8_lossy(stats.text().unwrap().unwrap_or_default()).into_owned();
    let name = format!("cmdstat_{command}:");
    let line = stats.lines().find_map(|line| line.strip_prefix(&*name));
    let counts = line.into_iter().flat_map(|line| line.split(','));
    let refused = counts.filter_map(|count| count.strip_prefix("rejected_calls="));
    refused.map(|count| count.parse::<u64>().unwrap()).sum()
}

async fn one_lost_master_is_lost_alone(
    cluster: &ClusterSetup,
    client: &tidegate_store_redis::client::Client,
) {
    let (lost, kept) = (key_at(cluster, 2), key_at(cluster, 0));
    cluster.servers()[2].kill();
    until_open(client, &["SET", &lost, "1"]).await;
    assert_eq!(text(client, &["SET", &kept, "1"]).await, "OK");
    assert_eq!(
        ask(client, &["SET", &lost, "1"]).await,
        Err(StoreError::Open)
    );
    cluster.servers()[2].restart();
    let _ = insist(client, &["PING", &kept]).await;
}

/// The breaker opens with this fault, although its server answers everything, and lets calls through now and then:
/// they are answered again when `mend` is done.
async fn sent_on_in_vain(client: &Client, question: &[&str], fault: &str, mend: impl FnOnce()) {
    until_open(client, question).await;
    let opened = || client.report().iter().map(|it| it.opened).sum::<u64>();
    let faults = || client.report().into_iter().filter_map(|it| it.fault);
    let is_told = |text: &str| text.contains("never answered") && text.contains(fault);
    assert!(faults().any(|text| is_told(&text)), "{:?}", client.report());
    // Nobody else can find out that it is over, so a call is tried now and then, ever more seldom.
    let relapsing = async {
        while opened() < 4 {
            let _ = ask(client, question).await;
            tokio::task::yield_now().await;
        }
    };
    let relapsing = tokio::time::timeout(PATIENCE, relapsing);
    relapsing.await.expect("it is tried again");
    mend();
    insist(client, question).await;
}

#[tokio::test]
async fn calls_of_a_slot_that_never_arrives_open_the_breaker() {
    let cluster = ClusterSetup::start(2);
    let client = client(&cluster.url());
    let (here, gone) = ("{t}here", "{t}gone");
    assert_eq!(text(&client, &["SET", here, "1"]).await, "OK");
    let slot = slot_of(here.as_bytes());
    let to = 1 - cluster.owner(slot);
    cluster.begin_move(slot, to);
    let mend = || cluster.finish_move(slot, to);
    sent_on_in_vain(&client, &["MGET", here, gone], "TRYAGAIN", mend).await;
}

#[tokio::test]
async fn calls_that_two_masters_send_to_each_other_open_the_breaker() {
    let cluster = ClusterSetup::start(2);
    let client = client(&cluster.url());
    let key = key_at(&cluster, 0);
    assert_eq!(text(&client, &["GET", &key]).await, "(nil)");
    let slot = slot_of(key.as_bytes());
    cluster.send_around(slot, 1);
    let mend = || cluster.assign(0, slot, 0);
    sent_on_in_vain(&client, &["GET", &key], "MOVED", mend).await;
    // Calls of other slots were answered all the time, and are.
    let other = key_at(&cluster, 1);
    assert_eq!(text(&client, &["GET", &other]).await, "(nil)");
}

/// One slot of many keeps nobody else from Redis.
#[tokio::test]
async fn calls_of_other_slots_keep_the_breaker_closed() {
    const N_STUCK: usize = 40;
    let cluster = ClusterSetup::start(2);
    let client = client(&cluster.url());
    let (here, gone) = ("{t}here", "{t}gone");
    assert_eq!(text(&client, &["SET", here, "1"]).await, "OK");
    let slot = slot_of(here.as_bytes());
    let place = cluster.owner(slot);
    cluster.begin_move(slot, 1 - place);
    let other = key_at(&cluster, place);
    for _ in 0..N_STUCK {
        let stuck = ask(&client, &["MGET", here, gone]).await;
        assert!(
            matches!(stuck, Err(StoreError::Unavailable { .. })),
            "{stuck:?}"
        );
        for _ in 0..3 {
            assert_eq!(text(&client, &["GET", &other]).await, "(nil)");
        }
    }
    assert!(client.report().iter().all(|server| server.opened == 0));
}
