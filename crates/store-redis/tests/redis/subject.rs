//! Stores in virtual time over real servers.

use std::future::Future;

use tidegate_algorithms::{Decision, Quota, RefundTo, Time};
use tidegate_store::conformance::Subject;
use tidegate_store::{
    Charge, Charging, Consistency, CounterKey, Cursor, Decisions, Page, Receipt, Store, StoreError,
};
use tidegate_store_redis::client::{Client, ClientConfig, Command, Reply, Route};
use tidegate_store_redis::test_util::{ClusterSetup, PATIENCE, RedisServer, SentinelSetup};
use tidegate_store_redis::{RedisStore, fits};
use tokio::runtime::{Builder, Runtime};

/// A store over one server. A thread has one server, which each store finds empty.
pub(crate) struct Single(RedisStore);

/// The same, where others look at the same counters at the same moments, so that decisions are joined.
pub(crate) struct InCompany(Company);

/// A store whose decisions on one limit are in the midst of looks at it.
pub(crate) struct Company(RedisStore);

/// A store over a master that Sentinels watch; a thread has one.
pub(crate) struct Sentinel(RedisStore);

/// A store over a Cluster of three masters; a thread has one.
pub(crate) struct Cluster(RedisStore);

/// A server and all that is needed to ask it.
pub(crate) struct Site {
    pub(crate) desk: Desk,
    pub(crate) server: RedisServer,
}

/// What is needed to ask somebody.
pub(crate) struct Desk {
    pub(crate) client: Client,
    pub(crate) runtime: Runtime,
}

thread_local! {
    static SITE: Site = Site::start();
    static WATCHED: (SentinelSetup, Desk) = {
        let setup = SentinelSetup::start(0, 1);
        let desk = Desk::at(&setup.url());
        (setup, desk)
    };
    static SPREAD: (ClusterSetup, Desk) = {
        let setup = ClusterSetup::start(3);
        let desk = Desk::at(&setup.url());
        (setup, desk)
    };
}

// === impl Site ===

impl Site {
    pub(crate) fn start() -> Self {
        let server = RedisServer::start();
        let desk = Desk::at(&server.url());
        Self { desk, server }
    }
}

// === impl Desk ===

impl Desk {
    pub(crate) fn at(url: &str) -> Self {
        let mut config = ClientConfig::from_url(url).expect("a URL");
        config.timeout = Some(PATIENCE);
        config.min_timeout = Some(PATIENCE);
        config.connect_timeout = Some(PATIENCE);
        let client = Client::new(&config).expect("no files are needed");
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        Self { client, runtime }
    }

    pub(crate) fn wait<T>(&self, answer: impl Future<Output = T>) -> T {
        self.runtime.block_on(answer)
    }

    pub(crate) fn ask(&self, words: &[&str]) -> Reply {
        self.ask_at(Route::Any, words)
    }

    fn ask_at(&self, route: Route<'_>, words: &[&str]) -> Reply {
        let write = |command: &mut Command<'_>| {
            for word in words {
                command.arg(word);
            }
        };
        self.wait(self.client.call(route, write))
            .expect("an answer")
    }
}

impl Desk {
    /// An empty store.
    fn store(&self, now: Time) -> RedisStore {
        // A Cluster is known once somebody has asked it.
        self.ask(&["PING"]);
        for server in 0..self.client.servers() {
            self.ask_at(Route::Server(server), &["FLUSHALL"]);
        }
        RedisStore::in_virtual_time(self.client.clone(), now)
    }
}

// === impl InCompany ===

impl Subject for InCompany {
    type Store = Company;

    fn new(now: Time) -> Self {
        Self(Company(at_single(|desk| desk.store(now))))
    }

    fn store(&self) -> &Company {
        &self.0
    }

    fn set_time(&self, now: Time) {
        self.0.0.set_time(now);
    }

    fn wait<T>(&self, answer: impl Future<Output = T>) -> T {
        at_single(|desk| desk.wait(answer))
    }

    fn grain() -> u64 {
        Single::grain()
    }

    fn fits(quota: &Quota) -> bool {
        Single::fits(quota)
    }

    fn cases(many: u32) -> u32 {
        many / 25
    }
}

// === impl Company ===

impl Company {
    /// Looks at the counter, if there is one only.
    async fn look(&self, charges: &[Charge<'_>]) {
        if let [charge] = charges {
            self.peek(charge).await.expect("a look");
        }
    }
}

impl Store for Company {
    async fn charge(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        let ((), answer, ()) = tokio::join!(
            self.look(charges),
            self.0.charge(charges, charging, decisions),
            self.look(charges),
        );
        answer
    }

    async fn peek(&self, charge: &Charge<'_>) -> Result<Decision, StoreError> {
        self.0.peek(charge).await
    }

    async fn refund(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
        to: RefundTo,
        consistency: Consistency,
    ) -> Result<(), StoreError> {
        self.0.refund(key, quota, cost, to, consistency).await
    }

    async fn reset(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        consistency: Consistency,
    ) -> Result<bool, StoreError> {
        self.0.reset(key, quota, consistency).await
    }

    async fn now(&self) -> Result<Time, StoreError> {
        self.0.now().await
    }

    async fn list(&self, cursor: Cursor, most: usize) -> Result<Page, StoreError> {
        self.0.list(cursor, most).await
    }
}

/// Makes a subject of a store over what a thread has.
macro_rules! subject {
    ($subject:ident, $with:expr, one in $part:literal) => {
        impl Subject for $subject {
            type Store = RedisStore;

            fn new(now: Time) -> Self {
                Self($with(|desk| desk.store(now)))
            }

            fn store(&self) -> &RedisStore {
                &self.0
            }

            fn set_time(&self, now: Time) {
                self.0.set_time(now);
            }

            fn wait<T>(&self, answer: impl Future<Output = T>) -> T {
                $with(|desk| desk.wait(answer))
            }

            fn grain() -> u64 {
                1_000
            }

            fn fits(quota: &Quota) -> bool {
                fits(quota).is_ok()
            }

            fn cases(many: u32) -> u32 {
                many / $part
            }
        }
    };
}

subject!(Single, at_single, one in 5);
subject!(Sentinel, at_watched, one in 25);
subject!(Cluster, at_spread, one in 10);

fn at_single<T>(ask: impl FnOnce(&Desk) -> T) -> T {
    SITE.with(|site| ask(&site.desk))
}

fn at_watched<T>(ask: impl FnOnce(&Desk) -> T) -> T {
    WATCHED.with(|(_, desk)| ask(desk))
}

fn at_spread<T>(ask: impl FnOnce(&Desk) -> T) -> T {
    SPREAD.with(|(_, desk)| ask(desk))
}
