//! How to reach Redis, and how long to wait for it.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::task::spawn_blocking;

use super::Address;
use super::timeout::TimeoutBounds;

/// All that a client is told. Made from a URL: see [`ClientConfig::from_url`](Self::from_url).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// Who to ask.
    pub deployment: Deployment,
    /// Who we are, if Redis wants to know.
    pub credentials: Option<Credentials>,
    /// The number of the database; Cluster has only 0.
    pub database: u32,
    /// How to encrypt, if at all.
    pub tls: Option<TlsOptions>,
    /// The longest timeout of a call; `None` for [`Self::TIMEOUT`].
    pub timeout: Option<Duration>,
    /// The shortest timeout of a call; `None` for [`Self::MIN_TIMEOUT`]. Between the two it adapts to the time that
    /// replies take.
    pub min_timeout: Option<Duration>,
    /// The timeout of connecting, all greetings included; `None` for [`Self::CONNECT_TIMEOUT`].
    pub connect_timeout: Option<Duration>,
    /// Whether the log says when servers fail and are back.
    pub changes: Changes,
}

/// What kind of Redis there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deployment {
    /// One server.
    Single(Address),
    /// A master and its replicas, found by asking Sentinels.
    Sentinel {
        /// The Sentinels.
        sentinels: Vec<Address>,
        /// What they call the master.
        master: String,
        /// Who we are to them, if they want to know.
        credentials: Option<Credentials>,
    },
    /// A Redis Cluster, found by asking any of its nodes.
    Cluster {
        /// Some of its nodes.
        seeds: Vec<Address>,
    },
}

/// Whether the log says when servers fail and are back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Changes {
    /// Each time, once.
    #[default]
    Logged,
    /// Not at all, for whoever asks says so himself.
    Untold,
}

/// A user and a password. Nothing prints the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The ACL user; without one, Redis' default user.
    pub user: Option<String>,
    /// The password.
    pub password: String,
    /// A file with the password, which is read again for every connection. If it cannot be read, the password above
    /// is sent.
    pub password_file: Option<PathBuf>,
}

/// How connections are encrypted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// A file of PEM certificates to trust, instead of the authorities that browsers trust.
    pub ca: Option<PathBuf>,
    /// A PEM file with our certificate and those above it, if Redis asks for one.
    pub certificate: Option<PathBuf>,
    /// A PEM file with its private key.
    pub key: Option<PathBuf>,
    /// Whether the server has to prove who it is.
    pub verification: Verification,
}

/// Whether a server has to prove who it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verification {
    /// By a certificate of its name.
    #[default]
    Full,
    /// Not at all: whoever sits between us and the server can read and forge everything.
    None,
}

/// Far more than any password has.
const MAX_PASSWORD_BYTES: u64 = 64 * 1024;

// === impl ClientConfig ===

impl ClientConfig {
    /// The longest that a decision waits for Redis by default.
    pub const TIMEOUT: Duration = Duration::from_millis(50);

    /// The shortest timeout by default: a Redis nearby on a quiet machine.
    pub const MIN_TIMEOUT: Duration = Duration::from_millis(5);

    /// The timeout of connecting by default: some round trips through a TLS handshake, between regions.
    pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

    /// Plain connections without a password, and the default times.
    pub const fn new(deployment: Deployment) -> Self {
        Self {
            deployment,
            credentials: None,
            database: 0,
            tls: None,
            timeout: None,
            min_timeout: None,
            connect_timeout: None,
            changes: Changes::Logged,
        }
    }

    /// The bounds of the timeout of calls. A shortest one that is longer than the longest gives way.
    pub(crate) fn timeouts(&self) -> TimeoutBounds {
        let max = self.timeout.unwrap_or(Self::TIMEOUT);
        let min = self.min_timeout.unwrap_or(Self::MIN_TIMEOUT).min(max);
        TimeoutBounds { min, max }
    }
}

// === impl TlsOptions ===

impl TlsOptions {
    /// True if they name files, which may change.
    pub(super) const fn has_files(&self) -> bool {
        self.ca.is_some() || self.certificate.is_some() || self.key.is_some()
    }
}

// === impl Credentials ===

impl Credentials {
    /// The password as its file has it now, if it has one.
    pub(crate) async fn current_password(&self) -> String {
        let Some(path) = self.password_file.clone() else {
            return self.password.clone();
        };
        let read = spawn_blocking(move || read_regular(&path, MAX_PASSWORD_BYTES)).await;
        let text = read
            .ok()
            .and_then(Result::ok)
            .and_then(|bytes| String::from_utf8(bytes).ok());
        // Editors end a file with a line break, and no password does.
        let text = text.map(|text| text.trim_end_matches(['\r', '\n']).to_owned());
        text.filter(|text| !text.is_empty())
            .unwrap_or_else(|| self.password.clone())
    }
}

/// Reads a regular file of at most `max_bytes`. Other files are rejected, because opening or reading a FIFO or a device can
/// block for ever.
pub(super) fn read_regular(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let look = fs::metadata(path)?;
    if !look.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    file.take(max_bytes.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > max_bytes) {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}
