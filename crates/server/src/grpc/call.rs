//! One call, from its head to its trailers.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use h2::RecvStream;
use h2::server::SendResponse;
use http::{HeaderMap, HeaderValue, Request};
use tidegate_limiter::Store;
use tidegate_observe::{LimiterRequest, TraceHeaders};

use super::head::{Head, Rejection};
use super::memory::{AnswerBytes, ConnectionMemory};
use super::message::{Messages, framed};
use super::method::Method;
use super::status::{self, Code, Status};
use super::timeout::{less_margin, until};
use super::{GrpcConfig, answer, health, reflection};
use crate::core_context::SharedCoreContext;
use crate::drain::Drain;
use crate::wire::protobuf::{write_denial, write_response};
use crate::wire::{EscapedTexts, Question};
use crate::within::{timed_within, within};

/// A call as it was accepted.
pub(super) type Call = (Request<RecvStream>, SendResponse<AnswerBytes>);

/// What the calls of one connection share.
#[derive(Debug)]
pub(super) struct Office<S> {
    pub(super) core: SharedCoreContext<S>,
    pub(super) config: GrpcConfig,
    pub(super) drain: Drain,
    pub(super) memory: Rc<ConnectionMemory>,
    /// Those that arrived and were not looked at.
    pub(super) calls: RefCell<VecDeque<Call>>,
    /// Where answers are written; once sent, the same memory is used again.
    pub(super) out: RefCell<BytesMut>,
}

/// The trace that a call is part of, as its headers have it.
#[derive(Debug, Default)]
struct CallTrace {
    parent: Option<HeaderValue>,
    state: Option<HeaderValue>,
}

/// Answers one call. A client that is gone meanwhile hears nothing, and nobody is told.
pub(super) async fn answer<S: Store>(call: Call, office: &Office<S>) {
    let (request, mut respond) = call;
    let (parts, body) = request.into_parts();
    let head = match Head::read(&parts) {
        Ok(head) => head,
        Err(Rejection::Http(status)) => return status::send_http(status, &mut respond),
        Err(Rejection::Grpc(status)) => return status.send(&mut respond),
    };
    let trace = office.trace(&parts.headers);
    // A call may wait, and headers may be large.
    drop(parts);
    let max_bytes = office.config.max_message_bytes;
    let messages = Messages::new(body, max_bytes, &office.memory);
    let most = office.config.call_timeout;
    let most = head.timeout.map_or(most, |timeout| timeout.min(most));
    let answered = match head.method {
        Method::ShouldRateLimit => {
            let decided = office.should_rate_limit(messages, trace.headers(), most);
            Some(decided.await)
        }
        Method::HealthCheck => within(most, pin!(health::check(messages, office))).await,
        Method::HealthWatch => {
            let watch = pin!(health::watch(messages, &mut respond, office));
            return until(head.timeout, watch).await;
        }
        Method::Reflection => {
            let reflection = pin!(reflection::answer(messages, &mut respond, office));
            return until(head.timeout, reflection).await;
        }
    };
    match answered.unwrap_or_else(|| Err(Status::late())) {
        Ok(message) => answer::send(office.memory.answer(message), &mut respond),
        Err(status) => status.send(&mut respond),
    }
}

// === impl Office ===

impl<S: Store> Office<S> {
    /// Decides one question. Envoy lets a request pass if the call fails, so what a client of Envoy can bring about is denied
    /// instead: it chooses how long its headers are and how many of them become descriptors.
    async fn should_rate_limit(
        &self,
        messages: Messages<'_>,
        trace: TraceHeaders<'_>,
        most: Duration,
    ) -> Result<Bytes, Status> {
        match self.decide(messages, trace, most).await {
            Err(status) if status.code == Code::ResourceExhausted => {
                Ok(framed(&mut self.out.borrow_mut(), |out| {
                    write_denial(&status.message, out);
                }))
            }
            decided => decided,
        }
    }

    async fn decide(
        &self,
        mut messages: Messages<'_>,
        trace: TraceHeaders<'_>,
        most: Duration,
    ) -> Result<Bytes, Status> {
        let received = timed_within(most, pin!(messages.only())).await;
        let (message, waited) = received.ok_or_else(Status::late)?;
        let message = message.inspect_err(|status| {
            if status.code == Code::ResourceExhausted {
                self.core.recorder.malformed();
            }
        })?;
        let texts = EscapedTexts::default();
        let mut question = Question::default();
        question
            .read(&message, &texts)
            .inspect_err(|_| self.core.recorder.malformed())?;
        let request = LimiterRequest {
            domain: question.domain,
            descriptors: &question.descriptors(),
            hits: question.hits(),
            route: None,
            trace,
        };
        // The caller has waited since its headers.
        let left = less_margin(most).saturating_sub(waited);
        let verdict = self.core.check_within(&request, left).await?;
        Ok(framed(&mut self.out.borrow_mut(), |out| {
            write_response(&verdict, &self.core.answers, out);
        }))
    }

    /// The trace that the call is part of, looked up only if somebody wants to know.
    fn trace(&self, headers: &HeaderMap) -> CallTrace {
        if !self.core.recorder.traces() {
            return CallTrace::default();
        }
        CallTrace {
            parent: headers.get("traceparent").cloned(),
            state: headers.get("tracestate").cloned(),
        }
    }
}

// === impl CallTrace ===

impl CallTrace {
    fn headers(&self) -> TraceHeaders<'_> {
        fn text(header: Option<&HeaderValue>) -> Option<&str> {
            header?.to_str().ok()
        }
        TraceHeaders {
            traceparent: text(self.parent.as_ref()),
            tracestate: text(self.state.as_ref()),
        }
    }
}
