//! Where the master is, by asking Sentinels.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::timeout;

use super::Address;
use super::config::Credentials;
use super::server::Manners;
use super::session::{Session, SessionError, lossy};
use super::wire::Reply;

/// Those who know where the master is.
#[derive(Debug)]
pub(crate) struct Sentinels {
    addresses: Vec<Address>,
    /// What they call the master.
    master: String,
    credentials: Option<Credentials>,
    /// The one to ask first: that which was right last, or the one after that which was not.
    first: AtomicUsize,
    found: Mutex<Option<Address>>,
}

// === impl Sentinels ===

impl Sentinels {
    pub(crate) fn new(
        addresses: Vec<Address>,
        master: String,
        credentials: Option<Credentials>,
    ) -> Self {
        Self {
            addresses,
            master,
            credentials,
            first: AtomicUsize::new(0),
            found: Mutex::new(None),
        }
    }

    /// The name of the master.
    pub(crate) fn master(&self) -> &str {
        &self.master
    }

    /// Where the master was when last connected to.
    pub(crate) fn found(&self) -> Option<Address> {
        self.place().clone()
    }

    /// Connects to the master: asks the Sentinels in turn, and believes the first one whose master says
    /// of itself that it is.
    pub(crate) async fn connect(&self, manners: &Manners) -> Result<Session, SessionError> {
        let mut error = SessionError::NoSentinel;
        for sentinel in self.in_turn() {
            // Should the time run out while its master hangs, it is not believed first the next time.
            self.first.store(sentinel + 1, Ordering::Relaxed);
            match self.connect_by(sentinel, manners).await {
                Ok(session) => {
                    self.first.store(sentinel, Ordering::Relaxed);
                    return Ok(session);
                }
                Err(failure) => error = failure,
            }
        }
        Err(error)
    }

    /// Whether a Sentinel that answers has another master by now.
    pub(crate) async fn has_moved(&self, manners: &Manners) -> bool {
        for sentinel in self.in_turn() {
            let asked = self.ask(&self.addresses[sentinel], manners);
            if let Ok(Ok(address)) = timeout(manners.connect_timeout, asked).await {
                return self.found().is_some_and(|found| found != address);
            }
        }
        false
    }

    async fn connect_by(
        &self,
        sentinel: usize,
        manners: &Manners,
    ) -> Result<Session, SessionError> {
        // One that is dead must leave time for the others.
        let parts = u32::try_from(self.addresses.len()).unwrap_or(u32::MAX);
        let patience = manners.connect_timeout / parts.saturating_add(1);
        let asked = self.ask(&self.addresses[sentinel], manners);
        let address = timeout(patience, asked)
            .await
            .map_err(|_| SessionError::Late)??;
        let mut session = manners.open(&address).await?;
        session.require_master(&address).await?;
        *self.place() = Some(address);
        Ok(session)
    }

    async fn ask(&self, sentinel: &Address, manners: &Manners) -> Result<Address, SessionError> {
        let credentials = self.credentials.as_ref();
        let question = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", &self.master];
        let asking = async {
            let tls = manners.tls.as_ref();
            let mut session = Session::open(sentinel, tls, credentials).await?;
            session.ask(&question).await
        };
        let reply = asking.await.map_err(|error| match error {
            // The master has a password of its own.
            SessionError::Refused(text) => {
                SessionError::Refused(format!("{text} (says the Sentinel at {sentinel})").into())
            }
            error => error,
        })?;
        master(&reply).ok_or_else(|| SessionError::UnknownMaster {
            sentinel: sentinel.clone(),
            master: lossy(self.master.as_bytes()),
        })
    }

    fn in_turn(&self) -> impl Iterator<Item = usize> + use<> {
        let (first, count) = (self.first.load(Ordering::Relaxed), self.addresses.len());
        (0..count).map(move |step| (first + step) % count)
    }

    fn place(&self) -> MutexGuard<'_, Option<Address>> {
        // No panic can happen while it is held.
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a Sentinel says the master is, if it knows.
pub(super) fn master(reply: &Reply) -> Option<Address> {
    let mut place = reply.array().ok()?;
    let (host, port) = (place.next()?, place.next()?);
    Some(Address::tcp(host.str()?, port.str()?.parse().ok()?))
}
