//! Upstreams: the servers behind the gateway, their connections and their health.
// STUB until the real one lands.
use crate::body::RequestBody;
use crate::config::{RetryConfig, UpstreamConfig};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
#[derive(Debug)]
pub(crate) struct SharedUpstream {
    pub(crate) config: Arc<UpstreamConfig>,
}
#[derive(Debug, thiserror::Error)]
#[error("x")]
pub struct UpstreamError;
impl SharedUpstream {
    pub(crate) fn replacing(
        config: Arc<UpstreamConfig>,
        _: &[Arc<Self>],
    ) -> Result<Arc<Self>, UpstreamError> {
        Ok(Arc::new(Self { config }))
    }
    pub(crate) async fn run(self: Arc<Self>) {}
}
#[derive(Debug)]
pub(crate) struct UpstreamPool;
#[derive(Debug)]
pub(crate) struct UpstreamBody(Incoming);
#[derive(Debug, thiserror::Error)]
#[error("x")]
pub(crate) struct UpstreamBodyError(hyper::Error);
#[derive(Debug, thiserror::Error)]
#[error("x")]
pub(crate) struct ForwardError;
impl ForwardError {
    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::BAD_GATEWAY
    }
}
impl UpstreamPool {
    pub(crate) fn new(_: NonZeroUsize) -> Self {
        Self
    }
    pub(crate) async fn send(
        &self,
        _: &Arc<SharedUpstream>,
        _: Request<RequestBody>,
        _: Option<&RetryConfig>,
    ) -> Result<Response<UpstreamBody>, ForwardError> {
        Err(ForwardError)
    }
}
impl Body for UpstreamBody {
    type Data = Bytes;
    type Error = UpstreamBodyError;
    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UpstreamBodyError>>> {
        Pin::new(&mut self.0)
            .poll_frame(cx)
            .map(|f| f.map(|f| f.map_err(UpstreamBodyError)))
    }
    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }
    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}
