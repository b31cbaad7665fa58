//! Looks whether a server that failed is back.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::timeout;

use super::{Place, Server};
use crate::client::fault::ServerFault;
use crate::client::session::{Session, SessionError};
use crate::client::time::{now, pause};

/// The time between the starts of the first two probes: most failures are a moment's.
const FIRST_WAIT: Duration = Duration::from_millis(10);

/// The longest one: a server that is back goes unnoticed for no longer than this and a quarter of it.
const LONGEST_WAIT: Duration = Duration::from_millis(150);

/// The longest first wait for a server that failed as soon as it was back, again and again: each time is a line
/// in the log.
const LONGEST_RELAPSE: Duration = Duration::from_secs(1);

/// The time that a probe waits for its first answer. A server that is stalled answers it as soon as it goes on, so
/// that there is nothing to wait for between two probes.
const FIRST_ANSWER: Duration = Duration::from_secs(1);

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
        let first = timeout(FIRST_ANSWER, self.may_write(&mut session)).await;
        first.unwrap_or(Err(SessionError::Late))?;
        // All others as quickly as a call would have to be answered.
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
        // A user who only reads may not run scripts, and another server that speaks this protocol may not know
        // any: the first call will tell.
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
        let asked = timeout(self.timeout.max(), asking).await;
        asked.unwrap_or(Err(SessionError::Late))
    }
}

/// Whether the key is another server's, or nobody's, so that this one does its part.
fn is_elsewhere(fault: &ServerFault, text: &str) -> bool {
    fault.redirection().is_some() || text.starts_with("CLUSTERDOWN Hash slot not served")
}

async fn until_back(probing: Probing) {
    let server = &probing.0;
    let mut wait = FIRST_WAIT;
    pause(first_wait(server.breaker.relapses())).await;
    while server.breaker.is_open() && !server.is_closed() {
        let next = now() + jittered(wait);
        match server.is_back().await {
            Ok(()) => {
                if let Some(open_for) = server.breaker.close(now()) {
                    server.log_closed(open_for);
                }
                return;
            }
            // The fault by now, for operators: a server that died may come back and refuse us.
            Err(reason) => {
                server.breaker.still_fails(&reason);
                server.log_open(&reason);
            }
        }
        pause(next.duration_since(now())).await;
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

/// The time before the first probe: none, or longer with every relapse, up to a bound.
fn first_wait(relapses: u32) -> Duration {
    match relapses {
        0 => Duration::ZERO,
        // After a few it is as long as it gets.
        _ => (FIRST_WAIT * 2_u32.pow(relapses.min(8))).min(LONGEST_RELAPSE),
    }
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
