//! Envoy's rate limit service over gRPC, on `h2` directly.
//!
//! A call whose message has arrived and whose store does not wait is answered where it was accepted, with
//! no task and no allocation of its own; see `worker.rs`. Beside it stand `grpc.health.v1` and server
//! reflection. Errors become statuses in `status.rs`, and nowhere else.

mod answer;
mod call;
mod connection;
mod head;
mod health;
mod keepalive;
mod life;
mod memory;
mod message;
mod method;
mod reflection;
mod status;
mod timeout;
mod worker;

use std::sync::Arc;
use std::time::Duration;

use tidegate_gateway::ConnectionActivity;
use tidegate_limiter::Store;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::core_context::SharedCoreContext;
use crate::drain::Drain;
use crate::peer::Peer;

pub(crate) use memory::CallMemory;

/// What one gRPC connection is allowed.
#[derive(Clone, Copy, Debug)]
pub struct GrpcConfig {
    /// Bytes of a request message; a question with more is denied.
    pub max_message_bytes: u32,
    /// Bytes that the calls of all connections may hold while they wait for their clients; a question for which there are none left is
    /// denied.
    pub max_memory_bytes: usize,
    /// Calls under way at once.
    pub max_concurrent_calls: u32,
    /// Bytes of a call's headers, decompressed; more is answered with 431.
    pub max_header_bytes: u32,
    /// How long a client may take over its first words.
    pub handshake_timeout: Duration,
    /// How long a client may take over the message of a call; its own `grpc-timeout` may be shorter.
    pub call_timeout: Duration,
    /// How long a client may take nothing of an answer that waits for it, more than zero. One that reads
    /// but gives its answers no room may take twice as long.
    pub write_timeout: Duration,
    /// How long a connection may stay without a call, at least; at most two `write_timeout`s longer.
    pub idle_timeout: Duration,
    /// The time between two pings to a client; one that leaves a ping without an answer until the next is cut
    /// off. More than zero.
    pub keepalive_interval: Duration,
    /// After how long a connection is told to go, so that its client may find other servers.
    pub max_age: Option<Duration>,
    /// How long the calls of a connection that is told to go by its age may take to finish.
    pub age_grace: Duration,
}

/// Serves one connection until it closes, or until the drain has begun and its calls are answered.
pub(crate) async fn serve_connection<S, I>(
    io: I,
    peer: Peer,
    core: SharedCoreContext<S>,
    config: GrpcConfig,
    memory: Arc<CallMemory>,
    activity: Arc<ConnectionActivity>,
    drain: Drain,
) where
    S: Store + 'static,
    I: AsyncRead + AsyncWrite + Unpin + 'static,
{
    if let Some(h2) = connection::handshake(io, &config, Arc::clone(&activity)).await {
        connection::Connection::new(h2, peer, core, config, memory, activity, drain)
            .run()
            .await;
    }
}

// === impl GrpcConfig ===

impl Default for GrpcConfig {
    fn default() -> Self {
        Self {
            // As grpc-go has it, and so envoyproxy/ratelimit. Envoy copies what its clients send into
            // descriptors, as often as its config says, and lets pass what it cannot ask about.
            max_message_bytes: 4 * 1024 * 1024,
            max_memory_bytes: 256 * 1024 * 1024,
            // An Envoy worker has one connection, and a few hundred requests on their way at most.
            max_concurrent_calls: 1_024,
            max_header_bytes: 64 * 1024,
            handshake_timeout: Duration::from_secs(10),
            call_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(10),
            // Envoy keeps connections for an hour without use.
            idle_timeout: Duration::from_hours(2),
            keepalive_interval: Duration::from_mins(1),
            max_age: None,
            age_grace: Duration::from_mins(1),
        }
    }
}
