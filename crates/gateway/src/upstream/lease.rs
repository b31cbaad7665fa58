//! The use of a connection by one request, from its head to the end of the response.

use std::rc::Rc;

use super::http1::Http1Connection;
use super::http2::Http2Connection;
use super::local::LocalTarget;

/// A connection, or a stream of one, in use by one request. Dropped before the end of the response, it closes the HTTP/1 connection.
#[derive(Debug)]
pub(super) struct ConnectionLease {
    request: CountedRequest,
    channel: LeasedChannel,
}

/// A request that counts as in progress.
#[derive(Debug)]
pub(super) struct CountedRequest(Rc<LocalTarget>);

/// The connection of a lease.
#[derive(Debug)]
pub(super) enum LeasedChannel {
    /// A whole connection.
    Http1 {
        /// The connection.
        connection: Box<Http1Connection>,
        /// True if it has served an earlier request.
        is_reused: bool,
    },
    /// A stream of a connection.
    Http2(Rc<Http2Connection>),
    /// A connection that became a tunnel; only its place counts any more.
    Upgraded(
        #[expect(dead_code, reason = "it is kept until the tunnel ends")] Box<Http1Connection>,
    ),
    /// Nothing any more.
    Released,
}

// === impl ConnectionLease ===

impl ConnectionLease {
    /// A lease of a channel, which takes over the place or the stream that the channel was given.
    pub(super) fn new(request: CountedRequest, channel: LeasedChannel) -> Self {
        Self { request, channel }
    }

    pub(super) fn target(&self) -> &LocalTarget {
        &self.request.0
    }

    pub(super) fn parts(&mut self) -> (&LocalTarget, &mut LeasedChannel) {
        (&self.request.0, &mut self.channel)
    }

    /// Gives the connection back after the end of a response.
    pub(super) fn finish(mut self) {
        if let LeasedChannel::Http1 { connection, .. } = &mut self.channel
            // Not so if the request is still being written, or either side wants to close.
            && connection.is_ready()
            && let LeasedChannel::Http1 { mut connection, .. } = self.take_channel()
        {
            connection.rest();
            self.target().keep_idle(connection);
            self.target().release_place();
        }
        // The rest is as if it were dropped.
    }

    /// Leaves the connection to the upgrade that has taken it over. The place stays taken until the lease is dropped.
    pub(super) fn detach(&mut self) {
        if !matches!(self.channel, LeasedChannel::Http1 { .. }) {
            return;
        }
        if let LeasedChannel::Http1 { mut connection, .. } = self.take_channel() {
            connection.give_task();
            self.channel = LeasedChannel::Upgraded(connection);
        }
    }

    fn take_channel(&mut self) -> LeasedChannel {
        std::mem::replace(&mut self.channel, LeasedChannel::Released)
    }
}

impl Drop for ConnectionLease {
    fn drop(&mut self) {
        match self.take_channel() {
            LeasedChannel::Http1 { connection, .. } => {
                connection.abort();
                self.target().release_place();
            }
            LeasedChannel::Upgraded(_) => self.target().release_place(),
            LeasedChannel::Http2(connection) => {
                connection.end_stream();
                self.target().note_free_stream();
            }
            LeasedChannel::Released => {}
        }
    }
}

// === impl CountedRequest ===

impl CountedRequest {
    /// Counts a request from the moment at which its target is chosen, so that others choose another one.
    pub(super) fn new(target: &Rc<LocalTarget>) -> Self {
        target.state.begin_request();
        Self(Rc::clone(target))
    }
}

impl Drop for CountedRequest {
    fn drop(&mut self) {
        self.0.state.end_request();
    }
}
