//! Looks whether a server that failed is back.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::timeout;
use tracing::{debug, info};

use super::{Place, Server};
use crate::client::config::Changes;
use crate::client::fault::ServerFault;
use crate::client::session::{Session, SessionError};
use crate::client::time::{now, pause};

/// The first wait is short: most failures are a moment's.
const FIRST_WAIT: Duration = Duration::from_millis(50);

/// The longest one: for so long at the most does a server that is back go unnoticed.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// A script that does nothing, but might: a server that is full, read-only or cannot save refuses to begin it,
/// while it would still answer a PING; and so it does to a user who may not write to such a key as ours.
const MAY_WRITE: [&str; 4] = ["EVAL", "#!lua\nreturn 1", "1", "tg1:{probe}"];

/// The same without a key, which another server may have.
const MAY_WRITE_AT_ALL: [&str; 3] = [MAY_WRITE[0], MAY_WRITE[1], "0"];

/// Lets another task begin if this one ends before its time, with its runtime.
struct Probing(Arc<Server>);

// === impl Server ===

impl Server {
    /// Looks now and then whether the server is back, unless somebody already does.
    pub(super) fn probe(self: &Arc<Self>, runtime: &Handle) {
        // Looked at first, for all cores come by here while the server is away.
        if !self.is_probed.load(Ordering::Relaxed) && !self.is_probed.swap(true, Ordering::AcqRel) {
            runtime.spawn(until_back(Probing(Arc::clone(self))));
        }
    }

    /// Asks for a sign of life, and whether it may be written to.
    async fn is_back(&self) -> Result<(), SessionError> {
        let mut session = self.connect().await?;
        // Each as quickly as a call would have to be answered; a server that stalls in between must not
        // stop us from looking again.
        self.in_time(self.may_write(&mut session)).await?;
        if let Some(address) = self.address() {
            self.in_time(session.require_master(&address)).await?;
        }
        match self.place {
            Place::Alone(_) | Place::Sentinels(_) => {
                self.in_time(session.require_no_cluster()).await
            }
            Place::InCluster(_) => self.in_time(session.require_whole_cluster()).await,
        }
    }

    async fn may_write(&self, session: &mut Session) -> Result<(), SessionError> {
        let text = match session.ask(&MAY_WRITE).await {
            Err(SessionError::Refused(text)) => text,
            asked => return asked.map(drop),
        };
        let fault = ServerFault::of_text(text.as_bytes());
        // A user who need not run scripts may not be let to, and a stand-in for Redis may know no such: the
        // first call will tell.
        let is_beside = fault.is_of_call() || (text.starts_with("NOPERM") && !self.runs_scripts());
        if is_beside {
            session.ask(&["PING"]).await.map(drop)
        } else if is_elsewhere(&fault, &text) {
            // It says so first, and be it full.
            session.ask(&MAY_WRITE_AT_ALL).await.map(drop)
        } else {
            Err(SessionError::Refused(text))
        }
    }

    async fn in_time<T>(
        &self,
        asking: impl Future<Output = Result<T, SessionError>>,
    ) -> Result<T, SessionError> {
        let asked = timeout(self.manners.timeout, asking).await;
        asked.unwrap_or(Err(SessionError::Late))
    }
}

/// Whether the key is another server's, or nobody's, so that this one does its part.
fn is_elsewhere(fault: &ServerFault, text: &str) -> bool {
    fault.redirection().is_some() || text.starts_with("CLUSTERDOWN Hash slot not served")
}

async fn until_back(probing: Probing) {
    let server = &probing.0;
    let mut wait = first_wait(server.breaker.relapses());
    loop {
        pause(jittered(wait)).await;
        if server.is_closed() {
            return;
        }
        match server.is_back().await {
            Ok(()) => break,
            // What is wrong by now, for whoever asks: a server that died may come back and refuse us.
            Err(reason) => server.breaker.still_fails(&reason),
        }
        wait = twice(wait);
    }
    let open_for = server.breaker.close(now());
    match server.manners.changes {
        Changes::Logged => info!(server = %server, ?open_for, "Redis is back and asked again"),
        Changes::Untold => debug!(server = %server, ?open_for, "it is back"),
    }
}

/// How long to wait at first for a server that relapsed so often: one that comes and goes is not to be asked
/// and logged about all the time.
fn first_wait(relapses: u32) -> Duration {
    // After a few it is as long as it gets.
    (0..relapses.min(8)).fold(FIRST_WAIT, |wait, _| twice(wait))
}

fn twice(wait: Duration) -> Duration {
    (wait * 2).min(LONGEST_WAIT)
}

/// Up to a quarter more, so that nodes that lost a server together do not all come back at once.
fn jittered(wait: Duration) -> Duration {
    let random = RandomState::new().hash_one(wait) % 256;
    wait + wait * u32::try_from(random).unwrap_or_default() / 1024
}

// === impl Probing ===

impl Drop for Probing {
    fn drop(&mut self) {
        self.0.is_probed.store(false, Ordering::Release);
    }
}
