//! The body of a response as it arrives.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use super::lease::{ConnectionLease, LeasedChannel};
use super::outgoing::{BodyLink, LinkState};
use super::timer::{DeadlineTimer, TimerPool, now};

/// The body of a response. At its end the connection goes back to the pool; dropped before, the exchange is broken off.
#[derive(Debug)]
pub(crate) struct UpstreamBody {
    incoming: Incoming,
    /// There until the end.
    lease: Option<ConnectionLease>,
    /// The request's body, which may still be on its way.
    link: Option<Rc<BodyLink>>,
    timers: Rc<TimerPool>,
    /// There while the next piece is waited for.
    timer: Option<DeadlineTimer>,
}

/// A response that ended before its time.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpstreamBodyError {
    /// The next piece took too long.
    #[error("response body timed out")]
    TimedOut,
    /// The connection broke.
    #[error("response body incomplete")]
    Broken(#[source] hyper::Error),
}

// === impl UpstreamBody ===

impl UpstreamBody {
    pub(super) fn new(
        incoming: Incoming,
        lease: ConnectionLease,
        link: Option<Rc<BodyLink>>,
        timers: &Rc<TimerPool>,
    ) -> Self {
        let mut body = Self {
            incoming,
            lease: Some(lease),
            link,
            timers: Rc::clone(timers),
            timer: None,
        };
        if body.incoming.is_end_stream() {
            body.finish();
        }
        body
    }

    /// The empty body of an upgrade, which holds the place of the connection.
    pub(super) fn of_upgrade(
        incoming: Incoming,
        mut lease: ConnectionLease,
        timers: &Rc<TimerPool>,
    ) -> Self {
        lease.detach();
        Self {
            incoming,
            lease: Some(lease),
            link: None,
            timers: Rc::clone(timers),
            timer: None,
        }
    }

    fn finish(&mut self) {
        self.timer = None;
        if let Some(link) = self.link.take() {
            link.stop();
        }
        if let Some(lease) = self.lease.take() {
            lease.finish();
        }
    }

    fn fail(&mut self, fault: UpstreamBodyError) -> UpstreamBodyError {
        let link = self.link.as_deref();
        // A client's body that fails ends the exchange too.
        let is_failed = link.is_some_and(|link| matches!(link.state(), LinkState::Failed(_)));
        // As before the head of the response: a target that waits for the client's body is not at fault.
        let is_of_target = !link.is_some_and(BodyLink::is_held_up_by_client);
        if let Some(lease) = self.lease.take()
            && !is_failed
        {
            let target = lease.target();
            target.counters.body_broken.add();
            if is_of_target {
                let settings = &target.config.passive_health;
                let health = &target.state.health;
                health.fail(&target.state.name, settings, now());
            }
        }
        self.finish();
        fault
    }

    /// Waits for the next piece, at most for the idle timeout.
    fn poll_timeout(&mut self, context: &mut Context<'_>) -> Poll<UpstreamBodyError> {
        let Some(lease) = &self.lease else {
            return Poll::Pending;
        };
        let timer = match &mut self.timer {
            Some(timer) => timer,
            empty => {
                let deadline = now() + lease.target().config.timeouts.idle;
                empty.insert(self.timers.deadline(deadline))
            }
        };
        timer.poll(context).map(|()| UpstreamBodyError::TimedOut)
    }
}

impl Body for UpstreamBody {
    type Data = Bytes;
    type Error = UpstreamBodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UpstreamBodyError>>> {
        let this = self.get_mut();
        let incoming = &mut this.incoming;
        let mut next = |context: &mut Context<'_>| Pin::new(&mut *incoming).poll_frame(context);
        let polled = match this.lease.as_mut().map(|lease| lease.parts().1) {
            Some(LeasedChannel::Http1 { connection, .. }) => connection.poll(context, next),
            _ => next(context),
        };
        let Poll::Ready(polled) = polled else {
            return this
                .poll_timeout(context)
                .map(|fault| Some(Err(this.fail(fault))));
        };
        this.timer = None;
        Poll::Ready(match polled {
            Some(Ok(frame)) => {
                if this.incoming.is_end_stream() {
                    this.finish();
                }
                Some(Ok(frame))
            }
            Some(Err(error)) => Some(Err(this.fail(UpstreamBodyError::Broken(error)))),
            None => {
                this.finish();
                None
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

impl Drop for UpstreamBody {
    fn drop(&mut self) {
        // Over HTTP/2 the request's body would go on without anybody who reads the response.
        if let Some(link) = self.link.take() {
            link.stop();
        }
    }
}
