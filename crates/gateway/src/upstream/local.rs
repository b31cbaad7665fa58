//! The connections of one thread to one target.
//!
//! Places bound the connections: a request over HTTP/1 and a connection of HTTP/2 take one each. An idle HTTP/1 connection has none,
//! yet connections never exceed places: a new one is opened only by a holder of a place who found no idle one, or closed one.
//!
//! HTTP/2 requests that find no free stream wait in one queue: the first of them opens a connection or waits for a stream, and the
//! others use the connection that it opened. No later request overtakes them.
//!
//! The deadline of a request ends its wait in the queue and for a place. A connection that is being opened for it has a timeout of its own.
//! A target that closes such a connection at once has failed: it is not opened again for the same request.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::connect::{Connector, ProtocolNeed, WireProtocol};
use super::counters::UpstreamCounters;
use super::error::ForwardError;
use super::http1::Http1Connection;
use super::http2::Http2Connection;
use super::lease::{ConnectionLease, CountedRequest, LeasedChannel};
use super::line_opening::{LineOpening, LineOpeningGuard, open_for_line};
use super::opening::{fail_opening, open};
use super::scarce::ScarceConnections;
use super::shared::SharedUpstream;
use super::target::TargetState;
use super::timer::now;
use crate::config::{UpstreamConfig, UpstreamProtocol};

/// The connections of one thread to one target.
#[derive(Debug)]
pub(super) struct LocalTarget {
    pub(super) state: Arc<TargetState>,
    pub(super) config: Arc<UpstreamConfig>,
    pub(super) counters: Arc<UpstreamCounters>,
    pub(super) connector: Connector,
    /// The permits of all threads, if there are fewer connections than threads.
    pub(super) scarce: Option<Arc<ScarceConnections>>,
    places: Semaphore,
    /// Unused HTTP/1 connections, the one used last at the back.
    idle: RefCell<VecDeque<Box<Http1Connection>>>,
    http2: RefCell<Vec<Rc<Http2Connection>>>,
    /// The line of those who wait for a stream.
    line: Semaphore,
    /// Notified when a stream has ended or the opening of a connection for the line has.
    pub(super) stream_freed: Notify,
    /// The opening of a connection for the line.
    pub(super) line_opening: RefCell<LineOpening>,
    /// The protocol of the connection opened last.
    pub(super) negotiated: Cell<Option<WireProtocol>>,
    next_serial: Cell<u64>,
    next_address: Cell<usize>,
    has_reaper: Cell<bool>,
    own: Weak<LocalTarget>,
}

/// The connections that a request may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Freshness {
    /// Any.
    Any,
    /// One that has served nobody; over HTTP/2, one with this number or a greater one.
    New(u64),
}

// === impl LocalTarget ===

impl LocalTarget {
    pub(super) fn new(
        upstream: &SharedUpstream,
        state: &Arc<TargetState>,
        max_connections: usize,
        scarce: Option<Arc<ScarceConnections>>,
    ) -> Rc<Self> {
        Rc::new_cyclic(|own| Self {
            state: Arc::clone(state),
            config: Arc::clone(&upstream.config),
            counters: Arc::clone(&upstream.counters),
            connector: upstream.connector.clone(),
            scarce,
            places: Semaphore::new(max_connections.min(Semaphore::MAX_PERMITS)),
            idle: RefCell::default(),
            http2: RefCell::default(),
            line: Semaphore::new(1),
            stream_freed: Notify::new(),
            line_opening: RefCell::default(),
            negotiated: Cell::new(None),
            next_serial: Cell::new(0),
            next_address: Cell::new(0),
            has_reaper: Cell::new(false),
            own: Weak::clone(own),
        })
    }

    /// A connection or a stream for one request.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it gives back its place in line. A connection that it was about to open is kept for the next request.
    pub(super) async fn lease(
        self: &Rc<Self>,
        need: ProtocolNeed,
        freshness: Freshness,
        now: Instant,
    ) -> Result<ConnectionLease, ForwardError> {
        let request = CountedRequest::new(self);
        let deadline = now + self.config.timeouts.connect;
        let channel = if self.expected_protocol(need) == WireProtocol::Http1 {
            self.lease_http1(need, freshness, now, deadline).await?
        } else if self.line.available_permits() > 0
            && let Some(stream) = self.lease_stream(freshness)
        {
            stream
        } else {
            self.lease_http2(freshness, deadline).await?
        };
        Ok(ConnectionLease::new(request, channel))
    }

    /// The number that the next HTTP/2 connection will have, for a retry that must not meet an old one.
    pub(super) fn next_serial(&self) -> u64 {
        self.next_serial.get()
    }

    /// Keeps a connection for the next request.
    pub(super) fn keep_idle(&self, connection: Box<Http1Connection>) {
        if self.scarce.is_some() {
            connection.abort();
            return;
        }
        self.idle.borrow_mut().push_back(connection);
        self.start_reaper();
    }

    pub(super) fn release_place(&self) {
        self.places.add_permits(1);
    }

    pub(super) fn note_free_stream(&self) {
        if self.is_wanted_elsewhere() {
            let mut connections = self.http2.borrow_mut();
            connections.retain(|connection| !(connection.was_used() && connection.is_idle()));
        }
        self.stream_freed.notify_one();
        self.start_reaper();
    }

    /// True if somebody waits for a connection of all threads.
    fn is_wanted_elsewhere(&self) -> bool {
        let scarce = self.scarce.as_ref();
        scarce.is_some_and(|scarce| scarce.is_wanted())
    }

    fn expected_protocol(&self, need: ProtocolNeed) -> WireProtocol {
        match (self.config.protocol, self.state.config.is_tls) {
            (UpstreamProtocol::Http1, _) | (UpstreamProtocol::Auto, false) => WireProtocol::Http1,
            (UpstreamProtocol::Http2, _) => WireProtocol::Http2,
            (UpstreamProtocol::Auto, true) if need == ProtocolNeed::Http1 => WireProtocol::Http1,
            // Who does not know yet stands in line, so that not everybody opens a connection that all could share.
            (UpstreamProtocol::Auto, true) => self.negotiated.get().unwrap_or(WireProtocol::Http2),
        }
    }

    pub(super) fn next_turn(&self) -> usize {
        let turn = self.next_address.get();
        self.next_address.set(turn.wrapping_add(1));
        turn
    }

    pub(super) fn take_serial(&self) -> u64 {
        let serial = self.next_serial.get();
        self.next_serial.set(serial + 1);
        serial
    }

    pub(super) fn add_http2(&self, connection: &Rc<Http2Connection>) {
        self.http2.borrow_mut().push(Rc::clone(connection));
    }

    async fn lease_http1(
        self: &Rc<Self>,
        need: ProtocolNeed,
        freshness: Freshness,
        now: Instant,
        deadline: Instant,
    ) -> Result<LeasedChannel, ForwardError> {
        let place = match self.places.try_acquire() {
            Ok(place) => place,
            Err(_) => match timeout_at(deadline, self.places.acquire()).await {
                Ok(Ok(place)) => place,
                _ => return Err(ForwardError::PoolExhausted),
            },
        };
        if freshness == Freshness::Any {
            if let Some(connection) = self.take_idle(now) {
                place.forget();
                return Ok(LeasedChannel::Http1 {
                    connection,
                    is_reused: true,
                });
            }
        } else {
            // The new one takes its place.
            self.idle.borrow_mut().pop_front();
        }
        place.forget();
        let opening = spawn_local(open(Rc::clone(self), need));
        // A task fails only if the thread ends.
        let opened = opening.await.map_err(|_| ForwardError::PoolExhausted)?;
        Ok(opened?.take())
    }

    /// The idle connection used last, if it is still good.
    fn take_idle(&self, now: Instant) -> Option<Box<Http1Connection>> {
        let version = self.state.addresses.version();
        loop {
            let mut connection = self.idle.borrow_mut().pop_back()?;
            let is_kept = now < connection.idle_since + self.config.idle_timeout;
            if is_kept
                && connection.is_ready()
                && self.is_current(connection.address, &mut connection.list_version, version)
            {
                return Some(connection);
            }
        }
    }

    /// True if the name still has the address.
    fn is_current(&self, address: SocketAddr, list_version: &mut u64, version: u64) -> bool {
        if *list_version != version && self.state.addresses.contains(address) {
            *list_version = version;
        }
        *list_version == version
    }

    fn lease_stream(&self, freshness: Freshness) -> Option<LeasedChannel> {
        let first_serial = match freshness {
            Freshness::Any => 0,
            Freshness::New(first_serial) => first_serial,
        };
        let version = self.state.addresses.version();
        let mut connections = self.http2.borrow_mut();
        if self.is_wanted_elsewhere() {
            let used = connections
                .iter()
                .filter(|connection| connection.was_used());
            used.for_each(|connection| connection.drain());
        }
        connections.retain(|connection| {
            let mut list_version = connection.list_version.get();
            let is_current = self.is_current(connection.address, &mut list_version, version);
            connection.list_version.set(list_version);
            is_current && !connection.is_over()
        });
        let found = connections.iter().find(|connection| {
            connection.serial >= first_serial && connection.has_room(self.config.max_streams)
        });
        let connection = Rc::clone(found?);
        drop(connections);
        connection.begin_stream();
        connection.note_use();
        Some(LeasedChannel::Http2(connection))
    }

    async fn lease_http2(
        self: &Rc<Self>,
        freshness: Freshness,
        deadline: Instant,
    ) -> Result<LeasedChannel, ForwardError> {
        let Ok(Ok(_turn)) = timeout_at(deadline, self.line.acquire()).await else {
            return Err(ForwardError::PoolExhausted);
        };
        // The failure of an opening that an earlier request did not wait for.
        self.take_failed_opening();
        // The addresses for which this request has opened a connection: one opening is enough, unless they change meanwhile.
        let mut opened_version = None;
        loop {
            if self.expected_protocol(ProtocolNeed::Any) == WireProtocol::Http1 {
                // That is what those before us in line found out, or the connection that was opened.
                let need = ProtocolNeed::Any;
                return self.lease_http1(need, freshness, now(), deadline).await;
            }
            if let Some(stream) = self.lease_stream(freshness) {
                return Ok(stream);
            }
            if let Some(error) = self.take_failed_opening() {
                return Err(error);
            }
            if self.is_opening_for_line() {
                // It was begun before the deadline, and has the whole connect timeout.
                let last = deadline + self.config.timeouts.connect;
                let ended = timeout_at(last, self.stream_freed.notified());
                ended.await.map_err(|_| ForwardError::PoolExhausted)?;
                continue;
            }
            let version = self.state.addresses.version();
            if opened_version == Some(version) {
                // The target closed the connection before it could be used.
                return Err(fail_opening(self, io::ErrorKind::ConnectionReset.into()));
            }
            if now() >= deadline {
                // With a free place, `timeout_at` would not look at it.
                return Err(ForwardError::PoolExhausted);
            }
            let place_or_stream = async {
                tokio::select! {
                    biased;
                    place = self.places.acquire() => place.ok(),
                    () = self.stream_freed.notified() => None,
                }
            };
            match timeout_at(deadline, place_or_stream).await {
                Err(_) => return Err(ForwardError::PoolExhausted),
                Ok(None) => {}
                Ok(Some(place)) => {
                    place.forget();
                    opened_version = Some(version);
                    spawn_local(open_for_line(LineOpeningGuard::new(self)));
                }
            }
        }
    }

    pub(super) fn is_opening_for_line(&self) -> bool {
        matches!(*self.line_opening.borrow(), LineOpening::InProgress)
    }

    fn take_failed_opening(&self) -> Option<ForwardError> {
        let mut opening = self.line_opening.borrow_mut();
        match std::mem::take(&mut *opening) {
            LineOpening::Failed(error) => Some(error),
            other => {
                *opening = other;
                None
            }
        }
    }

    fn start_reaper(&self) {
        if !self.has_reaper.replace(true) {
            spawn_local(reap(Weak::clone(&self.own)));
        }
    }

    /// Closes the connections that were unused for too long. Returns the time to look again, if any are left.
    fn close_expired(&self, now: Instant) -> Option<Instant> {
        let timeout = self.config.idle_timeout;
        let is_kept = |idle_since: Instant| now < idle_since + timeout;
        self.idle
            .borrow_mut()
            .retain_mut(|connection| is_kept(connection.idle_since) && connection.is_ready());
        let is_wanted = self.is_wanted_elsewhere();
        self.http2.borrow_mut().retain(|connection| {
            let is_released = is_wanted && connection.was_used();
            let is_kept = is_kept(connection.idle_since.get()) && !is_released;
            (is_kept || !connection.is_idle()) && !connection.is_over()
        });
        let is_empty = self.idle.borrow().is_empty() && self.http2.borrow().is_empty();
        // The ends of the single connections are not looked for: one timer for all of them closes each within a
        // quarter of the timeout, or the longest interval.
        (!is_empty).then(|| now + (timeout / 4).clamp(SHORTEST_REAP, LONGEST_REAP))
    }
}

/// Connections are not looked through more often, however short the timeout is.
const SHORTEST_REAP: Duration = Duration::from_millis(5);
/// Connections are looked through at least this often, because one that the target has closed keeps its socket until then.
const LONGEST_REAP: Duration = Duration::from_secs(1);

async fn reap(target: Weak<LocalTarget>) {
    loop {
        let Some(next) = target.upgrade().and_then(|target| {
            let next = target.close_expired(now());
            target.has_reaper.set(next.is_some());
            next
        }) else {
            return;
        };
        sleep_until(next).await;
    }
}
