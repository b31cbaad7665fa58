//! Clients that leave while their limits are decided: while those of a token are, after those of the address were charged, or before the only
//! answer of the store.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tidegate_gateway::{
    AccessConfig, DenialBody, EscapedSlashes, Gateway, GatewayConfig, HeaderEdits, RouteAction,
    RouteConfig, RouteMatch, UpstreamConfig,
};
use tidegate_identify::{
    AcceptedNames, ClientAddress, Identities, Recipe, Recipes, TokenKeys, TokenSettings,
    TokenVerifier,
};
use tidegate_limiter::{Decision, Limiter, LimiterConfig, Quota, RefundTo, Time};
use tidegate_rules::{CompileOptions, Source, compile};
use tidegate_server::{
    Address, AuthorizeConfig, CoreCount, Front, ListenConfig, Parts, Server, ServerConfig,
};
use tidegate_store::{
    Charge, Charging, Consistency, CounterKey, Cursor, Decisions, EmbeddedStore, Page, Receipt,
    Store, StoreConfig, StoreError,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::timeout;

/// Far more than anything here takes.
const LONG: Duration = Duration::from_mins(1);

const SECRET: [u8; 32] = [1; 32];

const RULES: &str = "
domain: gateway
descriptors:
  - key: address
    rate_limit: {unit: day, requests_per_unit: 10}
  - key: user
    rate_limit: {unit: day, requests_per_unit: 10}
  - key: card
    rate_limit: {unit: day, requests_per_unit: 3, count_status: [402]}
";

/// A store that stalls.
struct StallingStore {
    inner: EmbeddedStore,
    stall: Stall,
    n_charges: AtomicU64,
    signals: Arc<Signals>,
}

/// The answer that does not come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stall {
    /// The second charge is not made.
    Second,
    /// The first charge is made, and its answer comes when the client has left.
    AnswerToFirst,
}

/// The events that a test waits for.
#[derive(Default)]
struct Signals {
    stalled: Notify,
    released: Notify,
    refunded: Notify,
}

#[tokio::test]
async fn the_gateway_refunds_a_client_that_leaves_between_the_steps() {
    check(|addresses| addresses.gateway, "/").await;
}

#[tokio::test]
async fn authorize_refunds_a_proxy_that_leaves_between_the_steps() {
    check(|addresses| addresses.http, "/v1/authorize?domain=gateway").await;
}

/// The addresses of one server.
struct Addresses {
    http: SocketAddr,
    gateway: SocketAddr,
}

async fn check(front: impl Fn(&Addresses) -> SocketAddr, target: &str) {
    let signals = Arc::new(Signals::default());
    let addresses = start(Stall::Second, Arc::clone(&signals));
    let mut client = TcpStream::connect(front(&addresses)).await.unwrap();
    let token = token();
    let request =
        format!("GET {target} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    let stalled = timeout(LONG, signals.stalled.notified());
    stalled.await.expect("a second step");
    drop(client);
    let refunded = timeout(LONG, signals.refunded.notified());
    refunded.await.expect("a refund");
}

#[tokio::test]
async fn the_gateway_refunds_a_client_that_leaves_before_the_answer() {
    let signals = Arc::new(Signals::default());
    let addresses = start(Stall::AnswerToFirst, Arc::clone(&signals));
    let mut client = TcpStream::connect(addresses.gateway).await.unwrap();
    let request = b"GET / HTTP/1.1\r\nHost: a\r\nX-Card: c\r\n\r\n";
    client.write_all(request).await.unwrap();
    let stalled = timeout(LONG, signals.stalled.notified());
    stalled.await.expect("a charge");
    client.shutdown().await.unwrap();
    // The gateway has dropped the request once it has closed the connection.
    assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
    signals.released.notify_one();
    let refunded = timeout(LONG, signals.refunded.notified());
    refunded.await.expect("a refund");
}

/// A server with both fronts, which ends with the test.
fn start(stall: Stall, signals: Arc<Signals>) -> Addresses {
    let recipes = || match stall {
        Stall::Second => {
            let by_address = Recipe::new([("address", "client_address".parse().unwrap())]);
            let by_user = Recipe::new([("user", "claim:sub".parse().unwrap())]);
            Recipes::new(vec![by_address, by_user]).unwrap()
        }
        Stall::AnswerToFirst => {
            let by_card = Recipe::new([("card", "header:x-card".parse().unwrap())]);
            Recipes::new(vec![by_card]).unwrap()
        }
    };
    let any_port = || vec![ListenConfig::new(SocketAddr::from(([127, 0, 0, 1], 0)))];
    let cores = CoreCount::default();
    let gateway = Gateway::new(gateway_config(recipes()), cores.0).unwrap();
    let bind = ServerConfig {
        http: any_port(),
        gateway: any_port(),
        authorize: AuthorizeConfig {
            descriptors: recipes(),
            identities: Arc::new(ArcSwap::from_pointee(identities())),
            ..AuthorizeConfig::default()
        },
        cores,
        ..ServerConfig::default()
    };
    let server = Server::bind(bind).unwrap();
    let of_front = |front| {
        let bound = server.bound();
        let listener = bound.iter().find(|listener| listener.front == front);
        let Address::Tcp(address) = listener.unwrap().address else {
            panic!("an address of the network");
        };
        address
    };
    let addresses = Addresses {
        http: of_front(Front::Http),
        gateway: of_front(Front::Gateway),
    };
    let source = Source {
        name: "test.yaml".to_owned(),
        bytes: RULES.into(),
    };
    let Ok(compiled) = compile(&[source], &CompileOptions::default()) else {
        panic!("the rules are good");
    };
    let store = StallingStore {
        inner: EmbeddedStore::new(StoreConfig::default()),
        stall,
        n_charges: AtomicU64::new(0),
        signals,
    };
    let config = LimiterConfig::default();
    let parts = Parts {
        gateway: Some(Arc::new(gateway)),
        limiter: Arc::new(Limiter::new(store, compiled.rules, config)),
        observatory: Arc::default(),
        admin: None,
    };
    tokio::spawn(async move { server.run(&parts, async || pending().await).await.unwrap() });
    addresses
}

fn gateway_config(recipes: Recipes) -> GatewayConfig {
    // No request gets this far.
    let target = "http://127.0.0.1:9".parse().unwrap();
    GatewayConfig {
        domain: GatewayConfig::DOMAIN.to_owned(),
        routes: vec![RouteConfig {
            name: "all".to_owned(),
            matches: RouteMatch::default(),
            escaped_slashes: EscapedSlashes::Check,
            action: RouteAction::Forward {
                upstream: 0,
                rewrite: None,
            },
            descriptors: None,
            missing_token: None,
            require: Vec::new(),
            request_headers: HeaderEdits::default(),
            response_headers: HeaderEdits::default(),
            retry: None,
            max_body_bytes: None,
            total_timeout: None,
            websocket: None,
        }],
        upstreams: vec![Arc::new(UpstreamConfig::new("api", vec![target]))],
        descriptors: Arc::new(recipes),
        identities: Arc::new(identities()),
        client_address: ClientAddress::default(),
        access: AccessConfig::default(),
        cors: None,
        own_prefix: GatewayConfig::OWN_PREFIX.to_owned(),
        denial_body: DenialBody::Problem,
    }
}

fn identities() -> Identities {
    let settings = TokenSettings::new(AcceptedNames::Any, AcceptedNames::Any);
    let keys = TokenKeys::from_secret(&SECRET).unwrap();
    Identities::default().with_tokens(Arc::new(TokenVerifier::new(settings, keys)))
}

fn token() -> String {
    let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let header = encode(br#"{"alg":"HS256"}"#);
    let claims = encode(format!(r#"{{"sub":"ann","exp":{}}}"#, u64::MAX).as_bytes());
    let message = format!("{header}.{claims}");
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &SECRET);
    let signature = ring::hmac::sign(&key, message.as_bytes());
    format!("{message}.{}", encode(signature.as_ref()))
}

// === impl StallingStore ===

impl Store for StallingStore {
    async fn charge(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        let is_first = self.n_charges.fetch_add(1, Ordering::Relaxed) == 0;
        if is_first {
            let charged = self.inner.charge(charges, charging, decisions).await;
            if self.stall == Stall::AnswerToFirst {
                self.signals.stalled.notify_one();
                self.signals.released.notified().await;
            }
            return charged;
        }
        self.signals.stalled.notify_one();
        pending().await
    }

    async fn refund(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
        to: RefundTo,
        consistency: Consistency,
    ) -> Result<(), StoreError> {
        let refunded = self.inner.refund(key, quota, cost, to, consistency).await;
        self.signals.refunded.notify_one();
        refunded
    }

    async fn peek(&self, charge: &Charge<'_>) -> Result<Decision, StoreError> {
        self.inner.peek(charge).await
    }

    async fn reset(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        consistency: Consistency,
    ) -> Result<bool, StoreError> {
        self.inner.reset(key, quota, consistency).await
    }

    async fn now(&self) -> Result<Time, StoreError> {
        self.inner.now().await
    }

    async fn list(&self, cursor: Cursor, most: usize) -> Result<Page, StoreError> {
        self.inner.list(cursor, most).await
    }
}
