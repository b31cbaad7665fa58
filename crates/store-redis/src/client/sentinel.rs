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

    /// Connects to the master: to one that was promoted just now and does not say that it is a replica, else asks
    /// the Sentinels in turn, and believes the first one whose master says of itself that it is.
    pub(crate) async fn connect(&self, manners: &Manners) -> Result<Session, SessionError> {
        let promoted = self.known().promoted();
        if let Some(promoted) = promoted {
            match self.connect_to(&promoted, manners).await {
                // The failover came to nothing.
                Err(SessionError::NoMaster { .. }) => self.known().replaced = None,
                // Other failures may be over soon, and what the old master is charged until then is lost.
                connected => return connected,
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
        let (replaced, _) = self.replaced.as_ref()?;
        self.master.clone().filter(|_| self.is_replaced(replaced))
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
    use std::sync::Arc;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::time::{advance, pause, resume};

    use super::*;
    use crate::client::change_log::ChangeLog;
    use crate::client::config::Changes;
    use crate::client::timeout::TimeoutBounds;
    use crate::test_util::PATIENCE;

    /// A server that has one reply to everything, or that closes every connection.
    struct FakeServer {
        address: Address,
        reply: Arc<Mutex<Option<String>>>,
    }

    impl FakeServer {
        async fn start(reply: Option<String>) -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let port = listener.local_addr().expect("it is bound").port();
            let reply = Arc::new(Mutex::new(reply));
            let current = Arc::clone(&reply);
            tokio::spawn(async move {
                while let Ok((mut client, _)) = listener.accept().await {
                    let reply = current.lock().expect("nobody panics").clone();
                    if let Some(reply) = reply {
                        let _ = client.read(&mut [0; 1024]).await;
                        let _ = client.write_all(reply.as_bytes()).await;
                    }
                }
            });
            Self {
                address: Address::tcp("127.0.0.1", port),
                reply,
            }
        }
    }

    fn array(words: &[&str]) -> String {
        let bulk = |word: &&str| format!("${}\r\n{word}\r\n", word.len());
        let bulks: String = words.iter().map(bulk).collect();
        format!("*{}\r\n{bulks}", words.len())
    }

    fn manners() -> Manners {
        Manners {
            credentials: None,
            database: 0,
            tls: None,
            timeouts: TimeoutBounds {
                min: PATIENCE,
                max: PATIENCE,
            },
            connect_timeout: PATIENCE,
            change_log: ChangeLog::new(now()),
            changes: Changes::Logged,
        }
    }

    /// The old master, the promoted server, which closes every connection, and what a client knows in a failover that
    /// its Sentinel has not finished.
    async fn failover() -> (FakeServer, FakeServer, Sentinels) {
        let old = FakeServer::start(Some(array(&["master"]))).await;
        let promoted = FakeServer::start(None).await;
        let Address::Tcp { host, port } = &old.address else {
            unreachable!("it listens on TCP");
        };
        let named = array(&[host, &port.to_string()]);
        let sentinel = FakeServer::start(Some(named)).await;
        let sentinels = Sentinels::new(vec![sentinel.address], "main".to_owned(), None);
        sentinels.promote(&old.address);
        sentinels.promote(&promoted.address);
        (old, promoted, sentinels)
    }

    /// While the promoted server cannot be reached, the old master took charges that were lost.
    #[tokio::test]
    async fn a_promoted_server_that_cannot_be_reached_is_waited_for() {
        let (old, promoted, sentinels) = failover().await;
        for _ in 0..3 {
            assert!(sentinels.connect(&manners()).await.is_err());
        }
        assert_eq!(sentinels.found(), Some(promoted.address));
        pause();
        advance(LONGEST_FAILOVER).await;
        resume();
        assert!(sentinels.connect(&manners()).await.is_ok());
        assert_eq!(sentinels.found(), Some(old.address), "the failover failed");
    }

    #[tokio::test]
    async fn a_promoted_server_that_is_a_replica_again_is_forgotten() {
        let (old, promoted, sentinels) = failover().await;
        *promoted.reply.lock().unwrap() = Some(array(&["slave"]));
        assert!(sentinels.connect(&manners()).await.is_ok());
        assert_eq!(sentinels.found(), Some(old.address));
    }

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
