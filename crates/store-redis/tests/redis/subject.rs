//! Stores in virtual time over real servers.

use std::future::Future;
use std::time::Duration;

use tidegate_algorithms::{Quota, Time};
use tidegate_store::conformance::Subject;
use tidegate_store_redis::client::{Client, ClientConfig, Command, Route};
use tidegate_store_redis::test_util::{PATIENCE, RedisServer};
use tidegate_store_redis::{RedisStore, fits};
use tokio::runtime::{Builder, Runtime};

/// A store over one server. A thread has one server, which each store finds empty.
pub(crate) struct Single(RedisStore);

/// A server and all that is needed to ask it.
pub(crate) struct Site {
    /// Ends with the site.
    _server: RedisServer,
    pub(crate) runtime: Runtime,
    pub(crate) client: Client,
}

thread_local! {
    static SITE: Site = Site::start();
}

// === impl Site ===

impl Site {
    pub(crate) fn start() -> Self {
        let server = RedisServer::start();
        let client = client(&server.url());
        Self {
            _server: server,
            runtime: runtime(),
            client,
        }
    }

    pub(crate) fn ask(&self, words: &[&str]) -> tidegate_store_redis::client::Reply {
        let write = |command: &mut Command<'_>| {
            for word in words {
                command.arg(word);
            }
        };
        let answer = self.client.call(Route::Any, write);
        self.runtime.block_on(answer).expect("an answer")
    }
}

pub(crate) fn client(url: &str) -> Client {
    let mut config = ClientConfig::from_url(url).expect("a URL");
    config.timeout = PATIENCE;
    config.connect_timeout = Duration::from_secs(30);
    Client::new(&config).expect("no files are needed")
}

pub(crate) fn runtime() -> Runtime {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime")
}

// === impl Single ===

impl Subject for Single {
    type Store = RedisStore;

    fn new(now: Time) -> Self {
        SITE.with(|site| {
            site.ask(&["FLUSHALL"]);
            Self(RedisStore::in_virtual_time(site.client.clone(), now))
        })
    }

    fn store(&self) -> &RedisStore {
        &self.0
    }

    fn set_time(&self, now: Time) {
        self.0.set_time(now);
    }

    fn wait<T>(&self, answer: impl Future<Output = T>) -> T {
        SITE.with(|site| site.runtime.block_on(answer))
    }

    fn grain() -> u64 {
        1_000
    }

    fn fits(quota: &Quota) -> bool {
        fits(quota).is_ok()
    }

    fn cases(many: u32) -> u32 {
        many / 5
    }
}
