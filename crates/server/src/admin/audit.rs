//! One line in the log for each change: who did what to whom.
//!
//! Elsewhere no client's string is logged. Here it is: a record of a ban that does not say who was banned
//! is none. Whoever must not have it in the log turns the target `audit` off.

use std::fmt::{self, Write as _};
use std::net::SocketAddr;

use tidegate_limiter::Entry;
use tidegate_observe::LogSampler;
use tracing::{info, warn};

use super::fault::Fault;
use super::route::Route;
use crate::peer::Peer;

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
        domain = caller.domain,
        rule = caller.rule.unwrap_or_default(),
        entries = Entries(caller.entries).to_string(),
        outcome = change.outcome,
        "changed over the admin API"
    );
}

/// Writes down what was done to the server.
pub(super) fn of_server(change: Change<'_>) {
    info!(
        target: TARGET,
        peer = %Who(change.peer),
        action = change.what,
        outcome = change.outcome,
        "changed over the admin API"
    );
}

/// Logs a request that was turned away from a change or brought a wrong token. A client that guesses tokens must not fill the log, so there is
/// a line at most every [`LogSampler::INTERVAL`], with the number of requests since the last one.
pub(super) fn turned_away(peer: Peer, route: &Route, fault: &Fault, sampler: &LogSampler) {
    let Some(n_requests) = sampler.count() else {
        return;
    };
    warn!(
        target: TARGET,
        n_requests,
        peer = %Who(peer),
        path = route.path,
        reason = fault.to_string(),
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
    /// The form that `tidegate explain` reads. The log quotes the whole, so that no value can pass for another line of it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, entry) in self.0.iter().enumerate() {
            if index > 0 {
                formatter.write_char(',')?;
            }
            write_escaped(formatter, entry.key)?;
            formatter.write_char('=')?;
            write_escaped(formatter, entry.value)?;
        }
        Ok(())
    }
}

fn write_escaped(formatter: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    for char in text.chars() {
        if matches!(char, ',' | '=' | '"' | '\\') {
            formatter.write_char('\\')?;
        }
        formatter.write_char(char)?;
    }
    Ok(())
}
