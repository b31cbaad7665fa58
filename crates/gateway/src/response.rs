//! The bodies of responses to clients.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Sleep;

use crate::connection::RequestGuard;
use crate::executor::{piece_handed_over, piece_wanted};
use crate::upstream::{UpstreamBody, UpstreamBodyError};

/// The body of a response to a client. Its request is in progress until it is dropped.
#[derive(Debug)]
pub(crate) struct GatewayBody {
    content: Content,
    /// The end of the time that the request may take in all.
    deadline: Option<Pin<Box<Sleep>>>,
    guard: RequestGuard,
}

#[derive(Debug)]
enum Content {
    /// A body of our own, until it is taken.
    Own(Option<Bytes>),
    Upstream(UpstreamBody),
}

/// The fault that cuts a response short.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GatewayBodyError {
    #[error(transparent)]
    Upstream(#[from] UpstreamBodyError),
    #[error("request timed out")]
    TotalTimeout,
}

// === impl GatewayBody ===

impl GatewayBody {
    /// A body of our own.
    pub(crate) fn own(bytes: Bytes, guard: RequestGuard) -> Self {
        // Without a window, hyper never asks for the body: the time of the client begins here.
        piece_handed_over();
        let content = Content::Own(Some(bytes).filter(|bytes| !bytes.is_empty()));
        Self {
            content,
            deadline: None,
            guard,
        }
    }

    /// The body of an upstream's response.
    pub(crate) fn upstream(
        body: UpstreamBody,
        deadline: Option<Pin<Box<Sleep>>>,
        guard: RequestGuard,
    ) -> Self {
        piece_handed_over();
        Self {
            content: Content::Upstream(body),
            deadline,
            guard,
        }
    }
}

impl Body for GatewayBody {
    type Data = Bytes;
    type Error = GatewayBodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, GatewayBodyError>>> {
        let this = self.get_mut();
        if let Some(deadline) = &mut this.deadline
            && deadline.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(Some(Err(GatewayBodyError::TotalTimeout)));
        }
        let memory = this.guard.memory.as_ref();
        if let Some(memory) = memory {
            ready!(memory.poll_piece(context));
        }
        let frame = match &mut this.content {
            Content::Own(bytes) => bytes.take().map(Frame::data).map(Ok),
            Content::Upstream(body) => {
                piece_wanted();
                ready!(Pin::new(body).poll_frame(context))
            }
        };
        if let Some(Ok(_)) = frame {
            piece_handed_over();
        }
        let charge = |bytes| match memory {
            Some(memory) => memory.charge_piece(bytes),
            None => bytes,
        };
        Poll::Ready(frame.map(|frame| Ok(frame?.map_data(charge))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Own(bytes) => bytes.is_none(),
            Content::Upstream(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Own(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Content::Upstream(body) => body.size_hint(),
        }
    }
}
