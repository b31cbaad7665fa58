//! TLS and mTLS: who is let in.

use std::fs;
use std::time::Duration;

use tidegate_server::{ListenConfig, ServerConfig, TlsConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::harness::{LONG, Reply, Running, any_port, ask, post, scratch, try_ask, try_call};
use crate::pki::{Authority, Client, Identity};

/// Who vouches for the server, who for its clients, and a server that asks for both.
struct Scene {
    servers: Authority,
    clients: Authority,
    running: Running,
}

impl Scene {
    /// A server that lets in clients with one of these names.
    fn with_client_names(test: &str, names: &[&str]) -> Self {
        let (servers, clients) = (Authority::new(), Authority::new());
        let folder = scratch(test);
        let mut tls = servers.vouch_for(&["localhost"]).write(&folder);
        tls.client_ca = Some(folder.join("clients.crt"));
        tls.client_names = names.iter().map(|&name| name.to_owned()).collect();
        fs::write(folder.join("clients.crt"), clients.pem()).unwrap();
        let running = Running::start(secured(&tls));
        Self {
            servers,
            clients,
            running,
        }
    }

    /// Asks over HTTP; `None` if the client is not let in.
    async fn ask_as(&self, identity: Option<&Identity>) -> Option<Reply> {
        let client = Client {
            identity,
            ..self.servers.client()
        };
        try_over_http(&self.running, &client).await
    }
}

/// An HTTP and a gRPC listener with the same files.
fn secured(tls: &TlsConfig) -> ServerConfig {
    let listen = || ListenConfig {
        tls: Some(tls.clone()),
        ..any_port()
    };
    ServerConfig {
        http: vec![listen()],
        grpc: vec![listen()],
        ..ServerConfig::default()
    }
}

async fn try_over_http(running: &Running, client: &Client<'_>) -> Option<Reply> {
    let mut io = client.connect(running.connect(0).await).await?;
    try_ask(&mut io, &post()).await
}

#[tokio::test]
async fn both_protocols_are_spoken_inside() {
    let servers = Authority::new();
    let tls = servers.vouch_for(&["localhost"]).write(&scratch("inside"));
    let running = Running::start(secured(&tls));

    let client = servers.client();
    let mut io = client.connect(running.connect(0).await).await.unwrap();
    assert_eq!(io.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    assert_eq!(ask(&mut io, &post()).await.status, 200);
    // The connection is good for more than one request.
    assert_eq!(ask(&mut io, &post()).await.status, 200);

    let client = servers.client().speaking("h2");
    let io = client.connect(running.connect(1).await).await.unwrap();
    assert_eq!(io.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    assert_eq!(try_call(io).await.as_deref(), Some("0"));
}

#[tokio::test]
async fn what_speaks_another_protocol_is_turned_away() {
    let servers = Authority::new();
    let tls = servers.vouch_for(&["localhost"]).write(&scratch("another"));
    let running = Running::start(secured(&tls));
    let client = servers.client().speaking("h2");
    let http = client.connect(running.connect(0).await).await;
    assert!(http.is_none(), "h2 inside was taken for HTTP/1.1");
    // Without TLS there is no answer at all, and others are answered as before.
    let mut plain = running.connect(0).await;
    plain.write_all(post().as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    let _ = plain.read_to_end(&mut bytes).await;
    assert!(!bytes.starts_with(b"HTTP"), "{bytes:?}");
    let reply = try_over_http(&running, &servers.client()).await;
    assert_eq!(reply.unwrap().status, 200);
}

#[tokio::test]
async fn a_client_that_never_shakes_hands_is_given_up() {
    let servers = Authority::new();
    let mut tls = servers.vouch_for(&["localhost"]).write(&scratch("never"));
    tls.handshake_timeout = Duration::from_millis(50);
    let running = Running::start(secured(&tls));
    let mut silent = running.connect(0).await;
    let read = timeout(LONG, silent.read(&mut [0])).await;
    assert_eq!(read.expect("an end").unwrap_or(0), 0);
}

#[tokio::test]
async fn without_a_certificate_no_client_is_let_in() {
    let scene = Scene::with_client_names("without", &[]);
    assert_eq!(scene.ask_as(None).await, None);
    let stranger = Authority::new().vouch_for(&["envoy"]);
    assert_eq!(scene.ask_as(Some(&stranger)).await, None);
    let known = scene.clients.vouch_for(&["envoy"]);
    assert_eq!(scene.ask_as(Some(&known)).await.unwrap().status, 200);
}

#[tokio::test]
async fn grpc_clients_show_their_certificate_too() {
    let scene = Scene::with_client_names("grpc_too", &["envoy.mesh"]);
    let right = scene.clients.vouch_for(&["envoy.mesh"]);
    let wrong = scene.clients.vouch_for(&["other.mesh"]);
    for (identity, expected) in [(&right, Some("0")), (&wrong, None)] {
        let client = scene.servers.client().speaking("h2").with(identity);
        let status = match client.connect(scene.running.connect(1).await).await {
            Some(io) => try_call(io).await,
            None => None,
        };
        assert_eq!(status.as_deref(), expected);
    }
}

#[tokio::test]
async fn only_clients_of_the_right_name_are_let_in() {
    let names = [
        "envoy.prod.mesh",
        "10.0.0.7",
        "spiffe://mesh/ns/edge/sa/envoy",
    ];
    let scene = Scene::with_client_names("names", &names);
    let by = &scene.clients;
    for good in [
        by.vouch_for(&["other", "envoy.prod.mesh"]),
        by.vouch_for(&["*.prod.mesh"]),
        by.vouch_for(&["10.0.0.7"]),
        by.vouch_for_uri("spiffe://mesh/ns/edge/sa/envoy"),
    ] {
        assert_eq!(scene.ask_as(Some(&good)).await.unwrap().status, 200);
    }
    for bad in [
        by.vouch_for(&["prod.mesh"]),
        by.vouch_for(&["envoy.prod.mesh.evil"]),
        by.vouch_for(&["10.0.0.8"]),
        by.vouch_for_uri("spiffe://mesh/ns/edge/sa/envoy2"),
        by.vouch_for(&[]),
        // The right name, but nobody we know vouches for it.
        Authority::new().vouch_for(&["envoy.prod.mesh"]),
    ] {
        assert_eq!(scene.ask_as(Some(&bad)).await, None);
    }
}
