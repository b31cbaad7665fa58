//! Which core gets a connection: the one with the fewest.
//!
//! Envoy opens few connections and keeps them, so it matters where each one goes, and it matters more
//! that none goes where others are than how busy those were a moment ago.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::sync::mpsc::UnboundedSender;
use tracing::error;

use super::Handed;
use crate::connection::Connection;

/// How much a core has to do. The numbers only choose; that they may be a moment old does no harm, so
/// no ordering between them is asked for.
#[derive(Debug, Default)]
pub(crate) struct Load {
    open: AtomicUsize,
    calls: AtomicU64,
}

/// The ways to all cores.
#[derive(Debug)]
pub(crate) struct Balance(Vec<Lane>);

/// The way to one core.
#[derive(Debug)]
pub(crate) struct Lane {
    // The channel needs no bound of its own: every connection in it holds a place of its listener.
    inbox: UnboundedSender<Handed>,
    load: Arc<Load>,
    /// What `calls` was at the last tick.
    seen: AtomicU64,
    lately: AtomicU64,
}

/// A connection counted among those of a core, until dropped.
#[derive(Debug)]
pub(super) struct Turn(Arc<Load>);

// === impl Load ===

impl Load {
    /// Counts a call. Only the core itself does, so it needs no atomic addition.
    pub(crate) fn count_call(&self) {
        let calls = self.calls.load(Ordering::Relaxed);
        self.calls.store(calls.wrapping_add(1), Ordering::Relaxed);
    }
}

// === impl Balance ===

impl Balance {
    pub(crate) const fn new(lanes: Vec<Lane>) -> Self {
        Self(lanes)
    }

    /// Hands a connection to the core with the fewest open ones; among equals, to the one that had the
    /// fewest calls lately.
    pub(crate) fn hand_over(&self, connection: Connection) {
        if let Some(lane) = self.0.iter().min_by_key(|lane| lane.weight()) {
            lane.hand_over(connection);
        }
    }

    /// Looks at how many calls there were since the last time; call it at even intervals.
    pub(crate) fn tick(&self) {
        self.0.iter().for_each(Lane::tick);
    }
}

// === impl Lane ===

impl Lane {
    pub(super) fn new(inbox: UnboundedSender<Handed>, load: Arc<Load>) -> Self {
        Self {
            inbox,
            load,
            seen: AtomicU64::new(0),
            lately: AtomicU64::new(0),
        }
    }

    fn weight(&self) -> (usize, u64) {
        let open = self.load.open.load(Ordering::Relaxed);
        (open, self.lately.load(Ordering::Relaxed))
    }

    /// Hands a connection to this core.
    pub(crate) fn hand_over(&self, connection: Connection) {
        let turn = Turn::new(Arc::clone(&self.load));
        if self.inbox.send(Handed { connection, turn }).is_err() {
            error!("a core has ended before its time; its connections are closed");
        }
    }

    /// Half of what was before and half of what is new: a burst is forgotten within seconds.
    fn tick(&self) {
        let calls = self.load.calls.load(Ordering::Relaxed);
        let seen = self.seen.swap(calls, Ordering::Relaxed);
        let lately = self.lately.load(Ordering::Relaxed);
        let average = lately.midpoint(calls.wrapping_sub(seen));
        self.lately.store(average, Ordering::Relaxed);
    }
}

// === impl Turn ===

impl Turn {
    fn new(load: Arc<Load>) -> Self {
        load.open.fetch_add(1, Ordering::Relaxed);
        Self(load)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}
