//! The admin listener: what operators see and change, apart from the traffic.

mod hooks;

use std::fmt;
use std::sync::Arc;

use tidegate_limiter::{Limiter, Store};
use tidegate_observe::Observatory;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::door::Peer;
use crate::drain::Drain;

pub use hooks::{AdminHooks, ReloadOutcome, ReloadReport, ReloadTrigger, Reloading, StoreReport};

/// Who may change things over the admin listener.
#[derive(Clone, Debug, Default)]
pub struct AdminConfig {
    /// What a change must bring along as `Authorization: Bearer …`. Without one, changes are taken
    /// on loopback addresses and unix sockets only.
    pub token: Option<AdminToken>,
    /// Whether reading needs the token too.
    pub reads: AdminReads,
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

/// A bearer token. It does not show in a log.
#[derive(Clone)]
pub struct AdminToken(Box<str>);

/// All that the admin listener's connections share.
#[derive(Debug)]
pub struct Admin<S> {
    /// Who decides.
    pub limiter: Arc<Limiter<S>>,
    /// What was seen.
    pub observatory: Arc<Observatory>,
    /// What the program around does.
    pub hooks: Arc<dyn AdminHooks>,
    /// Who may change things.
    pub config: AdminConfig,
}

/// Serves one connection until it closes, or until the drain has begun and its request is answered.
pub(crate) async fn serve_connection<S, I>(io: I, peer: Peer, admin: Arc<Admin<S>>, drain: Drain)
where
    S: Store + 'static,
    I: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let _ = (io, peer, admin, drain);
}

// === impl AdminToken ===

impl AdminToken {
    /// A token, if it can be sent in a header: not empty, visible ASCII, no spaces.
    pub fn new(token: &str) -> Option<Self> {
        let is_sendable = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        is_sendable.then(|| Self(token.into()))
    }
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("AdminToken(…)")
    }
}
