//! Tests against real sockets: upstreams here speak bytes, hyper or h2, and misbehave on purpose.

mod bytes_server;
mod client_body;
mod http1;
mod http2;
mod opening;
mod race;
mod scarce;
mod targets;
mod tls;

use std::cell::Cell;
use std::num::NonZeroUsize;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use tokio::runtime::{Builder, LocalOptions};

use super::{ForwardError, SharedUpstream, UpstreamBody, UpstreamPool};
use crate::body::RequestBody;
use crate::config::{RetryConfig, TargetConfig, UpstreamConfig};

/// A response of HTTP/1.
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// Runs a test on a runtime like those of the gateway's threads.
fn run(test: impl Future<Output = ()>) {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
        .unwrap();
    runtime.block_on(test);
}

fn pool() -> UpstreamPool {
    UpstreamPool::new(NonZeroUsize::MIN)
}

fn one_target(url: &str) -> Arc<SharedUpstream> {
    upstream(&[url], |_| {})
}

fn upstream(targets: &[&str], change: impl FnOnce(&mut UpstreamConfig)) -> Arc<SharedUpstream> {
    let targets = targets
        .iter()
        .map(|target| target.parse::<TargetConfig>().unwrap());
    let mut config = UpstreamConfig::new("test", targets.collect());
    change(&mut config);
    SharedUpstream::new(Arc::new(config)).unwrap()
}

fn request(method: Method, path: &str) -> Request<RequestBody> {
    Request::builder()
        .method(method)
        .uri(path)
        .header("host", "upstream.test")
        .body(RequestBody::Empty)
        .unwrap()
}

fn get(path: &str) -> Request<RequestBody> {
    request(Method::GET, path)
}

impl UpstreamPool {
    /// An exchange of which nobody asks afterwards whether it reached a target.
    async fn send(
        &self,
        upstream: &Arc<SharedUpstream>,
        request: Request<RequestBody>,
        retry: Option<&RetryConfig>,
    ) -> Result<Response<UpstreamBody>, ForwardError> {
        let reached = Cell::default();
        let sent = self.exchange(upstream, request, retry, &reached).await;
        sent.map(|response| *response)
    }
}

async fn read(response: Response<UpstreamBody>) -> Bytes {
    response.into_body().collect().await.unwrap().to_bytes()
}
