//! Deployments of which every part is encrypted, and asks for our certificate.

use std::fs;
use std::sync::Arc;

use tidegate_store_redis::client::{Client, KnockError};
use tidegate_store_redis::test_util::{
    Certificates, ClusterSetup, Listening, PATIENCE, RedisServer, SentinelSetup, ServerOptions,
    wait_until,
};

use super::{ask, client, insist, text, until_open};

fn certificates() -> (Arc<Certificates>, Listening) {
    let certificates = Arc::new(Certificates::new());
    let listening = Listening::Tls(Arc::clone(&certificates));
    (certificates, listening)
}

fn trusting(url: &str, certificates: &Certificates) -> Client {
    client(&format!("{url}?{}", certificates.query()))
}

/// Whoever trusts another authority is told so at start, and later by the breaker; and who speaks no TLS, or
/// has no certificate, comes no further.
async fn strangers_stay_outside(url: &str) {
    let others = Certificates::new();
    let stranger = trusting(url, &others);
    let turned = stranger.knock(PATIENCE).await.unwrap_err();
    assert!(
        matches!(&turned, KnockError::Turned(text) if text.contains("name the authority")),
        "{turned:?}"
    );
    until_open(&stranger, &["GET", "a"]).await;
    let report = &stranger.report()[0];
    let fault = report.fault.as_deref().unwrap_or_default();
    assert!(fault.contains("invalid peer certificate"), "{report:?}");
    let unencrypted = client(&url.replacen("rediss", "redis", 1));
    assert!(ask(&unencrypted, &["GET", "a"]).await.is_err());
}

#[tokio::test]
async fn a_master_and_its_sentinels() {
    let (certificates, listening) = certificates();
    let setup = SentinelSetup::start_on(&listening, 1, 1);
    let client = trusting(&setup.url(), &certificates);
    client.knock(PATIENCE).await.unwrap();
    assert_eq!(text(&client, &["SET", "a", "1"]).await, "OK");
    strangers_stay_outside(&setup.url()).await;
    let old = setup.master().port();
    setup.servers()[0].kill();
    insist(&client, &["SET", "a", "2"]).await;
    let new = setup.wait_for_failover(old);
    assert_eq!(new.must(&["GET", "a"]).text(), Ok(Some(&b"2"[..])));
}

#[tokio::test]
async fn a_cluster() {
    let (certificates, listening) = certificates();
    let setup = ClusterSetup::start_on(&listening, 3);
    let client = trusting(&setup.url(), &certificates);
    client.knock(PATIENCE).await.unwrap();
    let keys: Vec<_> = (0..30).map(|number| format!("key-{number}")).collect();
    for key in &keys {
        assert_eq!(text(&client, &["SET", key, "1"]).await, "OK");
    }
    wait_until("every master has some of the keys", || {
        let sizes = setup.servers().iter().map(|it| it.must(&["DBSIZE"]));
        let sizes: Vec<_> = sizes.map(|size| size.integer().unwrap()).collect();
        sizes.iter().all(|&size| size > 0) && sizes.iter().sum::<i64>() == 30
    });
    // A slot that moves is followed over TLS, too.
    let slot = tidegate_store_redis::client::slot_of(keys[0].as_bytes());
    let to = (setup.owner(slot) + 1) % 3;
    setup.begin_move(slot, to);
    setup.finish_move(slot, to);
    assert_eq!(text(&client, &["GET", &keys[0]]).await, "1");
    strangers_stay_outside(&setup.url()).await;
}

#[tokio::test]
async fn files_that_change_are_read_again_for_the_next_connection() {
    let (certificates, listening) = certificates();
    let server = RedisServer::start_with(ServerOptions {
        listening,
        ..ServerOptions::default()
    });
    let client = trusting(&server.url(), &certificates);
    assert_eq!(text(&client, &["SET", "a", "1"]).await, "OK");
    // Another authority signs new certificates, and the server comes back with them.
    let others = Certificates::new();
    fs::copy(others.authority(), certificates.authority()).unwrap();
    fs::copy(others.certificate(), certificates.certificate()).unwrap();
    fs::copy(others.key(), certificates.key()).unwrap();
    server.restart();
    insist(&client, &["SET", "a", "2"]).await;
    // Files that are no good are left alone, and those before stay in use.
    fs::write(certificates.key(), "no key").unwrap();
    let _ = ask(
        &client,
        &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no"],
    )
    .await;
    insist(&client, &["SET", "a", "3"]).await;
}
