//! All connections of one thread to upstreams.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::iter;
use std::num::NonZeroUsize;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use http::{Request, Response};

use super::body::UpstreamBody;
use super::error::{ForwardError, Reached};
use super::exchange::Exchange;
use super::local::LocalTarget;
use super::outgoing::OutgoingBody;
use super::shared::{BalanceState, SharedUpstream};
use super::timer::TimerPool;
use crate::body::RequestBody;
use crate::config::RetryConfig;

/// The connections of one thread to upstreams. Connections close when their upstream is dropped.
#[derive(Debug)]
pub(crate) struct UpstreamPool {
    threads: NonZeroUsize,
    upstreams: RefCell<HashMap<u64, Rc<LocalUpstream>>>,
    timers: Rc<TimerPool>,
}

/// One upstream as one thread sees it.
#[derive(Debug)]
pub(super) struct LocalUpstream {
    shared: Weak<SharedUpstream>,
    pub(super) balance: BalanceState,
    pub(super) targets: Vec<Rc<LocalTarget>>,
}

// === impl UpstreamPool ===

impl UpstreamPool {
    /// The pool of one of this many threads, which share each upstream's `max_connections` evenly.
    pub(crate) fn new(threads: NonZeroUsize) -> Self {
        Self {
            threads,
            upstreams: RefCell::default(),
            timers: Rc::default(),
        }
    }

    /// Sends a request and returns the head of the response; its body follows as it arrives.
    ///
    /// The request is ready to be sent: headers final, `Host` set, URI in origin form. To be called on a runtime of this thread alone,
    /// because connections become local tasks. A response of 101 holds its place until its body is dropped, so keep the body
    /// as long as the tunnel.
    ///
    /// `reached` tells whether a target may have seen the request in any attempt; a charge for it may be refunded only if not.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it closes the HTTP/1 connection or resets the HTTP/2 stream of the request; `reached` is true then, too.
    pub(crate) fn exchange(
        &self,
        upstream: &Arc<SharedUpstream>,
        request: Request<RequestBody>,
        retry: Option<&RetryConfig>,
        reached: &Cell<Reached>,
    ) -> impl Future<Output = Result<Box<Response<UpstreamBody>>, ForwardError>> {
        // In a box from here on, because futures copy what they are given.
        let request = Box::new(request.map(OutgoingBody::new));
        async move {
            let local = self.local(upstream);
            Exchange::new(upstream, &local, &self.timers, retry, reached)
                .run(request)
                .await
        }
    }

    fn local(&self, upstream: &Arc<SharedUpstream>) -> Rc<LocalUpstream> {
        let mut upstreams = self.upstreams.borrow_mut();
        if let Some(local) = upstreams.get(&upstream.id) {
            return Rc::clone(local);
        }
        // A reload has happened, or the start: upstreams that nobody has any more go.
        upstreams.retain(|_, local| local.shared.strong_count() > 0);
        let local = Rc::new(self.new_local(upstream));
        upstreams.insert(upstream.id, Rc::clone(&local));
        local
    }

    fn new_local(&self, upstream: &Arc<SharedUpstream>) -> LocalUpstream {
        let max_connections = upstream.config.max_connections;
        let is_scarce = max_connections < self.threads.get();
        let own_connections = (max_connections / self.threads).max(1);
        let target = |(state, scarce): (_, &Arc<_>)| {
            let scarce = is_scarce.then(|| Arc::clone(scarce));
            LocalTarget::new(upstream, state, own_connections, scarce)
        };
        LocalUpstream {
            shared: Arc::downgrade(upstream),
            balance: BalanceState::new(),
            targets: iter::zip(&upstream.targets, &upstream.scarce)
                .map(target)
                .collect(),
        }
    }
}
