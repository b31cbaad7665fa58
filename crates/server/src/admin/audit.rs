//! One line in the log for each change: who did what to whom.
//!
//! Elsewhere no client's string is logged. Here it is: a record of a ban that does not say who was banned
//! is none. Whoever must not have it in the log turns the target `audit` off.

use std::fmt;
use std::net::SocketAddr;

use tidegate_limiter::Entry;
use tracing::{info, warn};

use super::fault::Fault;
use super::route::Route;
use crate::door::Peer;

/// The target of all these lines.
const TARGET: &str = "audit";

/// A change, as it is written down.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change<'a> {
    /// Who made it.
    pub(super) peer: Peer,
    /// What was done, such as `ban`.
    pub(super) what: &'static str,
    /// What came of it, in words.
    pub(super) outcome: &'a str,
}

/// Whom a change is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller<'a> {
    pub(super) domain: &'a str,
    /// The path of the rule that its descriptor ends at.
    pub(super) rule: Option<&'a str>,
    pub(super) entries: &'a [Entry<'a>],
}

/// Writes down what was done to a caller.
pub(super) fn of_caller(change: Change<'_>, caller: Caller<'_>) {
    info!(
        target: TARGET,
        peer = %Who(change.peer),
        action = change.what,
        domain = ?caller.domain,
        rule = ?caller.rule.unwrap_or_default(),
        entries = %Entries(caller.entries),
        outcome = ?change.outcome,
        "changed over the admin API"
    );
}

/// Writes down what was done to the server.
pub(super) fn of_server(change: Change<'_>) {
    info!(
        target: TARGET,
        peer = %Who(change.peer),
        action = change.what,
        outcome = ?change.outcome,
        "changed over the admin API"
    );
}

/// Writes down who was turned away from a change.
pub(super) fn turned_away(peer: Peer, route: &Route, fault: &Fault) {
    warn!(
        target: TARGET,
        peer = %Who(peer),
        path = route.path,
        reason = %fault,
        "turned away from the admin API"
    );
}

struct Who(Peer);

struct Entries<'a>(&'a [Entry<'a>]);

// === impl Who ===

impl fmt::Display for Who {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Peer::Tcp(address) => <SocketAddr as fmt::Display>::fmt(&address, formatter),
            Peer::Unix => formatter.write_str("unix socket"),
        }
    }
}

// === impl Entries ===

impl fmt::Display for Entries<'_> {
    /// Quoted, so that no value can pass for another line of the log.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, entry) in self.0.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(formatter, "{comma}{:?}={:?}", entry.key, entry.value)?;
        }
        Ok(())
    }
}
