//! Loans whose replies come when nobody waits for them any more.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use futures_util::future::join_all;
use tidegate_algorithms::{Algorithm, Allowance, Quota, QuotaSpec, Time};
use tidegate_store::report::Breaker;
use tidegate_store::{Charge, Consistency, CounterKey, Draw, Lender, LimitId, Store, StoreError};
use tidegate_store_redis::RedisStore;
use tidegate_store_redis::client::{Client, ClientConfig, Command, Reply, Route};
use tidegate_store_redis::test_util::{Fault, FaultyProxy, PATIENCE, RedisServer};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::runtime::Builder;

use crate::subject::Desk;

const HASTE: Duration = Duration::from_millis(5);
const ANN: CounterKey<'_> = CounterKey {
    limit: LimitId(1),
    values: &["ann"],
};
const FIFTY: Draw = Draw {
    least: 1,
    most: 50,
    one_in: 1,
    reserve: 0,
    life: Duration::from_secs(1),
};

fn hundred() -> Quota {
    Quota::new(&QuotaSpec {
        limit: 100,
        window: Duration::from_mins(1),
        algorithm: Algorithm::FixedWindow,
        allowance: Allowance::Hard,
    })
    .expect("valid")
}

async fn ping(client: Client) -> Result<Reply, StoreError> {
    let write = |command: &mut Command<'_>| {
        command.arg("PING");
    };
    client.call(Route::Any, write).await
}

/// A server that stalls for longer than a draw waits, and for so long that it is not asked for a moment, keeps
/// nothing but what the request at hand cost.
#[test]
fn a_loan_that_comes_too_late_is_given_back() {
    let server = RedisServer::start();
    let proxy = FaultyProxy::start(server.address());
    let desk = Desk::at(&proxy.url());
    let store = |client| RedisStore::in_virtual_time(client, Time::from_nanos(1 << 60));
    let patient = store(desk.client.clone());
    let hasty = store(desk.client.with_timeout(HASTE));
    let quota = hundred();
    let charge = Charge::look(ANN, &quota, Consistency::Leased);
    let look = || patient.peek(&charge);
    assert_eq!(desk.wait(look()).expect("a decision").remaining, 100);

    desk.wait(async {
        proxy.set(Fault::Pause);
        // Whoever waits for longer keeps the connection.
        let waiting = tokio::spawn(ping(desk.client.clone()));
        tokio::task::yield_now().await;
        let drawn = hasty.draw(ANN, &quota, FIFTY).await;
        assert_eq!(drawn, Err(StoreError::Timeout { after: HASTE }));
        join_all((0..5).map(|_| ping(desk.client.with_timeout(HASTE)))).await;
        assert_eq!(desk.client.report()[0].breaker, Breaker::Open);
        proxy.set(Fault::None);
        waiting.await.expect("no panic").expect("an answer");
        let given_back = async {
            while look().await.map(|decision| decision.remaining) != Ok(99) {
                tokio::task::yield_now().await;
            }
        };
        let given_back = tokio::time::timeout(PATIENCE, given_back).await;
        given_back.expect("what was drawn ahead is there again");
    });
}

/// A store that nobody has any more ends its connections, though a draw of its is still under way and may yet be
/// missed.
#[test]
fn a_draw_under_way_keeps_no_store() {
    let (tell, told) = mpsc::channel();
    // A thread of its own, for it is whoever drives the connection that would hang.
    thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let url = format!("redis://{}", listener.local_addr().expect("an address"));
            let config = ClientConfig::from_url(&url).expect("a URL");
            let client = Client::new(&config).expect("no TLS").with_timeout(HASTE);
            let store = RedisStore::new(client);
            let drawn = store.draw(ANN, &hundred(), FIFTY).await;
            assert_eq!(drawn, Err(StoreError::Timeout { after: HASTE }));
            drop(store);
            let (mut connection, _) = listener.accept().await.expect("a connection");
            let _ = connection.read_to_end(&mut Vec::new()).await;
        });
        tell.send(()).expect("somebody waits");
    });
    told.recv_timeout(PATIENCE).expect("the connection ends");
}
