//! What a server says when it does not do what it was asked to.

use std::fmt;
use std::sync::Arc;

use tidegate_store::StoreError;

use super::link::Asking;
use super::session::{SessionError, lossy};

/// An error that a server told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerFault {
    kind: FaultKind,
    text: Arc<str>,
}

/// Where a Cluster sends a call on to. A host that is nameless is the one that was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Redirection {
    /// There, from now on.
    Moved((String, u16)),
    /// There, this once: the slot is on its way.
    Ask((String, u16)),
    /// Here, a little later: of several keys some are on their way.
    Later,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FaultKind {
    /// It cannot serve now, whatever it is asked.
    Unfit,
    /// It is not the master, or will not be for long.
    ReadOnly,
    /// Another server is to be asked.
    Elsewhere,
    /// It does not know the script.
    NoScript,
    /// The command makes no sense to it.
    Call,
}

/// A server that cannot serve begins its errors with one of these.
const UNFIT: &[&str] = &[
    "LOADING",
    "CLUSTERDOWN",
    "MASTERDOWN",
    "MISCONF",
    "NOREPLICAS",
    "OOM",
    "NOAUTH",
    "WRONGPASS",
    "NOPERM",
    "BUSY",
    "DENIED",
];

// === impl ServerFault ===

impl ServerFault {
    /// The fault that a whole reply is, if it is one.
    pub(crate) fn of_frame(frame: &[u8]) -> Option<Self> {
        let line = frame.strip_prefix(b"-")?;
        Some(Self::of_text(line.strip_suffix(b"\r\n").unwrap_or(line)))
    }

    /// The fault with this text.
    pub(crate) fn of_text(text: &[u8]) -> Self {
        let text = lossy(text);
        let kind = match text.split(' ').next().unwrap_or_default() {
            "READONLY" => FaultKind::ReadOnly,
            "MOVED" | "ASK" | "TRYAGAIN" => FaultKind::Elsewhere,
            "NOSCRIPT" => FaultKind::NoScript,
            word if UNFIT.contains(&word) || is_crowded(&text) => FaultKind::Unfit,
            _ => FaultKind::Call,
        };
        Self { kind, text }
    }

    /// The fault of a server that is of no use, for this reason.
    pub(crate) fn unfit(reason: &SessionError) -> Self {
        Self {
            kind: FaultKind::Unfit,
            text: reason.to_string().into(),
        }
    }

    /// Where to ask instead, if the server says so.
    pub(crate) fn redirection(&self) -> Option<Redirection> {
        let mut words = self.text.split(' ');
        let kind = words.next()?;
        if kind == "TRYAGAIN" {
            return Some(Redirection::Later);
        }
        // The slot is between.
        let place = words.nth(1)?;
        // From the right: the host may be an IPv6 address, and has no brackets.
        let (host, port) = place.rsplit_once(':')?;
        let place = (host.to_owned(), port.parse().ok()?);
        match kind {
            "MOVED" => Some(Redirection::Moved(place)),
            "ASK" => Some(Redirection::Ask(place)),
            _ => None,
        }
    }

    /// Whether another call would fare no better, so that the breaker is to know.
    pub(crate) fn is_of_server(&self) -> bool {
        matches!(self.kind, FaultKind::Unfit | FaultKind::ReadOnly)
    }

    /// Whether the call itself is to blame.
    pub(crate) fn is_of_call(&self) -> bool {
        self.kind == FaultKind::Call
    }

    /// Whether only a part of a Cluster says so.
    pub(crate) fn is_of_cluster(&self) -> bool {
        self.kind == FaultKind::Elsewhere || self.text.starts_with("CROSSSLOT ")
    }

    /// Whether the script has to be sent along.
    pub(crate) fn is_no_script(&self) -> bool {
        self.kind == FaultKind::NoScript
    }

    /// Whether the connection is still of use: one to a server that became a replica is not.
    pub(crate) fn verdict(self) -> Result<(), SessionError> {
        match self.kind {
            FaultKind::ReadOnly => Err(SessionError::Refused(self.text)),
            _ => Ok(()),
        }
    }
}

// === impl Redirection ===

impl Redirection {
    /// Whether it is about all calls from now on.
    pub(crate) fn is_lasting(&self) -> bool {
        matches!(self, Self::Moved(_))
    }

    /// Whether the other server has to be told that it was meant; `None` if it is no other.
    pub(crate) fn asking(&self) -> Option<Asking> {
        match self {
            Self::Ask(_) => Some(Asking::Yes),
            Self::Moved(_) => Some(Asking::No),
            Self::Later => None,
        }
    }

    /// The host and the port; `None` for where it was asked.
    pub(crate) fn place(&self) -> Option<(&str, u16)> {
        match self {
            Self::Moved((host, port)) | Self::Ask((host, port)) => Some((host, *port)),
            Self::Later => None,
        }
    }
}

impl fmt::Display for ServerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl From<ServerFault> for StoreError {
    fn from(fault: ServerFault) -> Self {
        Self::Unavailable { reason: fault.text }
    }
}

/// Whether a server has no room for another connection, which it says without a word of its own.
pub(crate) fn is_crowded(text: &str) -> bool {
    text.starts_with("ERR max number of clients")
}
