//! Looks whether Sentinels have made another server the master.
//!
//! A master that was replaced ends our connections or refuses to write, which is noticed by itself; but one
//! that is cut off from its Sentinels, and not from us, does neither for a while.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::runtime::Handle;
use tracing::info;

use super::{Place, Server};
use crate::client::time::pause;

/// Lets another task begin if this one ends before its time, with its runtime.
struct Watching(Arc<Server>);

/// How often to ask: a fraction of what Sentinels take to agree on another master.
const LOOK: Duration = Duration::from_secs(1);

// === impl Server ===

impl Server {
    /// Watches for another master, unless somebody already does or there can be none.
    pub(super) fn watch(self: &Arc<Self>, runtime: &Handle) {
        let can_move = matches!(self.place, Place::Sentinels(_));
        if can_move && !self.is_watched.swap(true, Ordering::AcqRel) {
            runtime.spawn(until_closed(Watching(Arc::clone(self))));
        }
    }

    async fn look(&self) {
        let Place::Sentinels(sentinels) = &self.place else {
            return;
        };
        if sentinels.has_moved(&self.manners).await {
            info!(server = %self, "Sentinels have another master, which is connected to now");
            for link in &self.links().alive {
                link.renew();
            }
        }
    }
}

async fn until_closed(watching: Watching) {
    let server = &watching.0;
    loop {
        pause(LOOK).await;
        if server.is_closed() {
            return;
        }
        server.look().await;
    }
}

// === impl Watching ===

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.is_watched.store(false, Ordering::Release);
    }
}
