//! Envoy's rate limit service over gRPC, on `h2` directly.

use std::time::Duration;

use tidegate_limiter::Store;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::door::{Peer, SharedDoor};
use crate::drain::Drain;

/// What one gRPC connection is allowed.
#[derive(Clone, Copy, Debug)]
pub struct GrpcConfig {
    /// Bytes of a request message.
    pub max_message_bytes: usize,
    /// How long a connection may stay without a call.
    pub idle_timeout: Duration,
}

/// Serves one connection until it closes, or until the drain has begun and its calls are answered.
pub(crate) async fn serve_connection<S, I>(
    io: I,
    peer: Peer,
    door: SharedDoor<S>,
    config: GrpcConfig,
    drain: Drain,
) where
    S: Store + 'static,
    I: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let _ = (io, peer, door, config, drain);
}
