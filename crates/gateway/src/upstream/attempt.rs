//! One attempt on one connection: send, wait for the head of the response, and judge a failure.

use std::error::Error;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use h2::Reason;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use tokio::time::Instant;

use super::error::{ForwardError, Reached};
use super::http1::Http1Connection;
use super::http2::Http2Connection;
use super::lease::{ConnectionLease, LeasedChannel};
use super::local::LocalTarget;
use super::outgoing::{BodyLink, LinkState, OutgoingBody};
use super::timer::{TimerPool, now};
use super::wire::{prepare_http1, prepare_http2};

/// An attempt without a response.
#[derive(Debug)]
pub(super) struct FailedAttempt {
    pub(super) error: ForwardError,
    /// The request, if nothing of it was written.
    pub(super) returned: Option<Box<Request<OutgoingBody>>>,
    pub(super) repair: FreeRepair,
}

/// The repair of a failure that belongs to the protocol, not to the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FreeRepair {
    /// None: the target failed.
    None,
    /// A kept HTTP/1 connection was closed as the request was sent: the same target on a new connection.
    ClosedIdle,
    /// The target did not look at the stream: another target, or a connection of at least this number.
    Refused {
        /// The number.
        first_serial: u64,
    },
}

type SentRequest = Result<Response<Incoming>, TrySendError<Request<OutgoingBody>>>;

/// Sends a request and waits for the head of the response.
pub(super) async fn send(
    lease: &mut ConnectionLease,
    mut request: Box<Request<OutgoingBody>>,
    timers: &Rc<TimerPool>,
    leased_at: Instant,
) -> Result<Response<Incoming>, FailedAttempt> {
    let link = request.body().link().cloned();
    let link = link.as_deref();
    let (target, channel) = lease.parts();
    let wait = ResponseWait {
        target,
        link,
        timers,
    };
    match channel {
        LeasedChannel::Http1 {
            connection,
            is_reused,
        } => {
            prepare_http1(&mut request);
            let started = if *is_reused { leased_at } else { now() };
            match wait.run(connection.send(request), started).await {
                Some(Ok(response)) => Ok(response),
                Some(Err(failure)) => Err(judge_http1(failure, connection, *is_reused, link)),
                None => Err(ForwardError::ResponseTimedOut.into()),
            }
        }
        LeasedChannel::Http2(connection) => {
            prepare_http2(&mut request, &target.state.config)?;
            if let Some(link) = link {
                link.skip_continue();
            }
            match wait.run(connection.send(*request), now()).await {
                Some(Ok(response)) => Ok(response),
                Some(Err(failure)) => Err(judge_http2(failure, connection, target, link)),
                None => Err(ForwardError::ResponseTimedOut.into()),
            }
        }
        LeasedChannel::Upgraded(_) | LeasedChannel::Released => {
            Err(ForwardError::Unsendable.into())
        }
    }
}

/// The wait for the head of one response.
struct ResponseWait<'a> {
    target: &'a LocalTarget,
    link: Option<&'a BodyLink>,
    timers: &'a Rc<TimerPool>,
}

// === impl ResponseWait ===

impl ResponseWait<'_> {
    /// `None` if the target let the timeout pass, counted from the end of the request.
    async fn run(
        &self,
        sending: impl Future<Output = SentRequest>,
        started: Instant,
    ) -> Option<SentRequest> {
        let mut sending = pin!(sending);
        let mut timer = None;
        let timeout = self.target.config.timeouts.first_byte;
        poll_fn(|context| {
            if let Poll::Ready(sent) = sending.as_mut().poll(context) {
                return Poll::Ready(Some(sent));
            }
            let timer = timer.get_or_insert_with(|| self.timers.deadline(started + timeout));
            while timer.poll(context).is_ready() {
                let true_deadline = match self.link {
                    None => started + timeout,
                    // Slow clients have a timeout of their own.
                    Some(link) if link.state() == LinkState::WaitingForClient => now() + timeout,
                    Some(link) => link.progress_at() + timeout,
                };
                if true_deadline <= timer.is_set_to() {
                    return Poll::Ready(None);
                }
                timer.set(true_deadline);
            }
            Poll::Pending
        })
        .await
    }
}

// === impl FailedAttempt ===

impl From<ForwardError> for FailedAttempt {
    fn from(error: ForwardError) -> Self {
        Self {
            error,
            returned: None,
            repair: FreeRepair::None,
        }
    }
}

fn judge_http1(
    mut failure: TrySendError<Request<OutgoingBody>>,
    connection: &Http1Connection,
    is_reused: bool,
    link: Option<&BodyLink>,
) -> FailedAttempt {
    let returned = failure.take_message().map(Box::new);
    let source = failure.into_error();
    if let Some(LinkState::Failed(fault)) = link.map(BodyLink::state) {
        return ForwardError::RequestBodyFailed(fault).into();
    }
    let reached = match &returned {
        Some(_) => Reached::No,
        None if connection.was_read() => Reached::Yes,
        None => Reached::Maybe,
    };
    let repair = if is_reused && reached != Reached::Yes {
        FreeRepair::ClosedIdle
    } else {
        FreeRepair::None
    };
    FailedAttempt {
        error: ForwardError::Broken { source, reached },
        returned,
        repair,
    }
}

fn judge_http2(
    mut failure: TrySendError<Request<OutgoingBody>>,
    connection: &Http2Connection,
    target: &LocalTarget,
    link: Option<&BodyLink>,
) -> FailedAttempt {
    let returned = failure.take_message().map(Box::new);
    let source = failure.into_error();
    if let Some(LinkState::Failed(fault)) = link.map(BodyLink::state) {
        return ForwardError::RequestBodyFailed(fault).into();
    }
    if returned.is_some() || is_going_away(&source) {
        // Nothing can be sent on it any more.
        connection.drain();
    } else if !is_refused_stream(&source) {
        let reached = Reached::Maybe;
        return ForwardError::Broken { source, reached }.into();
    }
    FailedAttempt {
        error: ForwardError::Refused(source),
        returned,
        repair: FreeRepair::Refused {
            first_serial: target.next_serial().min(connection.serial + 1),
        },
    }
}

/// Whether the target refused a stream before it looked at it.
fn is_refused_stream(error: &hyper::Error) -> bool {
    h2_error(error).is_some_and(|error| {
        error.is_remote() && error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM)
    })
}

/// Whether the target closes the connection and has not looked at this stream: h2 fails those streams with it that the frame excludes.
/// A target that complains about us (`PROTOCOL_ERROR`, `ENHANCE_YOUR_CALM`) would do so again.
fn is_going_away(error: &hyper::Error) -> bool {
    h2_error(error).is_some_and(|error| {
        error.is_remote()
            && error.is_go_away()
            && matches!(
                error.reason(),
                Some(Reason::NO_ERROR | Reason::INTERNAL_ERROR)
            )
    })
}

fn h2_error(error: &hyper::Error) -> Option<&h2::Error> {
    error.source()?.downcast_ref()
}
