//! The use of a connection by one request, from its head to the end of the response.

use std::rc::Rc;

use super::http1::Http1Connection;
use super::http2::Http2Connection;
use super::local::LocalTarget;
use super::timer::now;

/// A connection, or a stream of one, in use by one request. Dropped before the end of the response, it closes the HTTP/1 connection.
#[derive(Debug)]
pub(super) struct ConnectionLease {
    pub(super) target: Rc<LocalTarget>,
    channel: LeasedChannel,
}

/// The connection of a lease.
#[derive(Debug)]
pub(super) enum LeasedChannel {
    /// A whole connection.
    Http1 {
        /// The connection.
        connection: Http1Connection,
        /// Whether it has served an earlier request.
        is_reused: bool,
    },
    /// A stream of a connection.
    Http2(Rc<Http2Connection>),
    /// A connection that became a tunnel; only its place counts any more.
    Upgraded(#[expect(dead_code, reason = "it is kept until the tunnel ends")] Http1Connection),
    /// Nothing any more.
    Released,
}

// === impl ConnectionLease ===

impl ConnectionLease {
    /// A lease of an HTTP/1 connection, which takes over a place of the target.
    pub(super) fn http1(
        target: &Rc<LocalTarget>,
        connection: Http1Connection,
        is_reused: bool,
    ) -> Self {
        target.state.begin_request();
        Self {
            target: Rc::clone(target),
            channel: LeasedChannel::Http1 {
                connection,
                is_reused,
            },
        }
    }

    /// A lease of a stream.
    pub(super) fn http2(target: &Rc<LocalTarget>, connection: Rc<Http2Connection>) -> Self {
        target.state.begin_request();
        connection.begin_stream();
        Self {
            target: Rc::clone(target),
            channel: LeasedChannel::Http2(connection),
        }
    }

    pub(super) fn parts(&mut self) -> (&LocalTarget, &mut LeasedChannel) {
        (&self.target, &mut self.channel)
    }

    /// Gives the connection back after the end of a response.
    pub(super) fn finish(mut self) {
        if let LeasedChannel::Http1 { connection, .. } = &self.channel
            // Not so if the request is still being written, or either side wants to close.
            && connection.is_ready()
            && let LeasedChannel::Http1 { mut connection, .. } = self.take_channel()
        {
            connection.idle_since = now();
            self.target.keep_idle(connection);
            self.target.release_place();
        }
        // The rest is as if it were dropped.
    }

    /// Leaves the connection to the upgrade that has taken it over. The place stays taken until the lease is dropped.
    pub(super) fn detach(&mut self) {
        if !matches!(self.channel, LeasedChannel::Http1 { .. }) {
            return;
        }
        if let LeasedChannel::Http1 { connection, .. } = self.take_channel() {
            self.channel = LeasedChannel::Upgraded(connection);
        }
    }

    fn take_channel(&mut self) -> LeasedChannel {
        std::mem::replace(&mut self.channel, LeasedChannel::Released)
    }
}

impl Drop for ConnectionLease {
    fn drop(&mut self) {
        self.target.state.end_request();
        match self.take_channel() {
            LeasedChannel::Http1 { connection, .. } => {
                connection.abort();
                self.target.release_place();
            }
            LeasedChannel::Upgraded(_) => self.target.release_place(),
            LeasedChannel::Http2(connection) => {
                connection.end_stream();
                self.target.note_free_stream();
            }
            LeasedChannel::Released => {}
        }
    }
}
