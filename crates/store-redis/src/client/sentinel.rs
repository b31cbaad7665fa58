//! The place of the master, by asking Sentinels.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::Address;
use super::config::Credentials;
use super::server::Manners;
use super::session::{Session, SessionError, lossy};
use super::time::now;
use super::wire::Reply;

/// Sentinels, and the master as far as it is known.
#[derive(Debug)]
pub(crate) struct Sentinels {
    /// The name of the master.
    master: String,
    credentials: Option<Credentials>,
    /// Those of the URL.
    addresses: Vec<Address>,
    /// The one to ask first: that which was right last, or the one after that which was not.
    first: AtomicUsize,
    known: Mutex<Known>,
}

/// The master as far as it is known.
#[derive(Debug, Default)]
struct Known {
    /// The master that was connected to last, or that was promoted since.
    master: Option<Address>,
    /// The master before it, which Sentinels still name until their failover is over, and since when.
    replaced: Option<(Address, Instant)>,
}

/// A master that was replaced is believed to be one again if Sentinels still name it after this time.
const LONGEST_FAILOVER: Duration = Duration::from_mins(1);

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
            known: Mutex::default(),
        }
    }

    /// The name of the master.
    pub(crate) fn master(&self) -> &str {
        &self.master
    }

    /// The Sentinels of the URL.
    pub(crate) fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// The address of the master, as far as it is known.
    pub(crate) fn found(&self) -> Option<Address> {
        self.known().master.clone()
    }

    /// Connects to the master: to one that was promoted just now, else asks the Sentinels in turn, and believes
    /// the first one whose master says of itself that it is.
    pub(crate) async fn connect(&self, manners: &Manners) -> Result<Session, SessionError> {
        let promoted = self.known().promoted();
        if let Some(promoted) = promoted {
            match self.connect_to(&promoted, manners).await {
                Ok(session) => return Ok(session),
                // The failover came to nothing.
                Err(_) => self.known().replaced = None,
            }
        }
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

    /// The new master, if a Sentinel that answers names another one than is known.
    pub(crate) async fn new_master(&self, manners: &Manners) -> Option<Address> {
        for sentinel in self.in_turn() {
            let asked = self.ask(&self.addresses[sentinel], manners);
            if let Ok(Ok(address)) = timeout(manners.connect_timeout, asked).await {
                let is_new = self.known().is_new(&address);
                return is_new.then_some(address);
            }
        }
        None
    }

    /// Takes note that a server is the master from now on. Returns `false` if that was known.
    pub(crate) fn promote(&self, address: &Address) -> bool {
        let mut known = self.known();
        if known.master.as_ref() == Some(address) {
            return false;
        }
        let replaced = known.master.replace(address.clone());
        known.replaced = replaced.map(|replaced| (replaced, now()));
        true
    }

    /// Connects to a Sentinel.
    pub(crate) async fn open(
        &self,
        sentinel: &Address,
        manners: &Manners,
    ) -> Result<Session, SessionError> {
        let opening = Session::open(sentinel, manners.tls.as_ref(), self.credentials.as_ref());
        let opened = timeout(manners.connect_timeout, opening).await;
        opened.unwrap_or(Err(SessionError::Late))
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
        self.connect_to(&address, manners).await
    }

    async fn connect_to(
        &self,
        address: &Address,
        manners: &Manners,
    ) -> Result<Session, SessionError> {
        let mut session = manners.open(address).await?;
        session.require_master(address).await?;
        let mut known = self.known();
        if known.is_replaced(address) {
            // It was while we connected.
            return Err(SessionError::Renewed);
        }
        known.master = Some(address.clone());
        Ok(session)
    }

    async fn ask(&self, sentinel: &Address, manners: &Manners) -> Result<Address, SessionError> {
        let question = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", &self.master];
        let asking = async {
            let mut session = self.open(sentinel, manners).await?;
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

    fn known(&self) -> MutexGuard<'_, Known> {
        // No panic can happen while it is held.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Known ===

impl Known {
    /// The master, if it was promoted by a failover that may not be over.
    fn promoted(&self) -> Option<Address> {
        self.replaced.as_ref().and(self.master.clone())
    }

    /// Whether a server was the master and is not any more, whatever Sentinels say.
    fn is_replaced(&self, address: &Address) -> bool {
        let is_it = |(replaced, since): &(Address, Instant)| {
            replaced == address && now().duration_since(*since) < LONGEST_FAILOVER
        };
        self.replaced.as_ref().is_some_and(is_it)
    }

    /// Whether a master that a Sentinel names is another than is known. One that it confirms ends the failover.
    fn is_new(&mut self, address: &Address) -> bool {
        if self.master.as_ref() == Some(address) {
            self.replaced = None;
        }
        self.master.as_ref().is_some_and(|known| known != address) && !self.is_replaced(address)
    }
}

/// The address that a Sentinel replies with, if it knows the master.
pub(super) fn master(reply: &Reply) -> Option<Address> {
    let mut place = reply.array().ok()?;
    let (host, port) = (place.next()?, place.next()?);
    Some(Address::tcp(host.str()?, port.str()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_master_that_was_replaced_is_not_believed_until_the_failover_is_over() {
        let (old, new) = (Address::tcp("a", 1), Address::tcp("b", 2));
        let sentinels = Sentinels::new(Vec::new(), "main".to_owned(), None);
        assert!(sentinels.promote(&old));
        assert_eq!(sentinels.known().promoted(), None, "it replaced nobody");
        assert!(sentinels.promote(&new));
        assert!(!sentinels.promote(&new), "it is known");
        assert_eq!(sentinels.found(), Some(new.clone()));
        let mut known = sentinels.known();
        assert_eq!(known.promoted(), Some(new.clone()));
        assert!(!known.is_new(&old), "the Sentinels are not that far");
        assert!(!known.is_new(&new));
        assert_eq!(known.promoted(), None, "the failover is over");
        assert!(known.is_new(&old), "and this is another one");
    }
}
