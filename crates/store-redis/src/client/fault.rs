//! What a server says when it does not do what it was asked to.

use std::fmt;
use std::sync::Arc;

use tidegate_store::StoreError;

use super::session::{SessionError, lossy};

/// An error that a server told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerFault {
    kind: FaultKind,
    text: Arc<str>,
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
            word if UNFIT.contains(&word) => FaultKind::Unfit,
            _ => FaultKind::Call,
        };
        Self { kind, text }
    }

    /// Whether another call would fare no better, so that the breaker is to know.
    pub(crate) fn is_of_server(&self) -> bool {
        matches!(self.kind, FaultKind::Unfit | FaultKind::ReadOnly)
    }

    /// Whether the call itself is to blame.
    pub(crate) fn is_of_call(&self) -> bool {
        self.kind == FaultKind::Call
    }

    /// Whether the script has to be sent along.
    pub(crate) fn is_no_script(&self) -> bool {
        self.kind == FaultKind::NoScript
    }

    /// What the server said.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether the connection is still of use: one to a server that became a replica is not.
    pub(crate) fn verdict(self) -> Result<(), SessionError> {
        match self.kind {
            FaultKind::ReadOnly => Err(SessionError::Refused(self.text)),
            _ => Ok(()),
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
