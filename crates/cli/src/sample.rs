//! A request that the loaded rules limit, for the reader of the banner to try.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use serde::Serialize;
use tidegate_rules::{Domain, Entry, Rule, RuleSet, Terms};
use tidegate_server::{Address, Bound, Front};

#[derive(Debug, Serialize)]
struct SampleRequest<'a> {
    domain: &'a str,
    descriptors: [SampleDescriptor<'a>; 1],
}

#[derive(Debug, Serialize)]
struct SampleDescriptor<'a> {
    entries: Vec<SampleEntry<'a>>,
}

#[derive(Debug, Serialize)]
struct SampleEntry<'a> {
    key: &'a str,
    value: &'a str,
}

/// A `curl` line with a request that a limit applies to; `None` if there is no such limit, or if `curl`
/// alone cannot ask there.
pub(crate) fn curl(rules: &RuleSet, bound: &Bound) -> Option<String> {
    let (Address::Tcp(address), false) = (&bound.address, bound.is_secure) else {
        return None;
    };
    match bound.front {
        // A client of a gateway asks for what the server behind it has.
        Front::Gateway => return Some(format!("curl -i http://{}/", reachable(*address))),
        Front::Http => {}
        Front::Grpc | Front::Admin | Front::Metrics => return None,
    }
    let json = rules
        .domains()
        .find_map(|domain| domain.rules().find_map(|rule| request(domain, rule)))?;
    let address = reachable(*address);
    Some(format!(
        "curl -i http://{address}/json -d {}",
        quoted(&json)
    ))
}

/// Where this machine finds a server that listens on all its addresses.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

/// A request that ends at `rule`, which must count something. The path of a rule is text for people,
/// so whether the request really ends there is tried out.
fn request(domain: &Domain, rule: &Rule) -> Option<String> {
    rule.limits()
        .iter()
        .find(|limit| matches!(limit.terms(), Terms::Quota(_)))?;
    let values: Vec<(&str, String)> = rule
        .path()
        .split(" > ")
        .map(|entry| entry.split_once('=').unwrap_or((entry, any_value(entry))))
        .map(|(key, value)| (key, value.replace('*', "42")))
        .collect();
    let entries: Vec<Entry<'_>> = values
        .iter()
        .map(|(key, value)| Entry { key, value })
        .collect();
    if domain.find(&entries)?.id() != rule.id() {
        return None;
    }
    let entries = entries
        .iter()
        .map(|it| SampleEntry {
            key: it.key,
            value: it.value,
        })
        .collect();
    let request = SampleRequest {
        domain: domain.name(),
        descriptors: [SampleDescriptor { entries }],
    };
    serde_json::to_string(&request).ok()
}

/// A value for a key that takes any.
fn any_value(key: &str) -> &'static str {
    // An address that is kept for examples (RFC 5737).
    if key.contains("address") {
        "203.0.113.7"
    } else {
        "42"
    }
}

/// Quotes for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_on_all_addresses_is_asked_on_this_machine() {
        let check = |address: &str, expected: &str| {
            let address = reachable(address.parse().unwrap());
            assert_eq!(address.to_string(), expected);
        };
        check("0.0.0.0:8080", "127.0.0.1:8080");
        check("[::]:8080", "[::1]:8080");
        check("192.0.2.1:80", "192.0.2.1:80");
    }
}
