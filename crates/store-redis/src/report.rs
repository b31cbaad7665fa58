//! How the servers are doing, as every store tells it.

use std::time::Duration;

use tidegate_store::report::{StoreHealth, StoreKind, StoreReport};

use crate::client::{Client, pause};

/// How often servers are asked what they say of themselves.
const LOOK: Duration = Duration::from_secs(10);

/// How long they may take over it: nobody waits for it.
const PATIENCE: Duration = Duration::from_secs(1);

/// Asks the servers of `client` again and again what they say of themselves, for as long as it runs. Reports
/// tell it.
pub async fn watch(client: &Client) {
    let client = client.with_timeout(PATIENCE);
    loop {
        // What a server that fails does not say, its breaker does.
        client.refresh_info().await;
        pause(LOOK).await;
    }
}

/// Whether all servers of `client` are asked.
pub(crate) fn health(client: &Client) -> StoreHealth {
    if client.is_whole() {
        StoreHealth::Whole
    } else {
        StoreHealth::Degraded
    }
}

/// How the servers of `client` are doing.
pub fn report(client: &Client) -> StoreReport {
    let mut servers = client.report();
    servers.sort_by(|one, other| one.address.cmp(&other.address));
    StoreReport {
        kind: StoreKind::Redis,
        servers,
        ..StoreReport::default()
    }
}
