//! One call, from its head to its trailers.

use std::cell::RefCell;

use bytes::{Bytes, BytesMut};
use h2::RecvStream;
use h2::server::SendResponse;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Request, Response};
use tidegate_limiter::Store;

use super::GrpcConfig;
use super::head::{Head, Method, Rejection};
use super::message::{Messages, framed};
use super::status::{self, Code, Status};
use super::timeout::within;
use crate::door::SharedDoor;
use crate::wire::Question;
use crate::wire::protobuf::write_response;

/// A call as it was accepted.
pub(super) type Call = (Request<RecvStream>, SendResponse<Bytes>);

/// What the calls of one connection share.
#[derive(Debug)]
pub(super) struct Office<S> {
    pub(super) door: SharedDoor<S>,
    pub(super) config: GrpcConfig,
    /// Where answers are written; once sent, the same memory is used again.
    pub(super) out: RefCell<BytesMut>,
}

/// Answers one call. A client that is gone meanwhile hears nothing, and nobody is told.
pub(super) async fn answer<S: Store>(call: Call, office: &Office<S>) {
    let (request, mut respond) = call;
    let (head, body) = request.into_parts();
    let head = match Head::read(&head) {
        Ok(head) => head,
        Err(Rejection::Http(status)) => return status::send_http(status, &mut respond),
        Err(Rejection::Grpc(status)) => return status.send(&mut respond),
    };
    let messages = Messages::new(body, office.config.max_message_bytes);
    let answered = match head.method {
        Method::ShouldRateLimit => {
            let most = office.config.call_timeout;
            let most = head.timeout.map_or(most, |timeout| timeout.min(most));
            within(most, office.should_rate_limit(messages)).await
        }
    };
    match answered {
        Some(Ok(message)) => send(message, &mut respond),
        Some(Err(status)) => status.send(&mut respond),
        None => Status::new(Code::DeadlineExceeded, "the deadline has passed").send(&mut respond),
    }
}

// === impl Office ===

impl<S: Store> Office<S> {
    async fn should_rate_limit(&self, mut messages: Messages) -> Result<Bytes, Status> {
        let message = messages.only().await?;
        let mut question = Question::default();
        question.read(&message)?;
        let verdict = self
            .door
            .check(question.domain, &question.descriptors(), question.hits())
            .await?;
        Ok(framed(&mut self.out.borrow_mut(), |out| {
            write_response(&verdict, &self.door.answers.headers, out);
        }))
    }
}

fn send(message: Bytes, respond: &mut SendResponse<Bytes>) {
    // With room for one, where an ordinary map begins with eight.
    let mut headers = HeaderMap::with_capacity(1);
    headers.insert(CONTENT_TYPE, status::GRPC);
    let mut response = Response::new(());
    *response.headers_mut() = headers;
    let Ok(mut stream) = respond.send_response(response, false) else {
        return;
    };
    if stream.send_data(message, false).is_ok() {
        let _ = stream.send_trailers(status::ok());
    }
}
