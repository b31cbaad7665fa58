//! The admin listener: what operators see and change, apart from the traffic.
//!
//! `route` lists every path, `guard` says who may ask, `pages` and `api` answer, `fault` is the only place
//! where an error becomes a status, `audit` writes down every change. What only the program around knows
//! comes through [`AdminHooks`]. It is hyper without a framework: see docs/adr/0010-admin-without-a-framework.md.

mod api;
mod audit;
mod body;
mod fault;
mod guard;
mod hooks;
mod pages;
mod query;
mod reply;
mod respond;
mod route;
mod timestamp;
mod view;
mod wrong_tokens;

use std::convert::Infallible;
use std::fmt;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tidegate_gateway::{ConnectionActivity, Gateway};
use tidegate_limiter::{Limiter, Store};
use tidegate_observe::{LogSampler, Observatory};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::Address;
use crate::activity::ActiveRequest;
use crate::drain::Drain;
use crate::lingering::Lingering;
use crate::peer::Peer;
use crate::write_timeout::WriteTimeoutStream;
use route::{Access, Endpoint, Route};
use wrong_tokens::WrongTokens;

pub use hooks::{AdminHooks, ReloadOutcome, ReloadReport, ReloadTrigger, Reloading, StateReport};
pub use timestamp::rfc3339;

/// Who may ask what over the admin listener.
#[derive(Clone, Debug, Default)]
pub struct AdminConfig {
    /// What a change must bring along as `Authorization: Bearer …`. Without one, changes are taken
    /// only where nobody but this machine reaches the listener.
    pub token: Option<AdminToken>,
    /// Whether reading needs the token too.
    pub reads: AdminReads,
    /// Who can reach the listener.
    pub reach: AdminReach,
    /// The log lines of requests that were turned away.
    pub turned_away: Arc<LogSampler>,
}

/// Who may read over the admin listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdminReads {
    /// Everybody who can reach it.
    #[default]
    Open,
    /// Who brings the token along. `/healthcheck` and `/readyz` stay open for probes.
    WithToken,
}

/// Who can reach the admin listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdminReach {
    /// Other machines.
    #[default]
    Network,
    /// This machine only: it listens on a loopback address or a unix socket.
    ThisMachine,
}

/// A bearer token. It does not show in a log.
#[derive(Clone)]
pub struct AdminToken {
    text: Box<str>,
    wrong: Arc<WrongTokens>,
}

/// All that the admin listener's connections share.
#[derive(Debug)]
pub struct Admin<S> {
    /// Who decides.
    pub limiter: Arc<Limiter<S>>,
    /// What was seen.
    pub observatory: Arc<Observatory>,
    /// What the program around does.
    pub hooks: Arc<dyn AdminHooks>,
    /// The gateway, if there is one.
    pub gateway: Option<Arc<Gateway>>,
    /// Who may ask what.
    pub config: AdminConfig,
}

/// What is there to be asked for at a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All of it.
    Everything,
    /// Metrics and health.
    Metrics,
}

/// What the requests of one connection share.
struct Visit<S> {
    admin: Arc<Admin<S>>,
    peer: Peer,
    scope: Scope,
    drain: Drain,
    activity: Arc<ConnectionActivity>,
}

/// Bytes of a request's head. A query names a rule and a domain, no more.
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// How long a client may take over the head of a request, the idle time before it included.
const HEAD_TIMEOUT: Duration = Duration::from_mins(1);

/// How long a client may take nothing of an answer that waits for it.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves one connection until it closes. Once the drain has begun, that is after the next answer, or when the drain's grace is over.
pub(crate) async fn serve_connection<S, I>(
    io: I,
    peer: Peer,
    scope: Scope,
    admin: Arc<Admin<S>>,
    activity: Arc<ConnectionActivity>,
    mut drain: Drain,
) where
    S: Store + 'static,
    I: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let visit = Rc::new(Visit {
        admin,
        peer,
        scope,
        drain: drain.clone(),
        activity: Arc::clone(&activity),
    });
    let service = service_fn(|request| {
        let (visit, active) = (Rc::clone(&visit), ActiveRequest::begin(&activity));
        async move {
            let mut answer = respond::respond(request, &visit).await;
            visit.drain.mark(&mut answer);
            drop(active);
            Ok::<_, Infallible>(answer)
        }
    });
    let io = WriteTimeoutStream::new(io, WRITE_TIMEOUT, Arc::clone(&activity));
    let io = Lingering::new(io, drain.clone());
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(io), service);
    let mut connection = pin!(connection);
    // A client that breaks off or speaks no HTTP is its own affair; hyper has answered it.
    tokio::select! {
        biased;
        _ = connection.as_mut() => return,
        () = drain.closing_and_caught_up() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

// === impl Scope ===

impl Scope {
    fn has(self, route: &Route) -> bool {
        match self {
            Self::Everything => true,
            Self::Metrics => {
                route.access == Access::Probe || matches!(route.endpoint, Endpoint::Metrics)
            }
        }
    }
}

// === impl AdminReach ===

impl AdminReach {
    /// Who can reach a listener at `address`.
    pub fn of(address: &Address) -> Self {
        match address {
            Address::Unix(_) => Self::ThisMachine,
            Address::Tcp(address) if address.ip().to_canonical().is_loopback() => Self::ThisMachine,
            Address::Tcp(_) => Self::Network,
        }
    }
}

// === impl AdminToken ===

impl AdminToken {
    /// A token, if it can be sent in a header: not empty, visible ASCII, no spaces.
    pub fn new(token: &str) -> Option<Self> {
        let is_sendable = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        is_sendable.then(|| Self {
            text: token.into(),
            wrong: Arc::default(),
        })
    }
}

impl AdminToken {
    /// The value of the header `Authorization` that brings the token.
    pub fn authorization(&self) -> String {
        format!("Bearer {}", self.text)
    }
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("AdminToken(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_cannot_be_sent_is_none() {
        for token in ["", "two words", "line\n", "\u{e9}t\u{e9}"] {
            assert!(AdminToken::new(token).is_none(), "{token:?}");
        }
        let token = AdminToken::new("open-sesame").unwrap();
        assert_eq!(format!("{token:?}"), "AdminToken(…)");
    }

    #[test]
    fn only_loopback_and_unix_sockets_are_this_machine() {
        let reach = |text: &str| AdminReach::of(&text.parse().unwrap());
        for near in [
            "127.0.0.1:1",
            "127.9.9.9:1",
            "[::1]:1",
            "[::ffff:127.0.0.1]:1",
            "unix:/x",
        ] {
            assert_eq!(reach(near), AdminReach::ThisMachine, "{near}");
        }
        for far in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1"] {
            assert_eq!(reach(far), AdminReach::Network, "{far}");
        }
    }
}
