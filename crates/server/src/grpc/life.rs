//! How long a connection lives.

use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval};

use super::GrpcConfig;
use crate::drain::Drain;
use crate::peer::Peer;

/// Says when a connection is to do something about its end.
pub(super) struct Life {
    drain: Pin<Box<dyn Future<Output = ()>>>,
    /// When next to look whether there were calls.
    looks: Interval,
    calls: Calls,
    /// How long there were none, as far as was looked.
    quiet: Duration,
    idle_timeout: Duration,
    age: Option<Interval>,
    age_grace: Duration,
    stage: Stage,
}

/// What a connection is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Some time has passed: close if the peer has taken nothing of the answers that wait for it.
    CloseIfStuck,
    /// There was no call for long: close if there is none under way.
    CloseIfIdle,
    /// Take no further calls, and close when those under way are answered.
    Finish,
    /// Close.
    Close,
}

/// Whether there were calls since the last look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Calls {
    Seen,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Open,
    /// It was told to finish, by the drain or by its age.
    Finishing,
}

// === impl Life ===

impl Life {
    pub(super) fn new(config: &GrpcConfig, peer: Peer, mut drain: Drain) -> Self {
        let age = config
            .max_age
            .map(|age| age.saturating_add(spread(age, peer)));
        Self {
            drain: Box::pin(async move { drain.begun().await }),
            looks: every(config.write_timeout.min(config.idle_timeout)),
            calls: Calls::None,
            quiet: Duration::ZERO,
            idle_timeout: config.idle_timeout,
            age: age.map(every),
            age_grace: config.age_grace,
            stage: Stage::Open,
        }
    }

    /// Calls have come in.
    pub(super) fn saw_calls(&mut self) {
        // The timer is not set anew for each call: it looks back when it goes off.
        self.calls = Calls::Seen;
    }

    /// Ready whenever there is something to do.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Order> {
        if self.stage == Stage::Open && self.drain.as_mut().poll(context).is_ready() {
            self.stage = Stage::Finishing;
            return Poll::Ready(Order::Finish);
        }
        if let Some(age) = &mut self.age
            && age.poll_tick(context).is_ready()
        {
            return Poll::Ready(self.grow_old());
        }
        ready!(self.looks.poll_tick(context));
        match mem::replace(&mut self.calls, Calls::None) {
            Calls::None => Poll::Ready(self.grow_quiet()),
            Calls::Seen => {
                self.quiet = Duration::ZERO;
                Poll::Ready(Order::CloseIfStuck)
            }
        }
    }

    fn grow_quiet(&mut self) -> Order {
        self.quiet = self.quiet.saturating_add(self.looks.period());
        if self.quiet < self.idle_timeout {
            return Order::CloseIfStuck;
        }
        self.quiet = Duration::ZERO;
        Order::CloseIfIdle
    }

    fn grow_old(&mut self) -> Order {
        match self.stage {
            Stage::Open => {
                self.stage = Stage::Finishing;
                self.age = Some(every(self.age_grace));
                Order::Finish
            }
            Stage::Finishing => {
                self.age = None;
                Order::Close
            }
        }
    }
}

/// Goes off when `span` has passed, and again after each further one.
pub(super) fn every(span: Duration) -> Interval {
    // An interval of nothing is none.
    let mut interval = interval(span.max(Duration::from_millis(1)));
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // It goes off at once otherwise.
    interval.reset();
    interval
}

/// Up to a tenth more, different from peer to peer, so that those who came together do not leave together.
fn spread(age: Duration, peer: Peer) -> Duration {
    match peer {
        Peer::Tcp(address) => age / 10 * u32::from(address.port() % 64) / 64,
        Peer::Unix => Duration::ZERO,
    }
}
