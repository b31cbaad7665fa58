//! The real scripts on a real server, in the time of a simulated world.

use std::sync::atomic::{AtomicUsize, Ordering};

use tidegate_algorithms::Time;
use tidegate_store_redis::RedisStore;
use tidegate_store_redis::client::{Client, ClientConfig};
use tidegate_store_redis::test_util::{PATIENCE, RedisServer};
use tokio::sync::Notify;

/// A server, and a store over it whose time is moved by the test.
pub(crate) struct ScriptedStore {
    store: RedisStore,
    /// Calls that wait for a reply. No time passes in the world while there are any.
    in_flight: AtomicUsize,
    replied: Notify,
    _server: RedisServer,
}

// === impl ScriptedStore ===

impl ScriptedStore {
    pub(crate) fn start(now: Time) -> Self {
        let server = RedisServer::start();
        let mut config = ClientConfig::from_url(&server.url()).expect("a URL");
        config.timeout = Some(PATIENCE);
        config.min_timeout = Some(PATIENCE);
        config.connect_timeout = Some(PATIENCE);
        let client = Client::new(&config).expect("no files are needed");
        Self {
            store: RedisStore::in_virtual_time(client, now),
            in_flight: AtomicUsize::new(0),
            replied: Notify::new(),
            _server: server,
        }
    }

    /// Calls the store at `now`.
    pub(crate) async fn call<T>(&self, now: Time, call: impl AsyncFnOnce(&RedisStore) -> T) -> T {
        self.store.set_time(now);
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        let reply = call(&self.store).await;
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.replied.notify_one();
        reply
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) > 0
    }

    /// Waits for a reply. A loop of yields would take the server's core from it.
    pub(crate) async fn next_reply(&self) {
        self.replied.notified().await;
    }
}
