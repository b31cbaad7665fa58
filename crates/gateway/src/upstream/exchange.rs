//! One request and its response: the choice of a target, attempts, retries.
//!
//! Two kinds of failure are repaired once, on a new connection, without being asked for and without a budget, because they belong to
//! the protocols and not to the target:
//! - HTTP/1: a kept connection that the target closes just as a request is sent. Nothing of a response was read, and either
//!   nothing of the request was written, or the method is idempotent and the body replayable.
//! - HTTP/2: a stream that the target says it has not looked at (`REFUSED_STREAM`, or a `GOAWAY` that excludes it), whatever the method.
//!
//! All other retries are those that a route asks for, within the budget: for idempotent methods with a replayable body. A body is
//! replayable as long as all that was read of it is kept: see [`BodyLink`].

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use http::header::UPGRADE;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;

use super::attempt::{FailedAttempt, FreeRepair, send};
use super::body::UpstreamBody;
use super::connect::ProtocolNeed;
use super::error::{ForwardError, Reached};
use super::lease::{ConnectionLease, LeasedChannel};
use super::local::Freshness;
use super::outgoing::{BodyLink, LinkState, OutgoingBody};
use super::pool::LocalUpstream;
use super::shared::{SharedUpstream, TriedTargets};
use super::timer::{TimerPool, now};
use super::wire::HeadCopy;
use crate::config::{RetryConfig, RetryOn};

/// One request on its way.
#[derive(Debug)]
pub(super) struct Exchange<'a> {
    upstream: &'a Arc<SharedUpstream>,
    local: &'a LocalUpstream,
    timers: &'a Rc<TimerPool>,
    retry: Option<&'a RetryConfig>,
    attempts_left: u32,
    has_free_repair: bool,
    tried: TriedTargets,
    /// The target of the next attempt, where it is not chosen.
    pinned: Option<usize>,
    /// A target whose next connection must be new.
    fresh: Option<(usize, Freshness)>,
    /// The knowledge whether any attempt has reached a target, for the side that charged the request.
    reached: &'a Cell<Reached>,
}

/// A copy of a request, made before it was sent.
#[derive(Debug)]
struct SpareRequest {
    head: HeadCopy,
    link: Option<Rc<BodyLink>>,
    is_idempotent: bool,
}

/// The end of one attempt.
enum AttemptEnd {
    Response(Box<Response<UpstreamBody>>),
    Again(Box<Request<OutgoingBody>>),
}

// === impl Exchange ===

impl<'a> Exchange<'a> {
    pub(super) fn new(
        upstream: &'a Arc<SharedUpstream>,
        local: &'a LocalUpstream,
        timers: &'a Rc<TimerPool>,
        retry: Option<&'a RetryConfig>,
        reached: &'a Cell<Reached>,
    ) -> Self {
        Self {
            upstream,
            local,
            timers,
            retry,
            attempts_left: retry.map_or(0, |retry| retry.attempts),
            has_free_repair: true,
            tried: TriedTargets::new(),
            pinned: None,
            fresh: None,
            reached,
        }
    }

    pub(super) async fn run(
        mut self,
        mut request: Box<Request<OutgoingBody>>,
    ) -> Result<Box<Response<UpstreamBody>>, ForwardError> {
        self.upstream.counters.requests.add();
        if let Some(retry) = self.retry {
            self.upstream.budget.deposit(retry.budget_percent);
        }
        loop {
            match self.attempt(request).await? {
                AttemptEnd::Response(response) => return Ok(response),
                AttemptEnd::Again(again) => request = again,
            }
            self.upstream.counters.retries.add();
        }
    }

    async fn attempt(
        &mut self,
        request: Box<Request<OutgoingBody>>,
    ) -> Result<AttemptEnd, ForwardError> {
        let started = now();
        let index = match self.pinned.take() {
            Some(index) => index,
            None => self
                .upstream
                .choose(&self.local.balance, &self.tried, started)
                .inspect_err(|error| self.upstream.counters.add_failure(error))?,
        };
        let freshness = match self.fresh {
            Some((fresh, freshness)) if fresh == index => freshness,
            _ => Freshness::Any,
        };
        let need = if request.headers().contains_key(UPGRADE) {
            ProtocolNeed::Http1
        } else {
            ProtocolNeed::Any
        };
        let target = &self.local.targets[index];
        let mut lease = match target.lease(need, freshness, started).await {
            Ok(lease) => lease,
            Err(error) => return self.after_failed_connect(index, error, request),
        };
        let link = request.body().link().cloned();
        let spare = self.spare(&request, link.as_ref(), lease.parts().1);
        if let (Some(link), None) = (&link, &spare) {
            link.forget_bytes();
        }
        // From here on a request that is dropped may have reached the target.
        let reached_before = self.reached.replace(Reached::Maybe);
        match send(&mut lease, request, self.timers, started).await {
            Ok(response) => Ok(self.after_response(index, response, lease, link, spare)),
            Err(failed) => {
                drop(lease);
                if failed.error.was_reached() == Reached::No {
                    self.reached.set(reached_before);
                }
                self.after_failure(index, failed, link.as_deref(), spare)
            }
        }
    }

    /// Copies the request where a failure could be followed by another attempt.
    fn spare(
        &self,
        request: &Request<OutgoingBody>,
        link: Option<&Rc<BodyLink>>,
        channel: &LeasedChannel,
    ) -> Option<SpareRequest> {
        let is_idempotent = request.method().is_idempotent();
        let is_wanted = match channel {
            LeasedChannel::Http1 { is_reused, .. } => {
                is_idempotent && (*is_reused || self.attempts_left > 0)
            }
            LeasedChannel::Http2(_) => true,
            LeasedChannel::Upgraded(_) | LeasedChannel::Released => false,
        };
        is_wanted.then(|| SpareRequest {
            head: HeadCopy::of(request),
            link: link.cloned(),
            is_idempotent,
        })
    }

    fn after_response(
        &mut self,
        index: usize,
        response: Response<Incoming>,
        lease: ConnectionLease,
        link: Option<Rc<BodyLink>>,
        spare: Option<SpareRequest>,
    ) -> AttemptEnd {
        let target = &lease.target().state;
        target.health.succeed(&target.name);
        let status = response.status();
        let again = spare.filter(|spare| spare.is_idempotent && spare.is_replayable());
        if let Some(spare) = again
            && self.may_retry(RetryOn::Status(status))
        {
            // Without the link, because the end of the response would stop the request's body.
            let is_sent = link.is_none_or(|link| link.state() == LinkState::Ended);
            if is_sent {
                drop(response.map(|it| UpstreamBody::new(it, lease, None, self.timers)));
            }
            self.tried.push(index);
            return AttemptEnd::Again(spare.into_request());
        }
        if let Some(link) = &link {
            link.forget_bytes();
        }
        let response = response.map(|incoming| {
            if status == StatusCode::SWITCHING_PROTOCOLS {
                UpstreamBody::of_upgrade(incoming, lease, self.timers)
            } else {
                UpstreamBody::new(incoming, lease, link, self.timers)
            }
        });
        AttemptEnd::Response(Box::new(response))
    }

    fn after_failed_connect(
        &mut self,
        index: usize,
        error: ForwardError,
        request: Box<Request<OutgoingBody>>,
    ) -> Result<AttemptEnd, ForwardError> {
        // For the health of the target, the opening of the connection has counted.
        self.upstream.counters.add_failure(&error);
        let is_of_target = !matches!(error, ForwardError::PoolExhausted);
        if is_of_target && self.may_retry(RetryOn::Connect) {
            self.tried.push(index);
            return Ok(AttemptEnd::Again(request));
        }
        Err(error)
    }

    fn after_failure(
        &mut self,
        index: usize,
        failed: FailedAttempt,
        link: Option<&BodyLink>,
        spare: Option<SpareRequest>,
    ) -> Result<AttemptEnd, ForwardError> {
        let FailedAttempt {
            error,
            returned,
            repair,
        } = failed;
        let is_broken = matches!(
            error,
            ForwardError::Broken { .. } | ForwardError::Refused(_)
        );
        // A request of which nothing was written is as good as never sent; else its copy must be allowed to take its place.
        let again = match (returned, spare) {
            (Some(request), _) => Some(request),
            (None, Some(spare)) if spare.fits(repair) => Some(spare.into_request()),
            (None, _) => None,
        };
        let again = again.filter(|_| is_broken);
        let is_repaired = again.is_some() && repair != FreeRepair::None && self.has_free_repair;
        if is_repaired {
            self.has_free_repair = false;
            self.plan(index, repair);
        } else {
            self.count_failure(index, &error, link);
        }
        match again {
            Some(request) if is_repaired => Ok(AttemptEnd::Again(request)),
            Some(request) if self.may_retry(RetryOn::Reset) => {
                self.tried.push(index);
                Ok(AttemptEnd::Again(request))
            }
            _ => Err(error),
        }
    }

    fn plan(&mut self, index: usize, repair: FreeRepair) {
        match repair {
            FreeRepair::None => {}
            FreeRepair::ClosedIdle => {
                self.pinned = Some(index);
                self.fresh = Some((index, Freshness::New(0)));
            }
            FreeRepair::Refused { first_serial } => {
                self.tried.push(index);
                self.fresh = Some((index, Freshness::New(first_serial)));
            }
        }
    }

    /// Whether the route asks for this retry and the budget allows it.
    fn may_retry(&mut self, on: RetryOn) -> bool {
        let is_asked_for = self.retry.is_some_and(|retry| retry.on.contains(&on));
        if !is_asked_for || self.attempts_left == 0 {
            return false;
        }
        if !self.upstream.budget.withdraw() {
            self.upstream.counters.retries_denied.add();
            return false;
        }
        self.attempts_left -= 1;
        true
    }

    fn count_failure(&self, index: usize, error: &ForwardError, link: Option<&BodyLink>) {
        self.upstream.counters.add_failure(error);
        let is_of_target = matches!(
            error,
            ForwardError::ResponseTimedOut | ForwardError::Broken { .. }
        );
        // A target that gives up on a client which does not send its body is not at fault.
        if is_of_target && !link.is_some_and(BodyLink::is_held_up_by_client) {
            let target = &self.upstream.targets[index];
            let settings = &self.upstream.config.passive_health;
            target.health.fail(&target.name, settings, now());
        }
    }
}

// === impl SpareRequest ===

impl SpareRequest {
    /// True if all that was read of the body is kept.
    fn is_replayable(&self) -> bool {
        self.link.as_ref().is_none_or(|link| link.is_replayable())
    }

    /// Whether it may be sent after a failure of this kind.
    fn fits(&self, repair: FreeRepair) -> bool {
        // A target that refuses a request says that it did nothing.
        let is_harmless = self.is_idempotent || matches!(repair, FreeRepair::Refused { .. });
        is_harmless && self.is_replayable()
    }

    fn into_request(self) -> Box<Request<OutgoingBody>> {
        let body = self
            .link
            .map_or(OutgoingBody::Empty, |link| link.begin_again());
        Box::new(self.head.into_request(body))
    }
}
