//! Pings that find a peer which is gone without a word.

use std::task::{Context, Poll};
use std::time::Duration;

use h2::{Ping, PingPong};
use tokio::time::Interval;

use super::life::every;

/// Pings a peer at an interval. A peer that has not answered one ping when the next is due is gone.
pub(super) struct Keepalive {
    pings: Option<PingPong>,
    due: Interval,
    is_waiting: bool,
}

// === impl Keepalive ===

impl Keepalive {
    pub(super) fn new(pings: Option<PingPong>, interval: Duration) -> Self {
        Self {
            pings,
            due: every(interval),
            is_waiting: false,
        }
    }

    /// Ready once the peer is found to be gone.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while self.due.poll_tick(context).is_ready() {
            let Some(pings) = &mut self.pings else {
                continue;
            };
            if self.is_waiting && pings.poll_pong(context).is_pending() {
                return Poll::Ready(());
            }
            // h2 takes one ping at a time, and none once the connection is closed.
            self.is_waiting = pings.send_ping(Ping::opaque()).is_ok();
        }
        Poll::Pending
    }
}
