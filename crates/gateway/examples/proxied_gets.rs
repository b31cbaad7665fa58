//! Sends one GET after the other through a gateway, all in one thread, and says how many were answered: `proxied_gets limited 1000`,
//! or `unlimited`. The test of the instruction count runs it under callgrind.

use std::env;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;

use tidegate_answer::Headers;
use tidegate_gateway::{
    AccessConfig, ClientConnection, DenialBody, EscapedSlashes, Gateway, GatewayBounds,
    GatewayConfig, GatewayThread, HeaderEdits, RouteAction, RouteConfig, RouteMatch,
    UpstreamConfig, serve_connection,
};
use tidegate_identify::{
    ClientAddress, Grouping, Identities, Peer, Recipe, Recipes, Source as Identity,
};
use tidegate_limiter::{Limiter, LimiterConfig};
use tidegate_observe::Observatory;
use tidegate_rules::{CompileOptions, Source, compile};
use tidegate_store::{EmbeddedStore, StoreConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::task::{LocalSet, spawn_local};

type Fault = Box<dyn std::error::Error>;

const RULES: &str = "
domain: gateway
descriptors:
  - key: remote_address
    rate_limit: { unit: second, requests_per_unit: 1000000, algorithm: token_bucket }
";

const REQUEST: &[u8] = b"GET /api/things?page=2 HTTP/1.1\r\nHost: api.example\r\nUser-Agent: test\r\nAccept: */*\r\n\r\n";

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nServer: test\r\nDate: Tue, 17 Nov 2026 12:00:00 GMT\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok";

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (is_limited, n_gets) = match words[..] {
        ["limited", number] => (true, number.parse()),
        ["unlimited", number] => (false, number.parse()),
        _ => {
            eprintln!("usage: proxied_gets limited|unlimited NUMBER");
            return ExitCode::from(2);
        }
    };
    match n_gets
        .map_err(Fault::from)
        .and_then(|n_gets| run(is_limited, n_gets))
    {
        Ok(said) => println!("{said}"),
        Err(fault) => {
            eprintln!("{fault}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn run(is_limited: bool, n_gets: u64) -> Result<String, Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let local = LocalSet::new();
    let mut client = local.block_on(&runtime, start(is_limited))?;
    // The first ones open the connection to the upstream and make the counter.
    get_repeatedly(&runtime, &local, &mut client, 100)?;
    let n_answered = get_repeatedly(&runtime, &local, &mut client, n_gets)?;
    Ok(format!("{n_answered} of {n_gets} answered"))
}

/// The part that is measured: the tool counts from entering this function until it returns.
#[inline(never)]
fn get_repeatedly(
    runtime: &Runtime,
    local: &LocalSet,
    client: &mut TcpStream,
    n_gets: u64,
) -> Result<u64, Fault> {
    local.block_on(runtime, async {
        let mut n_answered = 0;
        let mut response = [0; 1024];
        for _ in 0..n_gets {
            client.write_all(REQUEST).await?;
            // Small responses over the loopback come in one piece.
            let n_bytes = client.read(&mut response).await?;
            let response = &response[..n_bytes];
            n_answered +=
                u64::from(response.starts_with(b"HTTP/1.1 200") && response.ends_with(b"ok"));
        }
        Ok(n_answered)
    })
}

/// Starts an upstream and a gateway, and connects to it.
async fn start(is_limited: bool) -> Result<TcpStream, Fault> {
    let upstream = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let config = config(upstream.local_addr()?, is_limited)?;
    spawn_local(respond(upstream));
    let source = Source {
        name: "test.yaml".to_owned(),
        bytes: RULES.into(),
    };
    let compiled = compile(&[source], &CompileOptions::default());
    let rules = compiled.map_err(|_| "the rules are not good")?.rules;
    let store = EmbeddedStore::new(StoreConfig::default());
    let limiter = Arc::new(Limiter::new(store, rules, LimiterConfig::default()));
    let thread = Rc::new(GatewayThread::new(
        Arc::new(Gateway::new(config, NonZeroUsize::MIN)?),
        limiter,
        Rc::new(Arc::new(Observatory::default()).recorder()),
        Headers::default(),
        GatewayBounds::default(),
    ));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let client = TcpStream::connect(listener.local_addr()?).await?;
    client.set_nodelay(true)?;
    let (stream, peer) = listener.accept().await?;
    stream.set_nodelay(true)?;
    let peer = Peer::Address(peer.ip());
    let connection = ClientConnection {
        peer,
        is_tls: false,
        protocol: None,
        certificate: None,
    };
    spawn_local(serve_connection(
        stream,
        connection,
        Arc::default(),
        thread,
        std::future::pending(),
    ));
    Ok(client)
}

/// Answers each request on each connection the same.
async fn respond(listener: TcpListener) {
    while let Ok((mut stream, _)) = listener.accept().await {
        spawn_local(async move {
            let mut request = [0; 4096];
            while let Ok(1..) = stream.read(&mut request).await {
                if stream.write_all(RESPONSE).await.is_err() {
                    break;
                }
            }
        });
    }
}

/// One route to one upstream, and one descriptor or none.
fn config(upstream: SocketAddr, is_limited: bool) -> Result<GatewayConfig, Fault> {
    let target = format!("http://{upstream}").parse()?;
    let source = if is_limited {
        Identity::ClientAddress(Grouping::DEFAULT)
    } else {
        Identity::Header("x-nobody".to_owned())
    };
    let descriptors = Recipes::new(vec![Recipe::new([("remote_address", source)])])?;
    let route = RouteConfig {
        name: "all".to_owned(),
        matches: RouteMatch::default(),
        action: RouteAction::Forward {
            upstream: 0,
            rewrite: None,
        },
        escaped_slashes: EscapedSlashes::Check,
        descriptors: None,
        missing_token: None,
        require: Vec::new(),
        request_headers: HeaderEdits::default(),
        response_headers: HeaderEdits::default(),
        retry: None,
        max_body_bytes: None,
        total_timeout: None,
        websocket: None,
    };
    Ok(GatewayConfig {
        domain: GatewayConfig::DOMAIN.to_owned(),
        routes: vec![route],
        upstreams: vec![Arc::new(UpstreamConfig::new("api", vec![target]))],
        descriptors: Arc::new(descriptors),
        identities: Arc::new(Identities::default()),
        client_address: ClientAddress::default(),
        access: AccessConfig::default(),
        cors: None,
        own_prefix: GatewayConfig::OWN_PREFIX.to_owned(),
        denial_body: DenialBody::Problem,
    })
}
