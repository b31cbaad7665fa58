//! Who may read and who may change things.
//!
//! Whoever has the token may. Where none is needed, a listener that only this machine reaches trusts who
//! comes; but a web page in a browser on this machine comes from here too, so a request that a foreign
//! page may have made is refused: one with a foreign `Origin`, and one with a foreign `Host`, as a page
//! has it whose name was made to lead here (DNS rebinding).

use std::net::IpAddr;

use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HOST};
use subtle::ConstantTimeEq;

use super::fault::Fault;
use super::route::{Access, Route};
use super::{AdminConfig, AdminReach, AdminReads, AdminToken};
use crate::cross_site::is_cross_site;
use crate::peer::Peer;

/// What only the API hands out, such as callers' names. Probes and scrapers ask for the other paths by
/// whatever name they know this machine.
const API: &str = "/api/";

/// Whether a request may be answered.
pub(super) fn admit(
    route: &Route,
    headers: &HeaderMap,
    peer: Peer,
    config: &AdminConfig,
) -> Result<(), Fault> {
    if route.access == Access::Change && is_cross_site(headers) {
        return Err(Fault::CrossSite);
    }
    match &config.token {
        Some(token) => {
            let checked = check(token, headers);
            if checked.is_ok() || needs_token(route.access, config.reads) {
                return checked;
            }
            // Where the right token would help, a wrong one is a guess like any other.
            return trust(route, headers, peer, config.reach).map_err(|fault| match checked {
                Err(Fault::WrongToken) => Fault::WrongToken,
                _ => fault,
            });
        }
        None if route.access == Access::Read && config.reads == AdminReads::WithToken => {
            return Err(Fault::NoTokenToReadBy);
        }
        None => {}
    }
    trust(route, headers, peer, config.reach)
}

fn needs_token(access: Access, reads: AdminReads) -> bool {
    match access {
        Access::Probe => false,
        Access::Read => reads == AdminReads::WithToken,
        Access::Change => true,
    }
}

fn check(token: &AdminToken, headers: &HeaderMap) -> Result<(), Fault> {
    let value = headers.get(AUTHORIZATION).ok_or(Fault::NoToken)?;
    let (scheme, brought) = value
        .to_str()
        .ok()
        .and_then(|value| value.split_once(' '))
        .ok_or(Fault::NoToken)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Fault::NoToken);
    }
    // The time that this takes tells nothing but the length.
    let is_same = brought.trim().as_bytes().ct_eq(token.text.as_bytes());
    if bool::from(is_same) {
        Ok(())
    } else {
        Err(Fault::WrongToken)
    }
}

/// Whether who comes is trusted without a token.
fn trust(route: &Route, headers: &HeaderMap, peer: Peer, reach: AdminReach) -> Result<(), Fault> {
    let is_here = match peer {
        Peer::Unix => true,
        Peer::Tcp(address) => address.ip().to_canonical().is_loopback(),
    };
    let is_local = reach == AdminReach::ThisMachine && is_here;
    if !is_local && route.access == Access::Change {
        return Err(Fault::NeedsToken);
    }
    // No browser speaks over a unix socket.
    let is_guarded = is_local && peer != Peer::Unix && route.path.starts_with(API);
    if is_guarded && !names_this_machine(headers) {
        return Err(Fault::ForeignHost);
    }
    Ok(())
}

fn names_this_machine(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    host.map(without_port).is_some_and(|name| {
        let name = name.to_ascii_lowercase();
        let is_loopback = |name: &str| name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
        name == "localhost" || name.ends_with(".localhost") || is_loopback(&name)
    })
}

/// `[::1]:6070` is `::1`.
fn without_port(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split_once(']').map_or(rest, |(address, _)| address);
    }
    host.split_once(':').map_or(host, |(name, _)| name)
}
