//! A connection that is asked one thing at a time: greetings, probes, and questions about the deployment.

use std::io;
use std::sync::Arc;

use bytes::BytesMut;
use tidegate_store::StoreError;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Address;
use super::config::Credentials;
use super::stream::Stream;
use super::tls::{self, Tls};
use super::wire::{Command, Reply, Scanner, WireFault};

/// A connection and what has been read of it.
#[derive(Debug)]
pub(crate) struct Session {
    stream: Stream,
    read: BytesMut,
}

/// Why a server could not be talked to.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum SessionError {
    #[error("cannot connect to {address}: {reason}")]
    Unreachable {
        address: Address,
        reason: Arc<io::Error>,
    },
    #[error(
        "{address} does not prove who it is: {reason}; name the authority of its certificate by ca=FILE, and reach \
         it by a name that the certificate has"
    )]
    Untrusted {
        address: Address,
        reason: Arc<io::Error>,
    },
    #[error("the server did not answer in time")]
    Late,
    /// A server that waits for us to go on speaks no TLS, or is as slow as any other.
    #[error("the server did not answer in time; it may speak no TLS on this port")]
    LateOverTls,
    #[error("the server said nothing for too long while calls waited")]
    Stalled,
    #[error("the connection was lost: {0}")]
    Lost(Arc<io::Error>),
    #[error("the server closed the connection")]
    Closed,
    #[error("this is no Redis: {0}")]
    NoRedis(#[from] WireFault),
    /// It said so itself.
    #[error("{0}")]
    Refused(Arc<str>),
    #[error("{address} is a {role}, not a master; write the address of the master")]
    NoMaster { address: Address, role: Arc<str> },
    #[error("no Sentinel is given")]
    NoSentinel,
    #[error(
        "{sentinel} knows no master of the name {master}; see `sentinel monitor` in its configuration"
    )]
    UnknownMaster { sentinel: Address, master: Arc<str> },
    #[error("the server has no slots; is it part of a Cluster?")]
    NoSlots,
    #[error("this Redis is part of a Cluster; write redis+cluster:// in its URL")]
    InCluster,
    #[error("the Cluster of the server does not serve; see CLUSTER INFO")]
    ClusterDown,
    #[error("the server sent a reply that nobody asked for")]
    Unasked,
    #[error("the connection is made anew")]
    Renewed,
}

/// The role of a server that may be written to.
const MASTER: &str = "master";

// === impl Session ===

impl Session {
    /// Connects and says who we are.
    pub(crate) async fn open(
        address: &Address,
        tls: Option<&Tls>,
        credentials: Option<&Credentials>,
    ) -> Result<Self, SessionError> {
        let stream = Stream::connect(address, tls).await;
        let stream = stream.map_err(|reason| SessionError::unreachable(address, reason))?;
        let mut session = Self {
            stream,
            read: BytesMut::new(),
        };
        if let Some(credentials) = credentials {
            session.authenticate(credentials).await?;
        }
        Ok(session)
    }

    /// The connection, with nothing under way on it.
    pub(crate) fn into_stream(self) -> Stream {
        self.stream
    }

    /// Asks one thing and waits for the answer; an error that the server tells is an error.
    pub(crate) async fn ask(&mut self, words: &[&str]) -> Result<Reply, SessionError> {
        let (mut out, mut body) = (Vec::new(), Vec::new());
        Command::encode(&mut out, &mut body, |command| {
            for word in words {
                command.arg(word);
            }
        });
        self.stream.write_all(&out).await?;
        self.stream.flush().await?;
        let reply = self.next().await?;
        match reply.error() {
            None => Ok(reply),
            Some(text) => Err(SessionError::Refused(lossy(text))),
        }
    }

    /// Waits for what the server says next.
    pub(crate) async fn next(&mut self) -> Result<Reply, SessionError> {
        let mut scanner = Scanner::default();
        loop {
            if let Some(length) = scanner.scan(&self.read)? {
                return Ok(Reply::new(self.read.split_to(length).freeze()));
            }
            if self.stream.read_buf(&mut self.read).await? == 0 {
                return Err(SessionError::Closed);
            }
        }
    }

    /// Makes sure that the server may be written to; `address` is for the error.
    pub(crate) async fn require_master(&mut self, address: &Address) -> Result<(), SessionError> {
        match self.role().await {
            // A user who may not ask: the first write will tell.
            Err(SessionError::Refused(_)) => Ok(()),
            Ok(role) if &*role == MASTER || role.is_empty() => Ok(()),
            Ok(role) => Err(SessionError::NoMaster {
                address: address.clone(),
                role,
            }),
            Err(error) => Err(error),
        }
    }

    /// Whether the server says of itself that it is a master.
    pub(crate) async fn is_master(&mut self) -> Result<bool, SessionError> {
        Ok(&*self.role().await? == MASTER)
    }

    /// The role that the server says it has; empty if it says something else.
    async fn role(&mut self) -> Result<Arc<str>, SessionError> {
        let reply = self.ask(&["ROLE"]).await?;
        let role = reply.array().ok().and_then(|mut array| array.next());
        Ok(lossy(role.and_then(|role| role.text()).unwrap_or_default()))
    }

    /// Makes sure that the server has all keys, and not only those of some slots.
    pub(crate) async fn require_no_cluster(&mut self) -> Result<(), SessionError> {
        if self
            .says(&["INFO", "cluster"], b"cluster_enabled:1")
            .await?
        {
            Err(SessionError::InCluster)
        } else {
            Ok(())
        }
    }

    /// Makes sure that the Cluster of the server serves: while it does not, no call of any key is answered.
    pub(crate) async fn require_whole_cluster(&mut self) -> Result<(), SessionError> {
        if self
            .says(&["CLUSTER", "INFO"], b"cluster_state:fail")
            .await?
        {
            Err(SessionError::ClusterDown)
        } else {
            Ok(())
        }
    }

    /// Whether a text of several lines that is asked for has this one.
    async fn says(&mut self, words: &[&str], line: &[u8]) -> Result<bool, SessionError> {
        let reply = match self.ask(words).await {
            // A user who may not ask, or a stand-in for Redis that does not know: the first call will tell.
            Err(SessionError::Refused(_)) => return Ok(false),
            reply => reply?,
        };
        let text = reply.text().ok().flatten().unwrap_or_default();
        let mut lines = text.split(|&byte| byte == b'\n');
        Ok(lines.any(|said| said.trim_ascii_end() == line))
    }

    async fn authenticate(&mut self, credentials: &Credentials) -> Result<(), SessionError> {
        let password = credentials.current_password().await;
        let password = password.as_str();
        let asked = match &credentials.user {
            Some(user) => self.ask(&["AUTH", user, password]).await,
            None => self.ask(&["AUTH", password]).await,
        };
        asked.map(drop)
    }
}

// === impl SessionError ===

impl SessionError {
    /// Why there is no connection to an address.
    fn unreachable(address: &Address, reason: io::Error) -> Self {
        let (address, is_untrusted) = (address.clone(), tls::is_untrusted(&reason));
        let reason = Arc::new(reason);
        if is_untrusted {
            Self::Untrusted { address, reason }
        } else {
            Self::Unreachable { address, reason }
        }
    }
}

impl From<io::Error> for SessionError {
    fn from(reason: io::Error) -> Self {
        Self::Lost(Arc::new(reason))
    }
}

impl From<SessionError> for StoreError {
    fn from(error: SessionError) -> Self {
        Self::Unavailable {
            reason: error.to_string().into(),
        }
    }
}

/// Text of a server, for people, of bounded length. Nothing in it can forge a line of a log.
pub(crate) fn lossy(text: &[u8]) -> Arc<str> {
    const SHOWN: usize = 256;
    let shown = String::from_utf8_lossy(&text[..text.len().min(SHOWN)]);
    shown.replace(char::is_control, " ").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_is_one_line_of_bounded_length() {
        assert_eq!(&*lossy(b"ERR a\nWARN \x1b[31mb"), "ERR a WARN  [31mb");
        assert_eq!(lossy(&b"a".repeat(1000)).len(), 256);
    }
}
