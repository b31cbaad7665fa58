//! Whether Redis lets us in: asked once at start, when somebody is there to read what is wrong.

use std::io;
use std::time::Duration;

use tokio::time::timeout;

use super::Client;
use super::fault::is_crowded;
use super::session::SessionError;
use super::topology::Topology;

/// Why Redis does not let us in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KnockError {
    /// It is not there. It may be later.
    #[error("{0}")]
    Absent(String),
    /// Whoever is there has no use for us: waiting does not help.
    #[error("{0}")]
    Turned(String),
}

// === impl Client ===

impl Client {
    /// Connects once, within `patience`, and says who we are. Opens nothing that stays.
    ///
    /// One that is not there is not asked from then on until it is, and no line of the log says so but the
    /// caller's.
    pub async fn knock(&self, patience: Duration) -> Result<(), KnockError> {
        let topology = &self.inner.topology;
        let knocked = timeout(patience, topology.knock()).await;
        let error = match knocked.unwrap_or(Err(SessionError::Late)) {
            Ok(()) => return Ok(()),
            Err(error) => KnockError::from(error),
        };
        if let KnockError::Absent(reason) = &error {
            topology.give_up(reason);
        }
        Err(error)
    }
}

// === impl Topology ===

impl Topology {
    async fn knock(&self) -> Result<(), SessionError> {
        match self {
            Self::One(server) => server.ping().await,
            Self::Many(cluster) => cluster.ask_around().await,
        }
    }
}

// === impl KnockError ===

impl From<SessionError> for KnockError {
    fn from(error: SessionError) -> Self {
        if is_lasting(&error) {
            Self::Turned(error.to_string())
        } else {
            Self::Absent(error.to_string())
        }
    }
}

/// Whether it is the same however long one waits: what somebody wrote is wrong.
fn is_lasting(error: &SessionError) -> bool {
    match error {
        SessionError::NoRedis(_)
        | SessionError::Untrusted { .. }
        | SessionError::NoSentinel
        | SessionError::UnknownMaster { .. }
        | SessionError::NoSlots
        | SessionError::InCluster => true,
        // What TLS could make nothing of: a certificate of ours that is missing, or no TLS at all.
        SessionError::Unreachable { reason, .. } | SessionError::Lost(reason) => {
            reason.kind() == io::ErrorKind::InvalidData
        }
        SessionError::Refused(text) => {
            let word = text.split(' ').next().unwrap_or_default();
            // An error without a word of its own is about the command, and we asked for little: to
            // come in, a database, a sign of life. Only that too many others came in is no fault of ours.
            matches!(word, "NOAUTH" | "WRONGPASS" | "NOPERM" | "DENIED" | "ERR")
                && !is_crowded(text)
        }
        SessionError::Late
        | SessionError::LateOverTls
        | SessionError::Stalled
        | SessionError::Closed
        | SessionError::NoMaster { .. }
        | SessionError::ClusterDown
        | SessionError::Unasked
        | SessionError::Renewed => false,
    }
}
