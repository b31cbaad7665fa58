//! A master that changes.

use tidegate_store_redis::test_util::SentinelSetup;

use super::{insist, text};

#[tokio::test]
async fn another_master_is_found_without_a_restart() {
    let setup = SentinelSetup::start(1, 1);
    let client = super::client(&setup.url());
    assert_eq!(text(&client, &["SET", "a", "1"]).await, "OK");
    let old = setup.master().port();
    assert!(
        client.report()[0]
            .address
            .ends_with(&format!("main at 127.0.0.1:{old}"))
    );

    setup.servers()[0].kill();
    insist(&client, &["SET", "a", "2"]).await;
    let new = setup.wait_for_failover(old);
    assert_eq!(new.must(&["GET", "a"]).text(), Ok(Some(&b"2"[..])));
    assert!(
        client.report()[0]
            .address
            .ends_with(&new.port().to_string())
    );
}
