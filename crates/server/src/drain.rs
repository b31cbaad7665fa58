//! The end of a server, as connections see it.

use tokio::sync::watch;

/// Tells everybody to finish. Dropping it does so too.
#[derive(Debug)]
pub(crate) struct DrainSwitch(watch::Sender<Phase>);

/// Says when to finish; each connection holds one.
#[derive(Clone, Debug)]
pub(crate) struct Drain(watch::Receiver<Phase>);

/// Where a server is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It takes requests.
    Serving,
    /// It answers what is under way and takes nothing new.
    Draining,
}

/// A switch and what listens to it.
pub(crate) fn drain() -> (DrainSwitch, Drain) {
    let (sender, receiver) = watch::channel(Phase::Serving);
    (DrainSwitch(sender), Drain(receiver))
}

// === impl DrainSwitch ===

impl DrainSwitch {
    /// Begins the end.
    pub(crate) fn begin(&self) {
        self.0.send_replace(Phase::Draining);
    }
}

// === impl Drain ===

impl Drain {
    /// Where the server is in its life now.
    pub(crate) fn phase(&self) -> Phase {
        *self.0.borrow()
    }

    /// Ready once the end has begun.
    pub(crate) async fn begun(&mut self) {
        // A switch that is gone has begun the end too.
        let _ = self.0.wait_for(|phase| *phase == Phase::Draining).await;
    }
}
