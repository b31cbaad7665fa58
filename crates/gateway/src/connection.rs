//! Connections of clients: the protocol is detected, heads and bodies are bounded, and the end of the server is observed.

mod activity;
mod detect;
mod http1;
mod memory;
mod per_address;
mod state;
mod stream;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::Pending;
use std::net::IpAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use http::{HeaderValue, Request, Response, Version};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tidegate_identify::Peer;
use tidegate_limiter::Store;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{MissedTickBehavior, interval};

use crate::body::ClientBody;
use crate::decision_wait::{DecidedRequest, DecisionWait};
use crate::executor::StreamExecutor;
use crate::forward::headers::forwarded_element;
use crate::response::GatewayBody;
use crate::thread::GatewayThread;
use crate::upgrade::Tunnel;

pub use activity::ConnectionActivity;
use detect::detect;
use memory::ConnectionMemory;
pub(crate) use memory::{HeldMemory, OutOfMemory, PieceCharge, StreamMemory};
pub use per_address::{AddressConnections, AddressPermit, client_network};
pub(crate) use state::{ConnectionState, RequestGuard};
use stream::BoundedStream;

/// A client's connection, as its listener knows it.
#[derive(Clone, Debug)]
pub struct ClientConnection {
    /// The other end.
    pub peer: Peer,
    /// True if the client speaks TLS.
    pub is_tls: bool,
    /// The protocol that TLS settled; without it, the first bytes tell.
    pub protocol: Option<ClientProtocol>,
    /// The subject of the client's certificate, which was verified.
    pub certificate: Option<Arc<str>>,
}

/// The end of the server, as the connections of its clients observe it.
pub trait ServerDrain {
    /// Ready once the server takes no connection any more. HTTP/2 connections and tunnels are told to go then.
    fn begun(&mut self) -> impl Future<Output = ()>;

    /// Ready once HTTP/1 connections that are idle close, and a request that had arrived by then can be read.
    fn closing(&mut self) -> impl Future<Output = ()>;
}

/// A version of HTTP that clients speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientProtocol {
    /// HTTP/1.1 or 1.0.
    Http1,
    /// HTTP/2.
    Http2,
}

/// All that the requests of one connection have in common.
pub(crate) struct ConnectionContext {
    /// The connection.
    pub(crate) client: ClientConnection,
    /// Its state, shared with its stream.
    pub(crate) state: Arc<ConnectionState>,
    /// The peer's address as `X-Forwarded-For` has it.
    pub(crate) peer_text: Option<HeaderValue>,
    /// The memory that its requests hold, if it speaks HTTP/2.
    memory: Option<Arc<ConnectionMemory>>,
    /// The last `Forwarded` that was made, with the host it names: a client seldom names another.
    forwarded: RefCell<Option<(Option<HeaderValue>, HeaderValue)>>,
    /// The tunnel that the connection becomes once its last request is answered.
    tunnel: RefCell<Option<Tunnel>>,
}

/// The window of an HTTP/2 stream: what a client may send before we have passed it on. As large as the default of the protocol.
const STREAM_WINDOW: u32 = 64 * 1024;

/// Bytes of one HTTP/2 stream that wait to be sent to a client.
const STREAM_SEND_BUFFER: usize = 64 * 1024;

/// Serves one connection until it closes. Once the server drains, an HTTP/1 connection closes after its next response, or when idle
/// connections do; an HTTP/2 connection is told to go, and its requests are answered.
pub async fn serve_connection<S, I>(
    mut io: I,
    client: ClientConnection,
    activity: Arc<ConnectionActivity>,
    thread: Rc<GatewayThread<S>>,
    mut drain: impl ServerDrain,
) where
    S: Store + 'static,
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let state = Arc::new(ConnectionState::new(activity));
    let bounds = &thread.bounds;
    let detected = tokio::select! {
        biased;
        detected = detect(&mut io, client.protocol, bounds.idle_timeout) => detected,
        () = drain.closing() => return,
    };
    // A client that closes, or is silent, before its first request is gone.
    let Some((protocol, first)) = detected else {
        return;
    };
    let peer_text = match client.peer {
        Peer::Address(address) => HeaderValue::from_str(&address.to_canonical().to_string()).ok(),
        Peer::Unix => None,
    };
    let memory = match protocol {
        ClientProtocol::Http1 => None,
        ClientProtocol::Http2 => {
            let all = Arc::clone(thread.gateway.stream_memory());
            let memory = ConnectionMemory::new(all, bounds.http2_memory_bytes);
            Some(Arc::new(memory))
        }
    };
    let context = Rc::new(ConnectionContext {
        client,
        state: Arc::clone(&state),
        peer_text,
        memory,
        forwarded: RefCell::default(),
        tunnel: RefCell::default(),
    });
    let (idle_timeout, head_timeout) = match protocol {
        ClientProtocol::Http1 => (bounds.idle_timeout, bounds.head_timeout),
        // An idle HTTP/2 connection is told to go first, by `idle` below, and its bytes are not always those of a head.
        ClientProtocol::Http2 => (bounds.idle_timeout * 3, bounds.idle_timeout * 3),
    };
    let stream = BoundedStream::new(io, first, state, idle_timeout, head_timeout);
    match protocol {
        ClientProtocol::Http1 => http1::serve(stream, context, thread, drain).await,
        // Boxed, so that an idle HTTP/1 connection has no room for it.
        ClientProtocol::Http2 => Box::pin(serve_http2(stream, context, thread, drain)).await,
    }
}

async fn serve_http2<S, I>(
    stream: BoundedStream<I>,
    context: Rc<ConnectionContext>,
    thread: Rc<GatewayThread<S>>,
    mut drain: impl ServerDrain,
) where
    S: Store + 'static,
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let bounds = thread.bounds.clone();
    let state = Arc::clone(&context.state);
    let service = service_fn(move |request: Request<Incoming>| {
        respond_when_decided(request, &thread, &context)
    });
    let executor = StreamExecutor {
        write_timeout: bounds.write_timeout,
    };
    let max_head_bytes = u32::try_from(bounds.max_head_bytes).unwrap_or(u32::MAX);
    let connection = http2::Builder::new(executor)
        .max_concurrent_streams(bounds.max_streams)
        .initial_stream_window_size(STREAM_WINDOW)
        // Wide enough that a stream whose upstream does not read leaves room for all others.
        .initial_connection_window_size(STREAM_WINDOW.saturating_mul(bounds.max_streams.max(1)))
        .max_header_list_size(max_head_bytes)
        .max_send_buf_size(STREAM_SEND_BUFFER)
        .timer(TokioTimer::new())
        .keep_alive_interval(bounds.keepalive_interval)
        .keep_alive_timeout(bounds.keepalive_interval)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let mut drain = pin!(polled_when_woken(drain.begun()));
    let mut idle = pin!(idle(&state, bounds.idle_timeout));
    tokio::select! {
        biased;
        _ = connection.as_mut() => return,
        () = drain.as_mut() => {}
        () = idle.as_mut() => {}
        () = state.exhausted() => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

/// The same future, polled only when it is woken: other things wake the task of a connection many times for each request.
async fn polled_when_woken(future: impl Future<Output = ()>) {
    let mut future = FuturesUnordered::from_iter([future]);
    future.next().await;
}

/// Ready once no request came for at least `timeout`, and at most for twice that.
async fn idle(state: &ConnectionState, timeout: Duration) {
    let mut ticks = interval(timeout);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await;
    let mut seen = state.n_requests();
    loop {
        ticks.tick().await;
        let now = state.n_requests();
        if now == seen && state.is_idle() {
            return;
        }
        seen = now;
    }
}

/// Responds to a request, which goes on until its limits are decided, also if it is dropped before.
fn respond_when_decided<S: Store + 'static>(
    request: Request<Incoming>,
    thread: &Rc<GatewayThread<S>>,
    context: &Rc<ConnectionContext>,
) -> impl Future<Output = Result<Response<GatewayBody>, Infallible>> + use<S> {
    let wait = Rc::<DecisionWait>::default();
    // `Box::pin` would copy all the room of the future, which is some thousand bytes, and not only the part that is in use.
    let room = Box::new_uninit();
    let (thread, context) = (Rc::clone(thread), Rc::clone(context));
    let response = respond(request, thread, context, Rc::clone(&wait));
    DecidedRequest::new(Box::into_pin(Box::write(room, response)), wait)
}

async fn respond<S: Store + 'static>(
    request: Request<Incoming>,
    thread: Rc<GatewayThread<S>>,
    context: Rc<ConnectionContext>,
    wait: Rc<DecisionWait>,
) -> Result<Response<GatewayBody>, Infallible> {
    let has_body = !request.body().is_end_stream();
    let mut guard = context.state.begin(thread.bounds.max_requests, has_body);
    // HTTP/2 has GOAWAY for this.
    if thread.is_leaving() && request.version() < Version::HTTP_2 {
        guard.is_last = true;
        context.state.linger();
    }
    let window = context.hold_memory(&request, has_body, &mut guard);
    let request = request.map(|incoming| ClientBody { incoming, window });
    Ok(thread.answer(request, &context, guard, &wait).await)
}

/// A server that never drains.
impl ServerDrain for Pending<()> {
    async fn begun(&mut self) {
        self.await;
    }

    async fn closing(&mut self) {
        self.await;
    }
}

// === impl ConnectionContext ===

impl ConnectionContext {
    /// The address of the peer, unless it is at a unix socket.
    pub(crate) fn peer_address(&self) -> Option<IpAddr> {
        match self.client.peer {
            Peer::Address(address) => Some(address.to_canonical()),
            Peer::Unix => None,
        }
    }

    /// Takes the memory of a request: that of its head for `guard`, and that of its window, if there is one, for its body.
    fn hold_memory(
        &self,
        request: &Request<Incoming>,
        has_body: bool,
        guard: &mut RequestGuard,
    ) -> Result<Option<HeldMemory>, OutOfMemory> {
        let Some(memory) = &self.memory else {
            return Ok(None);
        };
        let memory = memory.begin(request, has_body)?;
        guard.memory = Some(memory.head);
        Ok(memory.window)
    }

    /// Our element of `Forwarded` for a request to `host`.
    pub(crate) fn forwarded(&self, host: Option<&HeaderValue>) -> HeaderValue {
        let mut last = self.forwarded.borrow_mut();
        match &*last {
            Some((its_host, element)) if its_host.as_ref() == host => element.clone(),
            _ => {
                let element =
                    forwarded_element(self.peer_address(), host, Some(self.client.is_tls));
                // Copied: the client's value is a part of the buffer that its head was read into, and would keep all of it.
                let host = host.and_then(|host| HeaderValue::from_bytes(host.as_bytes()).ok());
                *last = Some((host, element.clone()));
                element
            }
        }
    }

    /// Makes the connection a tunnel once the response is sent.
    pub(crate) fn upgrade(&self, tunnel: Tunnel) {
        self.tunnel.replace(Some(tunnel));
    }
}
