//! Speaks to Redis: what waits at one moment goes out as one write.
//!
//! A [`Client`] has a connection for each runtime that asks it and each server that it asks: a decision
//! never crosses threads. Everything is bounded: how long a call takes, how many wait, how long a reply is. A
//! server that fails is not asked until it is back.

mod address;
mod breaker;
mod config;
mod fault;
mod lanes;
mod link;
mod report;
mod script;
mod server;
mod session;
mod stats;
mod stream;
mod time;
mod tls;
mod url;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tidegate_store::StoreError;

pub use address::Address;
pub use breaker::BreakerState;
pub use config::{ClientConfig, Credentials, Deployment, TlsOptions, Verification};
pub use report::ServerReport;
pub use script::Script;
pub use stats::{Counts, Latency};
pub use tls::TlsError;
pub use url::UrlError;
pub use wire::{Array, Command, Reply, Value, WireFault};

use fault::ServerFault;
use link::{Asking, Link, Preface};
use server::{Manners, Place, Server};
pub(crate) use session::{Session, SessionError};
use tls::Tls;

/// Asks Redis. Cheap to clone; all clones share their connections, which end with the last of them.
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<Inner>,
    timeout: Duration,
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
    server: Arc<Server>,
}

// === impl Client ===

impl Client {
    /// Makes a client. Connects to nobody yet, but reads the files of TLS, if any.
    pub fn new(config: &ClientConfig) -> Result<Self, TlsError> {
        let manners = Arc::new(Manners {
            credentials: config.credentials.clone(),
            database: config.database,
            tls: config.tls.as_ref().map(Tls::load).transpose()?,
            timeout: config.timeout,
            connect_timeout: config.connect_timeout,
        });
        let Deployment::Single(address) = &config.deployment else {
            unimplemented!("Sentinel and Cluster are under way");
        };
        let server = Server::new(Place::Fixed(address.clone()), manners);
        Ok(Self {
            inner: Arc::new(Inner { server }),
            timeout: config.timeout,
        })
    }

    /// The same client, whose calls may take this long.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            timeout,
        }
    }

    /// How long its calls may take.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// How many servers there are to ask, for whoever has to ask all of them.
    pub fn servers(&self) -> usize {
        1
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
        let link = self.link(route)?;
        let call = link.send(Preface::None, Asking::No, self.timeout, write)?;
        reply(call.await?).map_err(StoreError::from)
    }

    /// Runs a script. `write` adds the number of keys, the keys and the arguments; it may run more than
    /// once, and must not ask anything itself.
    ///
    /// Each connection sends the script itself ahead of its first call of it; after that, its name.
    pub async fn eval<W>(
        &self,
        route: Route<'_>,
        script: &Script,
        write: W,
    ) -> Result<Reply, StoreError>
    where
        W: Fn(&mut Command<'_>) + Send,
    {
        let link = self.link(route)?;
        let by_name = |command: &mut Command<'_>| {
            command.arg("EVALSHA").arg(script.sha());
            write(command);
        };
        let call = link.send(Preface::Script(script), Asking::No, self.timeout, by_name)?;
        match reply(call.await?) {
            Ok(reply) => Ok(reply),
            Err(fault) if fault.is_no_script() => {
                // Somebody made Redis forget its scripts while we were connected.
                let in_full = |command: &mut Command<'_>| {
                    command.arg("EVAL").arg(script.body());
                    write(command);
                };
                let call = link.send(Preface::None, Asking::No, self.timeout, in_full)?;
                reply(call.await?).map_err(StoreError::from)
            }
            Err(fault) => Err(fault.into()),
        }
    }

    /// A connection of one's own to the server, for what cannot share one.
    pub(crate) async fn connect(&self, _route: Route<'_>) -> Result<Session, SessionError> {
        self.inner.server.connect().await
    }

    /// How each server fares.
    pub fn report(&self) -> Vec<ServerReport> {
        vec![self.inner.server.report()]
    }

    fn link(&self, _route: Route<'_>) -> Result<Arc<Link>, StoreError> {
        self.inner.server.link()
    }
}

// === impl Inner ===

impl Drop for Inner {
    fn drop(&mut self) {
        self.server.close();
    }
}

fn reply(frame: Bytes) -> Result<Reply, ServerFault> {
    match ServerFault::of_frame(&frame) {
        Some(fault) => Err(fault),
        None => Ok(Reply::new(frame)),
    }
}
