//! A small gRPC client of Envoy's rate limit service: one connection that is kept open.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use h2::client::{self, SendRequest};
use http::Request;
use prost::Message;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::plan::{self, PlannedRequest};
use crate::record::Answer;
use crate::rules::{DOMAIN, key};
use crate::scenario::{Interface, Scenario};

/// A connection to one node; opened when it is needed.
#[derive(Debug)]
pub struct GrpcConnection {
    runtime: Runtime,
    requests: Option<(SocketAddr, SendRequest<Bytes>)>,
}

#[derive(Message)]
struct RateLimitRequest {
    #[prost(string, tag = "1")]
    domain: String,
    #[prost(message, repeated, tag = "2")]
    descriptors: Vec<Descriptor>,
    #[prost(uint32, tag = "3")]
    hits_addend: u32,
}

#[derive(Message)]
struct Descriptor {
    #[prost(message, repeated, tag = "1")]
    entries: Vec<Entry>,
    #[prost(message, optional, tag = "2")]
    limit: Option<LimitOverride>,
}

#[derive(Message)]
struct Entry {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Message)]
struct LimitOverride {
    #[prost(uint32, tag = "1")]
    requests_per_unit: u32,
    #[prost(int32, tag = "2")]
    unit: i32,
}

#[derive(Message)]
struct RateLimitResponse {
    #[prost(int32, tag = "1")]
    overall_code: i32,
    #[prost(message, repeated, tag = "2")]
    statuses: Vec<DescriptorStatus>,
    /// A message of its own; only whether it names a field is looked at.
    #[prost(bytes = "vec", tag = "6")]
    dynamic_metadata: Vec<u8>,
}

#[derive(Message)]
struct DescriptorStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(uint32, tag = "3")]
    limit_remaining: u32,
}

/// The code of a request, or a descriptor, that is allowed.
const OK: i32 = 1;

/// No caller waits longer than this.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A message begins with one byte for its compression and four for its length.
const PREFIX: usize = 5;

// === impl GrpcConnection ===

impl GrpcConnection {
    /// A connection that is not open yet.
    pub fn new() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let requests = None;
        Ok(Self { runtime, requests })
    }

    /// Sends a request and waits for its answer. After an error the connection is gone.
    pub fn check(
        &mut self,
        address: SocketAddr,
        scenario: &Scenario,
        request: &PlannedRequest,
    ) -> io::Result<Answer> {
        let open = self.requests.take().filter(|(to, _)| *to == address);
        let open = open.map(|(_, requests)| requests);
        let message = message(scenario, request);
        let call = call(address, open, message, scenario.waits);
        let finished = self
            .runtime
            .block_on(async { timeout(TIMEOUT, call).await });
        let (response, requests) = finished.map_err(io::Error::other)??;
        self.requests = Some((address, requests));
        let judged = key(request.scenario, request.is_twin);
        let place = usize::from(scenario.own_limit.is_some());
        let status = response.statuses.get(place);
        let status = status.ok_or(io::ErrorKind::InvalidData)?;
        let metadata = String::from_utf8_lossy(&response.dynamic_metadata);
        Ok(Answer::of_limit(
            response.overall_code == OK,
            metadata.contains("degraded"),
            judged,
            (status.code == OK, u64::from(status.limit_remaining)),
        ))
    }
}

async fn call(
    address: SocketAddr,
    open: Option<SendRequest<Bytes>>,
    message: Bytes,
    waits: Option<f64>,
) -> io::Result<(RateLimitResponse, SendRequest<Bytes>)> {
    let requests = match open {
        Some(requests) => requests,
        None => connect(address).await?,
    };
    let mut head = Request::post(format!(
        "http://{address}/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
    ))
    .header("content-type", "application/grpc")
    .header("te", "trailers");
    if let Some(seconds) = waits {
        head = head.header("grpc-timeout", format!("{:.0}m", seconds * 1e3));
    }
    let head = head.body(()).map_err(io::Error::other)?;
    let mut requests = requests.ready().await.map_err(io::Error::other)?;
    let sent = requests.send_request(head, false);
    let (response, mut stream) = sent.map_err(io::Error::other)?;
    stream.send_data(message, true).map_err(io::Error::other)?;
    let mut body = response.await.map_err(io::Error::other)?.into_body();
    let mut bytes = BytesMut::new();
    while let Some(part) = body.data().await {
        let part = part.map_err(io::Error::other)?;
        let _ = body.flow_control().release_capacity(part.len());
        bytes.extend_from_slice(&part);
    }
    // A call that failed has trailers only.
    let message = bytes.get(PREFIX..).ok_or(io::ErrorKind::UnexpectedEof)?;
    let response = RateLimitResponse::decode(message).map_err(io::Error::other)?;
    Ok((response, requests))
}

async fn connect(address: SocketAddr) -> io::Result<SendRequest<Bytes>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (requests, connection) = client::handshake(stream).await.map_err(io::Error::other)?;
    tokio::spawn(connection);
    Ok(requests)
}

fn message(scenario: &Scenario, request: &PlannedRequest) -> Bytes {
    let judged = key(request.scenario, request.is_twin);
    let has_override = scenario.by == Interface::GrpcOverride;
    let descriptors = plan::descriptors(scenario, request).into_iter();
    let descriptors = descriptors.map(|(key, value)| Descriptor {
        limit: (has_override && key == judged).then_some(LimitOverride {
            requests_per_unit: scenario.limit.limit as u32,
            // A second or a minute.
            unit: if scenario.limit.window < 60.0 { 1 } else { 2 },
        }),
        entries: vec![Entry { key, value }],
    });
    let message = RateLimitRequest {
        domain: DOMAIN.to_owned(),
        descriptors: descriptors.collect(),
        hits_addend: request.cost,
    };
    let mut bytes = BytesMut::new();
    bytes.put_u8(0);
    bytes.put_u32(message.encoded_len() as u32);
    bytes.extend_from_slice(&message.encode_to_vec());
    bytes.freeze()
}
