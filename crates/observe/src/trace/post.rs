//! One attempt to send one batch.

use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT};
use hyper::{Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::{TraceConfig, otlp};

/// The most bytes of an answer that are read.
const MAX_ANSWER: usize = 64 * 1024;

/// What became of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// It arrived, but for so many spans.
    Taken { n_rejected: u64 },
    /// It may be sent again, not before this long if the receiver said so.
    TryAgain { after: Option<Duration> },
    /// It will never be taken.
    Refused,
}

/// Why a batch did not arrive.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PostError {
    #[error("cannot connect")]
    Connect(#[source] std::io::Error),
    #[error("cannot speak http")]
    Http(#[from] hyper::Error),
    #[error("cannot write the request")]
    Request(#[from] hyper::http::Error),
    #[error("cannot read the answer")]
    Answer(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Sends one batch over a connection of its own: they are seconds apart, and nothing can go stale.
pub(crate) async fn post(config: &TraceConfig, body: Bytes) -> Result<Sent, PostError> {
    let authority = config.endpoint.authority();
    let stream = TcpStream::connect(authority)
        .await
        .map_err(PostError::Connect)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let mut request = hyper::Request::post(config.endpoint.path())
        .header(HOST, authority)
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, concat!("tidegate/", env!("CARGO_PKG_VERSION")));
    for header in &config.headers {
        request = request.header(&header.name, &header.value);
    }
    let request = request.body(Full::new(body))?;
    let exchange = async {
        let answer = sender.send_request(request).await?;
        // The connection ends when there is nobody left to ask.
        drop(sender);
        read(answer).await
    };
    let (sent, _) = tokio::join!(exchange, connection);
    sent
}

async fn read(answer: Response<hyper::body::Incoming>) -> Result<Sent, PostError> {
    let status = answer.status();
    let after = answer.headers().get(RETRY_AFTER);
    let after = after.and_then(|it| it.to_str().ok()?.parse().ok());
    let body = Limited::new(answer.into_body(), MAX_ANSWER);
    let body = body.collect().await.map_err(PostError::Answer)?.to_bytes();
    Ok(match status {
        _ if status.is_success() => {
            // An answer that says nothing we can read says that all is well.
            let response: otlp::Response = serde_json::from_slice(&body).unwrap_or_default();
            Sent::Taken {
                n_rejected: response.n_rejected(),
            }
        }
        // The statuses that OTLP lets one try again.
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => Sent::TryAgain {
            after: after.map(Duration::from_secs),
        },
        _ => Sent::Refused,
    })
}
