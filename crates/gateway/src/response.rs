//! The bodies of responses to clients.

mod sending;

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Sleep;

use self::sending::StreamSending;
use crate::connection::RequestGuard;
use crate::executor::StreamProgress;
use crate::piece::Piece;
use crate::upstream::{UpstreamBody, UpstreamBodyError};

/// The body of a response to a client. Its request is in progress until it is dropped.
#[derive(Debug)]
pub(crate) struct GatewayBody {
    source: BodySource,
    /// There over HTTP/2.
    sending: Option<Box<StreamSending>>,
}

/// The body of a response as it comes.
#[derive(Debug)]
struct BodySource {
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
        let content = Content::Own(Some(bytes).filter(|bytes| !bytes.is_empty()));
        Self::new(content, None, guard)
    }

    /// The body of an upstream's response.
    pub(crate) fn upstream(
        body: UpstreamBody,
        deadline: Option<Pin<Box<Sleep>>>,
        guard: RequestGuard,
    ) -> Self {
        Self::new(Content::Upstream(body), deadline, guard)
    }

    fn new(content: Content, deadline: Option<Pin<Box<Sleep>>>, guard: RequestGuard) -> Self {
        let progress = StreamProgress::of_this_task();
        Self {
            source: BodySource {
                content,
                deadline,
                guard,
            },
            sending: progress.map(|progress| Box::new(StreamSending::new(progress))),
        }
    }
}

impl Body for GatewayBody {
    type Data = Piece;
    type Error = GatewayBodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece>, GatewayBodyError>>> {
        let this = self.get_mut();
        if this.source.poll_deadline(context).is_ready() {
            return Poll::Ready(Some(Err(GatewayBodyError::TotalTimeout)));
        }
        if let Some(sending) = &mut this.sending {
            return sending.poll(&mut this.source, context);
        }
        let frame = ready!(this.source.poll(context));
        Poll::Ready(frame.map(|frame| Ok(frame?.map_data(Piece::http1))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.sending {
            Some(sending) => sending.is_at_end(&self.source),
            None => self.source.is_at_end(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source.content {
            Content::Own(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Content::Upstream(body) => body.size_hint(),
        }
    }
}

// === impl BodySource ===

impl BodySource {
    fn poll(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, GatewayBodyError>>> {
        let frame = match &mut self.content {
            Content::Own(bytes) => bytes.take().map(Frame::data).map(Ok),
            Content::Upstream(body) => ready!(Pin::new(body).poll_frame(context)),
        };
        Poll::Ready(frame.map(|frame| Ok(frame?)))
    }

    fn poll_deadline(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match &mut self.deadline {
            Some(deadline) => deadline.as_mut().poll(context),
            None => Poll::Pending,
        }
    }

    /// True if it is known that nothing more comes.
    fn is_at_end(&self) -> bool {
        match &self.content {
            Content::Own(bytes) => bytes.is_none(),
            Content::Upstream(body) => body.is_end_stream(),
        }
    }
}
