//! A master that changes.

use std::time::Duration;

use tidegate_store_redis::test_util::SentinelSetup;
use tokio::time::{MissedTickBehavior, interval};

use super::{ask, insist, text};

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

/// Counts until a planned failover is over, and a little longer; returns how many counts were answered and are
/// not on the new master.
async fn lost_in_failover(setup: &SentinelSetup, key: &str) -> u64 {
    let client = super::client(&setup.url()).with_timeout(Duration::from_millis(50));
    insist(&client, &["SET", key, "0"]).await;
    let old = setup.master().port();
    let mut ticks = interval(Duration::from_millis(1));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut answered, mut after) = (0, 0);
    while after < 200 {
        ticks.tick().await;
        answered += u64::from(ask(&client, &["INCR", key]).await.is_ok());
        if answered == 200 {
            setup.fail_over();
        }
        let is_over = !client.report()[0].address.ends_with(&old.to_string());
        after += u32::from(is_over);
    }
    let new = setup.wait_for_failover(old);
    let counted = new.must(&["GET", key]);
    let counted = counted.text().unwrap().unwrap_or_default();
    let counted: u64 = String::from_utf8_lossy(counted).parse().unwrap();
    answered.saturating_sub(counted)
}

/// Counts go to the new master as soon as it is promoted, which is a second or more before Sentinels name it. Asking
/// them once a second lost more than 1,000 counts.
#[tokio::test]
async fn a_planned_failover_loses_next_to_nothing() {
    let setup = SentinelSetup::start(1, 1);
    let lost = lost_in_failover(&setup, "first").await;
    assert!(lost <= 100, "{lost} counts were lost");
}
