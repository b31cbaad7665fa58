//! Several targets: balancing, retries, health, names.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, StatusCode};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{spawn_local, yield_now};

use super::super::addresses::{ResolvedAddresses, Resolver};
use super::super::{ForwardError, SharedUpstream, UpstreamPool};
use super::bytes_server::BytesServer;
use super::client_body::{client_body, whole_body};
use super::{OK, get, pool, read, request, run, upstream};
use crate::config::{Balance, HealthCheck, PassiveHealth, RetryConfig, RetryOn, UpstreamConfig};

const BRIEF: Duration = Duration::from_millis(20);
const UNAVAILABLE: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 2\r\n\r\nno";

/// A server that answers everything with its own number.
async fn numbered(number: usize) -> BytesServer {
    BytesServer::start(move |mut connection| async move {
        while connection.head().await.is_some() {
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{number}");
            connection.send(answer).await;
        }
    })
    .await
}

/// A server that answers everything with the same bytes, or closes if there are none.
async fn constant(answer: &'static str) -> BytesServer {
    BytesServer::start(move |mut connection| async move {
        while connection.head().await.is_some() && !answer.is_empty() {
            connection.send(answer).await;
        }
    })
    .await
}

/// The URL of a port at which nobody listens.
async fn closed_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

async fn count_answers(
    pool: &UpstreamPool,
    upstream: &Arc<SharedUpstream>,
    n_requests: usize,
) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for _ in 0..n_requests {
        let response = pool.send(upstream, get("/"), None).await.unwrap();
        let body = String::from_utf8(read(response).await.to_vec()).unwrap();
        *counts.entry(body).or_default() += 1;
    }
    counts
}

fn retry(on: &[RetryOn]) -> RetryConfig {
    RetryConfig {
        on: on.to_vec(),
        ..RetryConfig::default()
    }
}

#[test]
fn targets_take_turns() {
    run(async {
        let servers = [numbered(0).await, numbered(1).await, numbered(2).await];
        let urls = servers.each_ref().map(|server| server.url.as_str());
        let upstream = upstream(&urls, |_| {});
        let counts = count_answers(&pool(), &upstream, 30).await;
        assert_eq!(counts.len(), 3);
        assert!(counts.values().all(|count| *count == 10), "{counts:?}");
    });
}

#[test]
fn a_target_with_many_requests_in_progress_gets_no_more() {
    run(async {
        // The first answers nothing.
        let stuck = BytesServer::start(|mut connection| async move {
            while connection.body(1).await.is_some() {}
        })
        .await;
        let quick = numbered(1).await;
        let upstream = upstream(&[&stuck.url, &quick.url], |config| {
            config.balance = Balance::LeastRequests;
        });
        let pool = Rc::new(pool());
        // Between two, both are always compared: the first gets one request, and the second all that follow.
        let (pool_of_first, upstream_of_first) = (Rc::clone(&pool), upstream.clone());
        while upstream.gauges().targets[0].in_progress == 0 {
            let (pool, upstream) = (Rc::clone(&pool_of_first), upstream_of_first.clone());
            spawn_local(async move { pool.send(&upstream, get("/"), None).await.map(drop) });
            yield_now().await;
        }
        let n_stuck = upstream.gauges().targets[0].in_progress;
        while upstream.gauges().targets[1].in_progress > 0 {
            yield_now().await;
        }
        let counts = count_answers(&pool, &upstream, 20).await;
        assert_eq!(counts, HashMap::from([("1".to_owned(), 20)]));
        assert_eq!(upstream.gauges().targets[0].in_progress, n_stuck);
    });
}

#[test]
fn a_failed_connect_is_retried_on_another_target_where_a_route_asks_for_it() {
    run(async {
        let live = numbered(1).await;
        let dead = closed_port().await;
        let upstream = upstream(&[&dead, &live.url], |config| {
            config.passive_health.failures = 0;
        });
        let pool = pool();
        let retry = retry(&[RetryOn::Connect]);
        for _ in 0..4 {
            // Any method: nothing was sent, the body is untouched.
            let (body, _client) = whole_body(b"hello").await;
            let post = request(Method::POST, "/").map(|_| body);
            let response = pool.send(&upstream, post, Some(&retry)).await.unwrap();
            drop(response);
        }
        assert_eq!(upstream.counters.connect_failed.get(), 2);
        assert_eq!(upstream.counters.retries.get(), 2);
        let mut n_failed = 0;
        for _ in 0..4 {
            if let Err(error) = pool.send(&upstream, get("/"), None).await {
                assert!(matches!(error, ForwardError::ConnectFailed(_)), "{error:?}");
                assert_eq!(error.status(), StatusCode::BAD_GATEWAY);
                n_failed += 1;
            }
        }
        assert_eq!(n_failed, 2);
    });
}

#[test]
fn broken_connections_are_retried_for_idempotent_methods_only() {
    run(async {
        let (breaking, live) = (constant("").await, numbered(1).await);
        let upstream = upstream(&[&breaking.url, &live.url], |config| {
            config.passive_health.failures = 0;
        });
        let pool = pool();
        let retry = retry(&[RetryOn::Reset]);
        let mut n_failed = 0;
        for method in [Method::GET, Method::POST] {
            for _ in 0..4 {
                let sent = request(method.clone(), "/");
                match pool.send(&upstream, sent, Some(&retry)).await {
                    Ok(response) => assert_eq!(read(response).await, "1"),
                    Err(error) => {
                        assert_eq!(method, Method::POST, "{error:?}");
                        n_failed += 1;
                    }
                }
            }
        }
        assert_eq!(n_failed, 2);
    });
}

/// A server that answers requests with bodies of `length` bytes, each with its body, or, with `answer`, all the same, or closes if that is empty.
async fn with_bodies(length: usize, answer: Option<&'static str>) -> BytesServer {
    BytesServer::start(move |mut connection| async move {
        while connection.head().await.is_some() {
            let Some(body) = connection.body(length).await else {
                return;
            };
            match answer {
                Some("") => return,
                Some(answer) => connection.send(answer).await,
                None => {
                    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
                    connection.send([head.as_bytes(), &body].concat()).await;
                }
            }
        }
    })
    .await
}

/// The number of requests that fail of four, by two targets of which one answers with `answer` or breaks off.
async fn n_failed_of_four(method: Method, length: usize, answer: &'static str) -> usize {
    let failing = with_bodies(length, Some(answer)).await;
    let live = with_bodies(length, None).await;
    let upstream = upstream(&[&failing.url, &live.url], |config| {
        config.passive_health.failures = 0;
    });
    let pool = pool();
    let unavailable = RetryOn::Status(StatusCode::SERVICE_UNAVAILABLE);
    let retry = retry(&[RetryOn::Reset, unavailable]);
    let bytes: Vec<u8> = (0..length).map(|it| it.to_le_bytes()[0]).collect();
    let mut n_failed = 0;
    for _ in 0..4 {
        let (body, _client) = whole_body(&bytes).await;
        let mut sent = request(method.clone(), "/").map(|_| body);
        sent.headers_mut().insert("content-length", length.into());
        match pool.send(&upstream, sent, Some(&retry)).await {
            Ok(response) if response.status() == StatusCode::OK => {
                assert_eq!(read(response).await, bytes, "{method}");
            }
            _ => n_failed += 1,
        }
    }
    n_failed
}

#[test]
fn a_small_body_is_sent_again_for_idempotent_methods_only() {
    run(async {
        for answer in ["", UNAVAILABLE] {
            for method in [Method::PUT, Method::DELETE] {
                for length in [5, 60 * 1024] {
                    let n_failed = n_failed_of_four(method.clone(), length, answer).await;
                    assert_eq!(n_failed, 0, "{method} {length} {answer:?}");
                }
                // More than is kept.
                let n_failed = n_failed_of_four(method, 200 * 1024, answer).await;
                assert_eq!(n_failed, 2, "{answer:?}");
            }
            for method in [Method::POST, Method::PATCH] {
                let n_failed = n_failed_of_four(method.clone(), 5, answer).await;
                assert_eq!(n_failed, 2, "{method} {answer:?}");
            }
        }
    });
}

/// A target that answers before it has read the body, and whose connection then is of no use.
#[test]
fn a_body_that_is_still_arriving_goes_on_with_the_next_attempt() {
    run(async {
        let early = BytesServer::start(|mut connection| async move {
            connection.head().await;
            connection.body(2).await;
            connection.send(UNAVAILABLE).await;
            while connection.body(1).await.is_some() {}
        })
        .await;
        let live = with_bodies(5, None).await;
        let upstream = upstream(&[&early.url, &live.url], |_| {});
        let pool = pool();
        let retry = retry(&[RetryOn::Status(StatusCode::SERVICE_UNAVAILABLE)]);
        for _ in 0..4 {
            let (body, mut client) = client_body(5).await;
            let mut sent = request(Method::PUT, "/").map(|_| body);
            sent.headers_mut().insert("content-length", 5.into());
            let answered = pool.send(&upstream, sent, Some(&retry));
            let write = async {
                client.write_all(b"he").await.unwrap();
                // The rest comes when the first target has answered.
                for _ in 0..100 {
                    yield_now().await;
                }
                client.write_all(b"llo").await.unwrap();
                client
            };
            let (response, _client) = tokio::join!(answered, write);
            assert_eq!(read(response.unwrap()).await, "hello");
        }
        assert_eq!(upstream.counters.retries.get(), 2);
    });
}

#[test]
fn statuses_are_retried_where_a_route_asks_for_it() {
    run(async {
        let (failing, live) = (constant(UNAVAILABLE).await, numbered(1).await);
        let upstream = upstream(&[&failing.url, &live.url], |_| {});
        let pool = pool();
        let retry = retry(&[RetryOn::Status(StatusCode::SERVICE_UNAVAILABLE)]);
        for _ in 0..4 {
            let sent = pool.send(&upstream, get("/"), Some(&retry)).await;
            assert_eq!(sent.unwrap().status(), StatusCode::OK);
        }
        assert_eq!(upstream.counters.retries.get(), 2);
        let statuses = RefCell::new(Vec::new());
        for _ in 0..2 {
            let post = request(Method::POST, "/");
            let sent = pool.send(&upstream, post, Some(&retry)).await;
            statuses.borrow_mut().push(sent.unwrap().status().as_u16());
        }
        statuses.borrow_mut().sort_unstable();
        assert_eq!(*statuses.borrow(), [200, 503]);
    });
}

#[test]
fn retries_end_with_the_budget() {
    run(async {
        let failing = constant(UNAVAILABLE).await;
        let upstream = upstream(&[&failing.url], |_| {});
        let pool = pool();
        let retry = retry(&[RetryOn::Status(StatusCode::SERVICE_UNAVAILABLE)]);
        for _ in 0..100 {
            let sent = pool.send(&upstream, get("/"), Some(&retry)).await.unwrap();
            assert_eq!(sent.status(), StatusCode::SERVICE_UNAVAILABLE);
        }
        // A fifth of them, and the floor of ten.
        assert_eq!(upstream.counters.retries.get(), 30);
        assert_eq!(upstream.counters.retries_denied.get(), 70);
    });
}

#[test]
fn a_target_that_keeps_failing_is_ejected_for_a_while() {
    run(async {
        let live = numbered(1).await;
        let dead = closed_port().await;
        let upstream = upstream(&[&dead, &live.url], |config| {
            config.passive_health = PassiveHealth {
                failures: 3,
                eject_for: Duration::from_mins(1),
            };
        });
        let pool = pool();
        let mut n_failed = 0;
        for _ in 0..20 {
            n_failed += usize::from(pool.send(&upstream, get("/"), None).await.is_err());
        }
        assert_eq!(n_failed, 3);
        assert!(!upstream.gauges().targets[0].is_up);
    });
}

#[test]
fn ejected_targets_are_used_if_all_are_ejected_and_come_back_when_they_respond() {
    run(async {
        let failing = Rc::new(Cell::new(true));
        let is_failing = Rc::clone(&failing);
        let server = BytesServer::start(move |mut connection| {
            let is_failing = Rc::clone(&is_failing);
            async move {
                while connection.head().await.is_some() && !is_failing.get() {
                    connection.send(OK).await;
                }
            }
        })
        .await;
        let other = closed_port().await;
        let upstream = upstream(&[&server.url, &other], |config| {
            config.passive_health = PassiveHealth {
                failures: 1,
                eject_for: Duration::from_mins(1),
            };
        });
        let pool = pool();
        for _ in 0..2 {
            assert!(pool.send(&upstream, get("/"), None).await.is_err());
        }
        assert!(upstream.gauges().targets.iter().all(|target| !target.is_up));
        failing.set(false);
        let mut n_answered = 0;
        for _ in 0..4 {
            n_answered += usize::from(pool.send(&upstream, get("/"), None).await.is_ok());
        }
        // Once it has responded, it is the only one that is not ejected.
        assert!(n_answered >= 3, "{n_answered}");
        assert!(upstream.gauges().targets[0].is_up);
    });
}

/// A server whose health can be switched, and the count of its checks.
async fn checked_server(is_well: &Rc<Cell<bool>>, checks: &watch::Sender<usize>) -> BytesServer {
    let (is_well, checks) = (Rc::clone(is_well), checks.clone());
    BytesServer::start(move |mut connection| {
        let (is_well, checks) = (Rc::clone(&is_well), checks.clone());
        async move {
            while let Some(head) = connection.head().await {
                if head.starts_with("GET /health HTTP/1.1\r\n") {
                    assert!(head.contains("host: health.test\r\n"), "{head}");
                    checks.send_modify(|n_checks| *n_checks += 1);
                    let answer = if is_well.get() { OK } else { UNAVAILABLE };
                    connection.send(answer).await;
                } else {
                    connection.send(OK).await;
                }
            }
        }
    })
    .await
}

#[test]
fn health_checks_take_a_target_down_and_up() {
    run(async {
        let is_well = Rc::new(Cell::new(false));
        let (checks, mut n_checks) = watch::channel(0);
        let server = checked_server(&is_well, &checks).await;
        let upstream = upstream(&[&server.url], |config| {
            config.health_check = Some(HealthCheck {
                host: Some("health.test".to_owned()),
                interval: BRIEF,
                healthy_after: 2,
                unhealthy_after: 2,
                ..HealthCheck::new("/health")
            });
        });
        let pool = pool();
        // Before the first check, a target is believed to be well.
        read(pool.send(&upstream, get("/"), None).await.unwrap()).await;
        let checking = spawn_local(Arc::clone(&upstream).run());
        // The third check begins when the result of the second is known.
        n_checks.wait_for(|n_checks| *n_checks >= 3).await.unwrap();
        let error = pool.send(&upstream, get("/"), None).await.unwrap_err();
        assert!(matches!(error, ForwardError::NoHealthyTarget), "{error:?}");
        assert!(!upstream.gauges().targets[0].is_up);
        is_well.set(true);
        let n_before = *n_checks.borrow();
        n_checks
            .wait_for(|n_checks| *n_checks >= n_before + 4)
            .await
            .unwrap();
        read(pool.send(&upstream, get("/"), None).await.unwrap()).await;
        checking.abort();
    });
}

#[test]
fn a_reload_keeps_the_health_of_targets_that_stay() {
    run(async {
        let dead = closed_port().await;
        let settings = |config: &mut UpstreamConfig| {
            config.passive_health = PassiveHealth {
                failures: 1,
                eject_for: Duration::from_mins(1),
            };
        };
        let old = upstream(&[&dead, "http://127.0.0.1:9"], settings);
        let pool = pool();
        for _ in 0..2 {
            assert!(pool.send(&old, get("/"), None).await.is_err());
        }
        let mut config = (*old.config).clone();
        let same = SharedUpstream::replacing(Arc::new(config.clone()), &[Arc::clone(&old)]);
        assert!(Arc::ptr_eq(&same.unwrap(), &old));
        config.targets.remove(1);
        config.max_connections = 7;
        let new = SharedUpstream::replacing(Arc::new(config), &[Arc::clone(&old)]).unwrap();
        assert!(!Arc::ptr_eq(&new, &old));
        assert!(!new.gauges().targets[0].is_up);
    });
}

/// A resolver that knows what it is told.
#[derive(Debug, Default)]
struct ToldResolver(Mutex<Told>);

#[derive(Debug, Default)]
struct Told {
    addresses: Vec<SocketAddr>,
    n_lookups: usize,
}

impl ToldResolver {
    fn tell(&self, servers: &[&BytesServer]) {
        let address = |server: &&BytesServer| server.url["http://".len()..].parse().unwrap();
        self.0.lock().unwrap().addresses = servers.iter().map(address).collect();
    }

    fn n_lookups(&self) -> usize {
        self.0.lock().unwrap().n_lookups
    }
}

impl Resolver for ToldResolver {
    fn resolve(&self, host: &str, port: u16) -> ResolvedAddresses {
        assert_eq!((host, port), ("upstream.test", 80));
        let mut told = self.0.lock().unwrap();
        told.n_lookups += 1;
        let addresses = told.addresses.clone();
        Box::pin(async move {
            if addresses.is_empty() {
                return Err(io::Error::other("no answer"));
            }
            Ok(addresses)
        })
    }
}

fn named(resolver: &Arc<ToldResolver>) -> Arc<SharedUpstream> {
    let target = "http://upstream.test".parse().unwrap();
    let mut config = UpstreamConfig::new("named", vec![target]);
    config.resolve_interval = BRIEF;
    let resolver = Arc::clone(resolver) as Arc<dyn Resolver>;
    SharedUpstream::with_resolver(Arc::new(config), None, resolver).unwrap()
}

#[test]
fn a_name_is_looked_up_at_the_first_request_and_then_in_the_background() {
    run(async {
        let (first, second) = (numbered(1).await, numbered(2).await);
        let resolver = Arc::new(ToldResolver::default());
        let upstream = named(&resolver);
        let pool = pool();
        let error = pool.send(&upstream, get("/"), None).await.unwrap_err();
        assert!(matches!(error, ForwardError::ConnectFailed(_)), "{error:?}");
        // A name that is not found is not looked up for each request.
        assert!(pool.send(&upstream, get("/"), None).await.is_err());
        assert_eq!(resolver.n_lookups(), 1);

        let upstream = named(&resolver);
        resolver.tell(&[&first]);
        let counts = count_answers(&pool, &upstream, 3).await;
        assert_eq!(counts, HashMap::from([("1".to_owned(), 3)]));
        assert_eq!(resolver.n_lookups(), 2);

        let refreshing = spawn_local(Arc::clone(&upstream).run());
        let looked_up = async |resolver: &ToldResolver| {
            let n_before = resolver.n_lookups();
            while resolver.n_lookups() < n_before + 2 {
                yield_now().await;
            }
        };
        // The kept connection to an address that the name has no more is not used.
        resolver.tell(&[&second]);
        looked_up(&resolver).await;
        let counts = count_answers(&pool, &upstream, 3).await;
        assert_eq!(counts, HashMap::from([("2".to_owned(), 3)]));
        // A name server that is gone changes nothing.
        resolver.tell(&[]);
        looked_up(&resolver).await;
        let counts = count_answers(&pool, &upstream, 3).await;
        assert_eq!(counts, HashMap::from([("2".to_owned(), 3)]));
        assert_eq!(upstream.counters.connections.get(), 2);
        refreshing.abort();
    });
}

#[test]
fn all_addresses_of_a_name_are_used_in_turn_and_dead_ones_passed_over() {
    run(async {
        let closing = |number: usize| {
            BytesServer::start(move |mut connection| async move {
                connection.head().await;
                let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 1\r\n\r\n";
                connection.send(format!("{head}{number}")).await;
            })
        };
        let (first, second) = (closing(1).await, closing(2).await);
        let resolver = Arc::new(ToldResolver::default());
        let upstream = named(&resolver);
        resolver.tell(&[&first, &second]);
        let pool = pool();
        let counts = count_answers(&pool, &upstream, 10).await;
        let expected = [("1".to_owned(), 5), ("2".to_owned(), 5)];
        assert_eq!(counts, HashMap::from(expected));
        first.stop().await;
        let counts = count_answers(&pool, &upstream, 10).await;
        assert_eq!(counts, HashMap::from([("2".to_owned(), 10)]));
    });
}
