//! Opening a connection, in a task that outlives the request that asked for it.
//!
//! A client that leaves, or a request that has no time left, must not throw away a connection that is about to open: a target that
//! is slow to accept would then never be reached. So an opening has the whole connect timeout, and a connection that nobody waits
//! for any more is kept for the next request. Each opening that fails counts once for the health of the target.

use std::io;
use std::rc::Rc;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};

use super::connect::{ProtocolNeed, WireProtocol};
use super::error::ForwardError;
use super::http1::Http1Connection;
use super::http2::Http2Connection;
use super::lease::LeasedChannel;
use super::local::LocalTarget;
use super::timer::now;

/// A connection that was just opened, with its place. Unless a request takes it, it is kept for the next one.
#[derive(Debug)]
pub(super) struct NewConnection {
    target: Rc<LocalTarget>,
    channel: LeasedChannel,
}

/// The place of a connection that is being opened. Dropped, by a panic too, it is released.
struct TakenPlace<'a>(&'a LocalTarget);

/// Opens a connection on a place that is taken. A failure releases the place.
pub(super) async fn open(
    target: Rc<LocalTarget>,
    need: ProtocolNeed,
) -> Result<NewConnection, ForwardError> {
    let place = TakenPlace(&target);
    let connect_timeout = target.config.timeouts.connect;
    let permit = match &target.scarce {
        None => None,
        Some(scarce) => {
            let permit = scarce.take(now() + connect_timeout).await;
            Some(permit.ok_or(ForwardError::PoolExhausted)?)
        }
    };
    let deadline = now() + connect_timeout;
    match timeout_at(deadline, open_within(&target, need, deadline, permit)).await {
        Ok(Ok(connection)) => {
            // It is the connection's now.
            std::mem::forget(place);
            Ok(connection)
        }
        Ok(Err(error)) => Err(fail_opening(&target, error)),
        Err(_) => Err(fail_opening(&target, io::ErrorKind::TimedOut.into())),
    }
}

/// Counts an opening that failed for the health of the target.
pub(super) fn fail_opening(target: &LocalTarget, error: io::Error) -> ForwardError {
    let health = &target.state.health;
    health.fail(&target.state.name, &target.config.passive_health, now());
    match error.kind() {
        io::ErrorKind::TimedOut => ForwardError::ConnectTimedOut,
        _ => ForwardError::ConnectFailed(error),
    }
}

async fn open_within(
    target: &Rc<LocalTarget>,
    need: ProtocolNeed,
    deadline: Instant,
    permit: Option<OwnedSemaphorePermit>,
) -> io::Result<NewConnection> {
    // Read before the addresses: a connection may seem older than it is, never newer.
    let list_version = target.state.addresses.version();
    let turn = target.next_turn();
    let opened = target.connector.open(&target.state, need, turn, deadline);
    let mut opened = opened.await?;
    opened.stream.hold(permit);
    if need == ProtocolNeed::Any {
        target.negotiated.set(Some(opened.protocol));
    }
    target.counters.connections.add();
    let channel = match opened.protocol {
        WireProtocol::Http1 => LeasedChannel::Http1 {
            connection: Http1Connection::start(opened, list_version).await?,
            is_reused: false,
        },
        WireProtocol::Http2 => {
            let connection = Http2Connection::start(
                opened,
                list_version,
                target.take_serial(),
                target.config.max_streams,
                Rc::downgrade(target),
            );
            let connection = Rc::new(connection.await?);
            connection.begin_stream();
            target.add_http2(&connection);
            LeasedChannel::Http2(connection)
        }
    };
    Ok(NewConnection {
        target: Rc::clone(target),
        channel,
    })
}

// === impl NewConnection ===

impl NewConnection {
    /// The connection for the request that waited for it.
    pub(super) fn take(mut self) -> LeasedChannel {
        if let LeasedChannel::Http2(connection) = &self.channel {
            connection.note_use();
        }
        std::mem::replace(&mut self.channel, LeasedChannel::Released)
    }
}

impl Drop for NewConnection {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.channel, LeasedChannel::Released) {
            LeasedChannel::Http1 { connection, .. } => {
                self.target.keep_idle(connection);
                self.target.release_place();
            }
            LeasedChannel::Http2(connection) => {
                connection.end_stream();
                self.target.note_free_stream();
            }
            LeasedChannel::Upgraded(_) | LeasedChannel::Released => {}
        }
    }
}

// === impl TakenPlace ===

impl Drop for TakenPlace<'_> {
    fn drop(&mut self) {
        self.0.release_place();
    }
}
