//! What the requests of one connection share, and how they ask.

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::HeaderMap;
use tidegate_limiter::{Descriptor, LimiterError, Store, Verdict};
use tidegate_observe::{LimiterRequest, TraceHeaders};
use tokio::time::timeout;

use super::HttpConfig;
use crate::answer::Refusal;
use crate::core_context::SharedCoreContext;
use crate::drain::Drain;
use crate::peer::Peer;

/// What the requests of one connection share.
pub(super) struct Visit<S> {
    pub(super) core: SharedCoreContext<S>,
    pub(super) peer: Peer,
    pub(super) config: HttpConfig,
    pub(super) drain: Drain,
}

// === impl Visit ===

impl<S> Visit<S> {
    /// Reads a whole body that is neither too large nor too slow.
    pub(super) async fn read(&self, body: Incoming) -> Result<Bytes, Refusal> {
        let max_bytes = self.config.max_body_bytes;
        let announced = body.size_hint().lower();
        if usize::try_from(announced).map_or(true, |announced| announced > max_bytes) {
            return Err(Refusal::BodyTooLarge { max_bytes });
        }
        let read = Limited::new(body, max_bytes).collect();
        let read = timeout(self.config.body_timeout, read).await;
        let collected = read.map_err(|_| Refusal::BodyTooSlow)?.map_err(|error| {
            if error.is::<LengthLimitError>() {
                Refusal::BodyTooLarge { max_bytes }
            } else {
                Refusal::BodyBroken
            }
        })?;
        Ok(collected.to_bytes())
    }
}

impl<S: Store> Visit<S> {
    /// Judges a request that came with `headers`, and writes down what came of it.
    pub(super) async fn check(
        &self,
        headers: &HeaderMap,
        domain: &str,
        descriptors: &[Descriptor<'_>],
        hits: u64,
    ) -> Result<Verdict, LimiterError> {
        let trace = if self.core.recorder.traces() {
            trace(headers)
        } else {
            TraceHeaders::default()
        };
        let request = LimiterRequest {
            domain,
            descriptors,
            hits,
            route: None,
            trace,
        };
        self.core.check(&request).await
    }
}

fn trace(headers: &HeaderMap) -> TraceHeaders<'_> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    TraceHeaders {
        traceparent: text("traceparent"),
        tracestate: text("tracestate"),
    }
}
