//! Notices that there is a new version, on a connection of their own: one that listens can ask nothing.

use tokio::time::timeout;

use super::TIMEOUT;
use crate::client::{Client, Route, Session, SessionError};

/// A connection on which Redis tells of new versions.
#[derive(Debug)]
pub struct Notices(Session);

/// No more notices will come.
#[derive(Debug, thiserror::Error)]
#[error("no notices of new versions can be had: {0}")]
pub struct NoticesLost(SessionError);

// === impl Notices ===

impl Notices {
    /// Listens at the server that would be asked, for where there are several, each tells all.
    pub(super) async fn listen(
        client: &Client,
        route: Route<'_>,
        channel: &str,
    ) -> Result<Self, NoticesLost> {
        let mut session = client.connect(route).await.map_err(NoticesLost)?;
        let words = ["SUBSCRIBE", channel];
        match timeout(TIMEOUT, session.ask(&words)).await {
            Ok(Ok(_)) => Ok(Self(session)),
            Ok(Err(fault)) => Err(NoticesLost(fault)),
            Err(_) => Err(NoticesLost(SessionError::Late)),
        }
    }

    /// Ready when there is a notice. What it says does not matter: what is newest is to be asked for.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Result<(), NoticesLost> {
        self.0.next().await.map(drop).map_err(NoticesLost)
    }
}
