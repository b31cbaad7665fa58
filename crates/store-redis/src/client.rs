//! Speaks to Redis: what waits at one moment goes out as one write.
//!
//! A [`Client`] has a connection for each runtime that asks it and each server that it asks: a decision
//! never crosses threads. Everything is bounded: how long a call takes, how many wait, how long a reply is. A
//! server that fails is not asked until it is back.

mod address;
mod breaker;
mod change_log;
mod cluster;
mod config;
mod dispatch;
mod fault;
mod form;
mod info;
mod knock;
mod lanes;
mod link;
#[cfg(feature = "test-util")]
pub(crate) mod readers;
mod script;
mod sentinel;
mod server;
mod session;
mod slot;
mod stats;
mod stream;
mod time;
mod timeout;
mod tls;
mod topology;
mod unclaimed;
mod url;
mod wire;

use std::sync::{Arc, Weak};
use std::time::Duration;

use tidegate_store::StoreError;
use tidegate_store::report::{ServerInfo, ServerReport};

pub use address::Address;
pub use config::{Changes, ClientConfig, Credentials, Deployment, TlsOptions, Verification};
pub use knock::KnockError;
pub use script::{Joinable, Script};
pub use slot::{SLOTS, slot_of};
pub use tls::TlsError;
pub use url::UrlError;
pub use wire::{Array, Command, Reply, Value, WireFault};

use change_log::ChangeLog;
use form::Form;
pub(crate) use link::no_runtime;
use link::{Asking, Question};
use server::{Manners, Server};
pub(crate) use session::{Session, SessionError};
pub(crate) use time::pause;
use time::{Span, now};
pub(crate) use tls::Tls;
use topology::Topology;
pub(crate) use unclaimed::Unclaimed;

/// Asks Redis. Cheap to clone; all clones share their connections, which end with the last of them.
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<Inner>,
    timeout: CallTimeout,
}

/// A client that does not keep its connections: for what one of them keeps.
#[derive(Debug)]
pub(crate) struct WeakClient {
    inner: Weak<Inner>,
    timeout: CallTimeout,
}

/// The timeout of the calls of a client.
#[derive(Clone, Copy, Debug)]
enum CallTimeout {
    /// That of each server, which adapts to the time that its replies take.
    Adaptive,
    /// One that somebody chose.
    Fixed(Duration),
}

/// Who is to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route<'a> {
    /// Whoever it is.
    Any,
    /// The server that has this key.
    Key(&'a [u8]),
    /// The server of this number, from 0 on: see [`Client::servers`].
    Server(usize),
}

#[derive(Debug)]
struct Inner {
    topology: Topology,
    /// The longest timeout of a call.
    max_timeout: Duration,
}

// === impl Client ===

impl Client {
    /// Makes a client. Connects to nobody yet, but reads the files of TLS, if any.
    pub fn new(config: &ClientConfig) -> Result<Self, TlsError> {
        let manners = Arc::new(Manners {
            credentials: config.credentials.clone(),
            database: config.database,
            tls: config.tls.as_ref().map(Tls::load).transpose()?,
            timeouts: config.timeouts(),
            connect_timeout: config
                .connect_timeout
                .unwrap_or(ClientConfig::CONNECT_TIMEOUT),
            changes: config.changes,
            change_log: ChangeLog::new(now()),
        });
        let topology = Topology::new(config, manners);
        let max_timeout = config.timeouts().max;
        Ok(Self {
            inner: Arc::new(Inner {
                topology,
                max_timeout,
            }),
            timeout: CallTimeout::Adaptive,
        })
    }

    /// The same client, whose calls have this timeout, however fast replies are.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            timeout: CallTimeout::Fixed(timeout),
        }
    }

    /// The same, which does not keep its connections.
    pub(crate) fn downgrade(&self) -> WeakClient {
        WeakClient {
            inner: Arc::downgrade(&self.inner),
            timeout: self.timeout,
        }
    }

    /// The longest that a call can take.
    fn max_timeout(&self) -> Duration {
        match self.timeout {
            CallTimeout::Adaptive => self.inner.max_timeout,
            CallTimeout::Fixed(timeout) => timeout,
        }
    }

    /// The time that a call to a server may take from now on.
    fn span(&self, server: &Server) -> Span {
        Span::new(match self.timeout {
            CallTimeout::Adaptive => server.timeout().get(),
            CallTimeout::Fixed(timeout) => timeout,
        })
    }

    /// Whether keys lie in slots, so that one call reaches only the keys of one slot.
    pub fn is_cluster(&self) -> bool {
        matches!(self.inner.topology, Topology::Many(_))
    }

    /// How many servers there are to ask, for whoever has to ask all of them; 0 for a Cluster that
    /// nobody has asked yet.
    pub fn servers(&self) -> usize {
        self.inner.topology.servers().len()
    }

    /// Asks one thing. `write` says what; it may run more than once, and must not ask anything itself.
    ///
    /// # Errors
    /// Whatever is not an answer: no server, no reply in time, or a reply that is an error.
    ///
    /// # Cancel safety
    /// Dropped, the command may or may not have been carried out.
    pub async fn call<W>(&self, route: Route<'_>, write: W) -> Result<Reply, StoreError>
    where
        W: Fn(&mut Command<'_>) + Send,
    {
        self.dispatch(route, Form::Plain, None, write).await
    }

    /// Runs a script. `write` adds the number of keys, the keys and the arguments; it may run more than
    /// once, and must not ask anything itself.
    ///
    /// Each connection sends the script itself ahead of its first call of it; after that, its name. Errors
    /// and cancelling are as of [`call`](Self::call).
    pub async fn eval<W>(
        &self,
        route: Route<'_>,
        script: &Script,
        write: W,
    ) -> Result<Reply, StoreError>
    where
        W: Fn(&mut Command<'_>) + Send,
    {
        self.eval_claimed(route, script, None, write).await
    }

    /// As [`eval`](Self::eval); `unclaimed`, if any, hears of a reply that comes when the time of the call is up,
    /// or who waited for it has gone.
    pub(crate) async fn eval_claimed<W>(
        &self,
        route: Route<'_>,
        script: &Script,
        unclaimed: Option<&Unclaimed>,
        write: W,
    ) -> Result<Reply, StoreError>
    where
        W: Fn(&mut Command<'_>) + Send,
    {
        self.dispatch(route, Form::ByName(script), unclaimed, write)
            .await
    }

    /// Runs a script on one key, with one argument and, in tests, something `besides`. Such calls that wait at
    /// one moment go out as one command, but for those to a Cluster, whose keys lie in many slots; each has its own
    /// reply, or its own error.
    ///
    /// Errors and cancelling are as of [`call`](Self::call).
    pub async fn eval_joined(
        &self,
        script: &Joinable,
        key: &[u8],
        argument: &[u8],
        besides: Option<&[u8]>,
    ) -> Result<Reply, StoreError> {
        let question = Question {
            key,
            argument,
            besides,
        };
        let form = if self.is_cluster() {
            Form::ByName(script.alone())
        } else {
            Form::Joined(script, question)
        };
        let write = |command: &mut Command<'_>| question.write(command);
        self.dispatch(Route::Key(key), form, None, write).await
    }

    /// A connection of one's own to a server, for what cannot share one.
    pub(crate) async fn connect(&self, route: Route<'_>) -> Result<Session, SessionError> {
        let patience = self.max_timeout().max(ClientConfig::CONNECT_TIMEOUT);
        let server = self.inner.topology.find(route, patience).await;
        let server = server.map_err(|error| SessionError::Refused(error.to_string().into()))?;
        server.connect().await
    }

    /// How each server fares.
    pub fn report(&self) -> Vec<ServerReport> {
        self.inner.topology.report()
    }

    /// Whether every server is asked.
    pub(crate) fn is_whole(&self) -> bool {
        self.inner.topology.is_whole()
    }

    /// Asks each server how it is, for [`report`](Self::report). One that does not say is left as it was.
    pub async fn refresh_info(&self) {
        for server in self.inner.topology.servers() {
            if let Ok(info) = self.info_of(&server).await {
                server.told(info);
            }
        }
    }

    async fn info_of(&self, server: &Arc<Server>) -> Result<ServerInfo, StoreError> {
        let question = |command: &mut Command<'_>| {
            command.arg("INFO");
        };
        let span = self.span(server);
        let asked = self.ask(server, Form::Plain, Asking::No, span, None, &question)?;
        info::read(&asked.await??)
    }
}

// === impl WeakClient ===

impl WeakClient {
    /// The client, while anybody has it.
    pub(crate) fn upgrade(&self) -> Option<Client> {
        let inner = self.inner.upgrade()?;
        let timeout = self.timeout;
        Some(Client { inner, timeout })
    }
}

// === impl Inner ===

impl Drop for Inner {
    fn drop(&mut self) {
        self.topology.close();
    }
}
