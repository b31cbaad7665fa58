//! The answer to a call, as it is sent.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;

use bytes::Bytes;
use h2::SendStream;
use h2::server::SendResponse;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Response};

use super::call::Office;
use super::memory::{AnswerBytes, ConnectionMemory};
use super::status::{self, Status};
use crate::within::within;

/// An answer of any number of messages.
#[derive(Debug)]
pub(super) struct Answer(SendStream<AnswerBytes>);

/// The client is not there any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gone;

/// Sends an answer of one message. It is small, and waits in h2 for room.
pub(super) fn send(message: AnswerBytes, respond: &mut SendResponse<AnswerBytes>) {
    if let Some(Answer(mut stream)) = Answer::begin(respond)
        && stream.send_data(message, false).is_ok()
    {
        let _ = stream.send_trailers(status::ok());
    }
}

// === impl Answer ===

impl Answer {
    /// Begins an answer, unless the client is gone.
    pub(super) fn begin(respond: &mut SendResponse<AnswerBytes>) -> Option<Self> {
        // With room for one, where an ordinary map begins with eight.
        let mut headers = HeaderMap::with_capacity(1);
        headers.insert(CONTENT_TYPE, status::GRPC);
        let mut response = Response::new(());
        *response.headers_mut() = headers;
        respond.send_response(response, false).ok().map(Self)
    }

    /// Sends a message when the client has room for it, so that a client that does not read is sent no more. A client that has no room
    /// for longer than the write timeout is gone.
    pub(super) async fn send<S>(&mut self, message: Bytes, office: &Office<S>) -> Result<(), Gone> {
        let send = pin!(self.send_pieces(message, &office.memory));
        let sent = within(office.config.write_timeout, send).await;
        sent.unwrap_or(Err(Gone))
    }

    async fn send_pieces(
        &mut self,
        mut message: Bytes,
        memory: &Rc<ConnectionMemory>,
    ) -> Result<(), Gone> {
        while !message.is_empty() {
            self.0.reserve_capacity(message.len());
            let room = match self.0.capacity() {
                0 => poll_fn(|context| self.0.poll_capacity(context)).await,
                room => Some(Ok(room)),
            };
            let room = room.and_then(Result::ok).ok_or(Gone)?;
            let piece = message.split_to(room.min(message.len()));
            let piece = memory.answer(piece);
            self.0.send_data(piece, false).map_err(|_| Gone)?;
        }
        Ok(())
    }

    /// Ends the answer.
    pub(super) fn end(mut self, status: &Status) {
        let mut trailers = HeaderMap::new();
        status.write(&mut trailers);
        let _ = self.0.send_trailers(trailers);
    }

    /// Waits for `event`, unless the client takes back its call or goes away before.
    pub(super) async fn unless_gone(
        &mut self,
        event: impl Future<Output = ()>,
    ) -> Result<(), Gone> {
        tokio::select! {
            () = event => Ok(()),
            _ = poll_fn(|context| self.0.poll_reset(context)) => Err(Gone),
        }
    }
}
