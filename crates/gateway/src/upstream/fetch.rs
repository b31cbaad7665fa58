//! One document from another server, for the gateway's own needs.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONNECTION, HOST, USER_AGENT};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::time::timeout;

use super::connect::ProtocolNeed;
use super::shared::SharedUpstream;
use super::timer::now;
use crate::config::{TargetConfig, UpstreamConfig, UpstreamProtocol};

/// A document that could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// No whole answer came in time.
    #[error("timeout")]
    TimedOut,
    /// The server answered, but not with the document.
    #[error("status {}", .0.as_u16())]
    Status(StatusCode),
    /// The connection could not be made or broke, the document is too large, or no certificates vouch for servers.
    #[error("{0}")]
    Failed(Box<dyn std::error::Error + Send + Sync>),
}

/// Fetches the document at `path`, of at most `max_bytes`, within `longest` in all. Redirects are not followed.
pub async fn fetch(
    target: TargetConfig,
    path: &str,
    max_bytes: usize,
    longest: Duration,
) -> Result<Bytes, FetchError> {
    let config = UpstreamConfig {
        protocol: UpstreamProtocol::Http1,
        ..UpstreamConfig::new("fetch", vec![target])
    };
    let upstream = SharedUpstream::new(Arc::new(config)).map_err(failed)?;
    let fetched = timeout(longest, get(&upstream, path, max_bytes, longest)).await;
    fetched.unwrap_or(Err(FetchError::TimedOut))
}

async fn get(
    upstream: &SharedUpstream,
    path: &str,
    max_bytes: usize,
    longest: Duration,
) -> Result<Bytes, FetchError> {
    let target = &upstream.targets[0];
    let opened = upstream
        .connector
        .open(target, ProtocolNeed::Any, 0, now() + longest);
    let opened = opened.await.map_err(failed)?;
    let request = Request::get(path)
        .header(HOST, target.config.authority())
        .header(USER_AGENT, "tidegate")
        .header(ACCEPT, "application/json")
        .header(CONNECTION, "close")
        .body(Empty::<Bytes>::new())
        .map_err(failed)?;
    let stream = TokioIo::new(opened.stream);
    let (mut sender, connection) = http1::handshake(stream).await.map_err(failed)?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(failed)?;
        if response.status() != StatusCode::OK {
            return Err(FetchError::Status(response.status()));
        }
        let body = Limited::new(response.into_body(), max_bytes)
            .collect()
            .await;
        Ok(body.map_err(FetchError::Failed)?.to_bytes())
    };
    tokio::pin!(exchange);
    tokio::select! {
        fetched = &mut exchange => fetched,
        // Its end says nothing that the exchange does not say too.
        _ = connection => exchange.await,
    }
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> FetchError {
    FetchError::Failed(Box::new(error))
}
