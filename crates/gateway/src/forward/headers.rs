//! Headers of requests and responses on their way through (RFC 9110, section 7.6).

use std::fmt::Write as _;
use std::net::IpAddr;

use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, COOKIE, EXPECT, FORWARDED, GetAll, HOST, HeaderName,
    TE, TRANSFER_ENCODING, UPGRADE, VIA,
};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Version};
use smallvec::SmallVec;
use tidegate_identify::AddressHeader;

use crate::config::HeaderEdits;
use crate::connection::ConnectionContext;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

const HTTP: HeaderValue = HeaderValue::from_static("http");
const HTTPS: HeaderValue = HeaderValue::from_static("https");
const TRAILERS: HeaderValue = HeaderValue::from_static("trailers");
const UPGRADE_VALUE: HeaderValue = HeaderValue::from_static("upgrade");
const VIA_1: HeaderValue = HeaderValue::from_static("1.1 tidegate");
const VIA_2: HeaderValue = HeaderValue::from_static("2 tidegate");

/// The longest list of addresses that is passed on; a longer one is begun anew.
const MAX_FORWARDED_BYTES: usize = 2_048;

/// The beginnings of the names of headers in which proxies tell of a client.
const FORWARDED_HEADERS: [&str; 2] = ["forwarded", "x-forwarded-"];

/// Headers with the one address of a client, as proxies and CDNs set them. Of these, only the one for which proxies are trusted is believed.
const ADDRESS_HEADERS: [&str; 9] = [
    "cf-connecting-ip",
    "client-ip",
    "fastly-client-ip",
    "true-client-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-envoy-external-address",
    "x-original-forwarded-for",
    "x-real-ip",
];

/// The beginnings of the names of headers that tell of limits.
const LIMIT_HEADERS: [&str; 2] = ["x-ratelimit-", "x-tidegate-"];

/// The client of a request, as it was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundClient<'a> {
    /// The address that counts as its own.
    pub(crate) address: Option<IpAddr>,
    /// The header in which trusted proxies name it.
    pub(crate) header: &'a AddressHeader,
    /// True if the peer is a trusted proxy.
    pub(crate) is_trusted: bool,
}

/// Removes the headers that are meant for one connection only, and those that the connection names. Gives the protocol to which the
/// message asks to upgrade, or has.
pub(crate) fn strip_hop_by_hop(headers: &mut HeaderMap) -> Option<HeaderValue> {
    let mut names: SmallVec<[HeaderName; 4]> = SmallVec::new();
    for name in headers.keys() {
        if is_hop_by_hop(name.as_str()) {
            names.push(name.clone());
        }
    }
    if names.is_empty() {
        return None;
    }
    let mut asks_upgrade = false;
    if names.contains(&CONNECTION) {
        for line in headers.get_all(CONNECTION) {
            for token in line.as_bytes().split(|byte| *byte == b',') {
                let token = token.trim_ascii();
                if token.eq_ignore_ascii_case(b"keep-alive") {
                    // Most say only this, and a header of this name goes anyway.
                    continue;
                }
                asks_upgrade |= token.eq_ignore_ascii_case(b"upgrade");
                // Every name it lists goes, but for those without which the message is another one; the headers that we set ourselves are set
                // later.
                let named = HeaderName::from_bytes(token).ok();
                names.extend(named.filter(|name| ![HOST, CONTENT_LENGTH, EXPECT].contains(name)));
            }
        }
    }
    let upgrade = if asks_upgrade {
        let protocols = headers.get(UPGRADE);
        protocols
            .filter(|protocols| !names_http(protocols.as_bytes()))
            .cloned()
    } else {
        None
    };
    let takes_trailers = names.contains(&TE) && {
        let mut lines = headers.get_all(TE).iter();
        lines.any(|line| names_trailers(line.as_bytes()))
    };
    if names.contains(&TRANSFER_ENCODING) {
        // The encoding wins, and the length is removed (RFC 9112, section 6.3).
        headers.remove(CONTENT_LENGTH);
    }
    for name in &names {
        headers.remove(name);
    }
    // gRPC servers insist on it.
    if takes_trailers {
        headers.insert(TE, TRAILERS);
    }
    upgrade
}

/// Makes one line of all cookies: HTTP/2 clients may send a line for each, HTTP/1 servers look at one (RFC 9113, section 8.2.3).
pub(crate) fn join_cookies(headers: &mut HeaderMap) {
    let mut lines = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes);
    let (Some(first), Some(second)) = (lines.next(), lines.next()) else {
        return;
    };
    let mut joined = [first, b"; ", second].concat();
    for line in lines {
        joined.extend_from_slice(b"; ");
        joined.extend_from_slice(line);
    }
    // Values stay values when they are joined.
    if let Ok(joined) = HeaderValue::from_bytes(&joined) {
        headers.insert(COOKIE, joined);
    }
}

/// Removes the length of a response without a body, if it is not one number: hyper looks at it only where a body follows.
pub(crate) fn remove_bad_length(headers: &mut HeaderMap) {
    let mut lines = headers.get_all(CONTENT_LENGTH).iter();
    let is_number = |line: &HeaderValue| line.as_bytes().iter().all(u8::is_ascii_digit);
    let is_good = lines.next().is_none_or(is_number) && lines.next().is_none();
    if !is_good {
        headers.remove(CONTENT_LENGTH);
    }
}

/// True if a message has a transfer encoding besides a single `chunked`. The header is that of one hop, so the receiver would not learn of it.
pub(crate) fn has_other_encoding(headers: &HeaderMap) -> bool {
    let mut lines = headers.get_all(TRANSFER_ENCODING).iter();
    let is_chunked = |line: &HeaderValue| line.as_bytes().eq_ignore_ascii_case(b"chunked");
    lines.next().is_some_and(|line| !is_chunked(line)) || lines.next().is_some()
}

/// Puts the headers of an upgrade back.
pub(crate) fn set_upgrade(headers: &mut HeaderMap, protocol: HeaderValue) {
    headers.insert(CONNECTION, UPGRADE_VALUE);
    headers.insert(UPGRADE, protocol);
}

/// Tells the upstream who asked, by the addresses that are trusted, and that the request came through here. `authority` is that of the
/// request target, where HTTP/2 names the host.
pub(crate) fn set_forwarded(
    headers: &mut HeaderMap,
    version: Version,
    authority: Option<&Authority>,
    connection: &ConnectionContext,
    client: &FoundClient<'_>,
) {
    let mut host = headers.get(HOST).cloned();
    if host.is_none() {
        host = authority.and_then(|it| HeaderValue::from_str(it.as_str()).ok());
        headers.extend(host.clone().map(|host| (HOST, host)));
    }
    strip_claims(headers, client);
    let peer = connection.peer_text.as_ref();
    let own = connection.forwarded(host.as_ref());
    // Of a trusted proxy only the list is believed that it is trusted for; the other one is made from the client that was found in it.
    let believed = client.is_trusted.then_some(client.header);
    let addresses = match believed {
        Some(AddressHeader::XForwardedFor) => appended(headers, &X_FORWARDED_FOR, peer),
        _ => None,
    };
    let forwarded = match believed {
        Some(AddressHeader::Forwarded) => appended(headers, &FORWARDED, Some(&own)),
        _ => None,
    };
    let is_behind = |address: &IpAddr| Some(*address) != connection.peer_address();
    let behind = client
        .address
        .filter(|it| client.is_trusted && is_behind(it));
    let addresses = addresses.or_else(|| match behind {
        Some(address) => with_peer(&address.to_string(), peer),
        None => peer.cloned(),
    });
    match addresses {
        Some(addresses) => headers.insert(X_FORWARDED_FOR, addresses),
        None => headers.remove(X_FORWARDED_FOR),
    };
    let forwarded = forwarded.or_else(|| {
        let element = forwarded_element(Some(behind?), None, None);
        with_peer(element.to_str().ok()?, Some(&own))
    });
    headers.insert(FORWARDED, forwarded.unwrap_or(own));
    if let AddressHeader::Single(name) = client.header {
        set_single(headers, name, client.address);
    }
    let is_tls = connection.client.is_tls;
    let scheme = headers.entry(X_FORWARDED_PROTO);
    scheme.or_insert(if is_tls { HTTPS } else { HTTP });
    if let Some(host) = host {
        headers.entry(X_FORWARDED_HOST).or_insert(host);
    }
    let is_http2 = version == Version::HTTP_2;
    headers.append(VIA, if is_http2 { VIA_2 } else { VIA_1 });
}

/// Sets the header of one address that proxies are trusted for: an upstream that reads it must see the address that counts here.
fn set_single(headers: &mut HeaderMap, name: &str, address: Option<IpAddr>) {
    let name = HeaderName::from_bytes(name.as_bytes()).ok();
    let address = address.and_then(|it| HeaderValue::from_str(&it.to_string()).ok());
    headers.extend(name.zip(address));
}

/// Removes what a client claims about itself, and about its limits. Of a trusted proxy, the scheme, the host and the list that it is trusted for
/// stay.
fn strip_claims(headers: &mut HeaderMap, client: &FoundClient<'_>) {
    let own_name = client.header.name();
    let mut names: SmallVec<[HeaderName; 4]> = SmallVec::new();
    for name in headers.keys() {
        let text = name.as_str();
        let is_own = is_spelled_alike(text, own_name);
        // Most names are none by their first letter.
        if !is_own && !text.starts_with(['c', 'f', 't', 'x']) {
            continue;
        }
        // A proxy sets the header with hyphens, and may pass the other spelling on as it came.
        let is_believed = client.is_trusted && !text.contains('_');
        let is_claim = if is_believed {
            is_own && matches!(client.header, AddressHeader::Single(_))
        } else {
            is_own || FORWARDED_HEADERS.iter().any(|it| begins_with(text, it))
        };
        let is_claim = is_claim
            || ADDRESS_HEADERS.iter().any(|it| is_spelled_alike(text, it))
            || LIMIT_HEADERS.iter().any(|it| begins_with(text, it));
        if is_claim {
            names.push(name.clone());
        }
    }
    for name in &names {
        headers.remove(name);
    }
}

/// Removes trailers of a request that would be other headers than those that limits were decided by, for a server that takes trailers for
/// headers.
pub(crate) fn strip_trailers(trailers: &mut HeaderMap) {
    strip_hop_by_hop(trailers);
    let is_claim = |name: &&HeaderName| {
        let text = name.as_str();
        [&AUTHORIZATION, &COOKIE, &HOST].contains(name)
            || ADDRESS_HEADERS.iter().any(|it| is_spelled_alike(text, it))
            || (FORWARDED_HEADERS.iter().chain(&LIMIT_HEADERS)).any(|it| begins_with(text, it))
    };
    let names: SmallVec<[HeaderName; 4]> = trailers.keys().filter(is_claim).cloned().collect();
    for name in &names {
        trailers.remove(name);
    }
}

/// Returns true if a name begins like one of ours. CGI and WSGI servers take an underscore for a hyphen.
fn begins_with(name: &str, ours: &str) -> bool {
    name.get(..ours.len())
        .is_some_and(|begin| is_spelled_alike(begin, ours))
}

/// Returns true if a name is one of ours for a server that takes an underscore for a hyphen.
fn is_spelled_alike(name: &str, ours: &str) -> bool {
    let same = |(ours, theirs): (u8, u8)| ours == theirs || (ours == b'-' && theirs == b'_');
    name.len() == ours.len() && ours.bytes().zip(name.bytes()).all(same)
}

/// A list of two.
fn with_peer(client: &str, peer: Option<&HeaderValue>) -> Option<HeaderValue> {
    let peer = peer.and_then(|peer| peer.to_str().ok());
    let list = peer.map_or(client.to_owned(), |peer| format!("{client}, {peer}"));
    HeaderValue::from_str(&list).ok()
}

/// The lines of the header in which proxies name their clients.
pub(crate) fn address_lines<'h>(
    headers: &'h HeaderMap,
    header: &AddressHeader,
) -> GetAll<'h, HeaderValue> {
    match header {
        // Names that are known are not parsed again.
        AddressHeader::XForwardedFor => headers.get_all(X_FORWARDED_FOR),
        AddressHeader::Forwarded => headers.get_all(FORWARDED),
        AddressHeader::Single(name) => headers.get_all(name),
    }
}

/// `Forwarded` for one hop (RFC 7239).
pub(crate) fn forwarded_element(
    peer: Option<IpAddr>,
    host: Option<&HeaderValue>,
    is_tls: Option<bool>,
) -> HeaderValue {
    let mut text = String::with_capacity(64);
    // Writing to a string does not fail.
    let _ = match peer {
        Some(IpAddr::V4(address)) => write!(text, "for={address}"),
        Some(IpAddr::V6(address)) => write!(text, "for=\"[{address}]\""),
        None => write!(text, "for=unknown"),
    };
    if let Some(host) = host.and_then(|host| host.to_str().ok()) {
        // A host has no character that needs an escape, but a port needs quotes.
        let quote = if host.contains([':', '[']) { "\"" } else { "" };
        let _ = write!(text, ";host={quote}{host}{quote}");
    }
    if let Some(is_tls) = is_tls {
        text.push_str(if is_tls {
            ";proto=https"
        } else {
            ";proto=http"
        });
    }
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("for=unknown"))
}

/// Makes the changes that a route asks for.
pub(crate) fn edit(headers: &mut HeaderMap, edits: &HeaderEdits) {
    for name in &edits.remove {
        headers.remove(name);
    }
    for (name, value) in &edits.set {
        headers.insert(name, value.clone());
    }
    for (name, value) in &edits.add {
        headers.append(name, value.clone());
    }
}

fn is_hop_by_hop(name: &str) -> bool {
    // Most names are none by their first letter.
    matches!(
        name.as_bytes().first(),
        Some(b'c' | b'h' | b'k' | b'p' | b't' | b'u')
    ) && matches!(
        name,
        "connection"
            | "keep-alive"
            | "proxy-connection"
            | "te"
            | "transfer-encoding"
            | "upgrade"
            | "http2-settings"
    )
}

/// Whether an upgrade to HTTP is among the protocols. Requests within such a tunnel would not be limited.
fn names_http(protocols: &[u8]) -> bool {
    protocols.split(|byte| *byte == b',').any(|protocol| {
        let protocol = protocol.trim_ascii();
        let is_http = |name: &[u8]| {
            protocol
                .get(..name.len())
                .is_some_and(|it| it.eq_ignore_ascii_case(name))
        };
        is_http(b"h2") || is_http(b"http")
    })
}

fn names_trailers(line: &[u8]) -> bool {
    line.split(|byte| *byte == b',')
        .any(|token| token.trim_ascii().eq_ignore_ascii_case(b"trailers"))
}

/// The list in the lines of a header with `last` at its end; `None` if there is none, or it is too long.
fn appended(
    headers: &HeaderMap,
    name: &HeaderName,
    last: Option<&HeaderValue>,
) -> Option<HeaderValue> {
    let mut lines = headers.get_all(name).iter().peekable();
    lines.peek()?;
    let mut list = Vec::new();
    for line in lines.chain(last) {
        if !list.is_empty() {
            list.extend_from_slice(b", ");
        }
        list.extend_from_slice(line.as_bytes());
    }
    let is_fit = list.len() <= MAX_FORWARDED_BYTES;
    HeaderValue::from_bytes(&list).ok().filter(|_| is_fit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lines: &[(&str, &str)], left: &[(&str, &str)], upgrade: Option<&str>) {
        let map = |lines: &[(&str, &str)]| -> HeaderMap {
            let pair = |(name, value): &(&str, &str)| {
                (
                    HeaderName::from_bytes(name.as_bytes()).unwrap(),
                    HeaderValue::from_str(value).unwrap(),
                )
            };
            lines.iter().map(pair).collect()
        };
        let mut headers = map(lines);
        let found = strip_hop_by_hop(&mut headers);
        assert_eq!(headers, map(left));
        assert_eq!(found.as_ref().and_then(|it| it.to_str().ok()), upgrade);
    }

    #[test]
    fn headers_of_one_hop_go() {
        check(&[("accept", "*/*")], &[("accept", "*/*")], None);
        check(
            &[
                ("connection", "keep-alive, X-Secret"),
                ("connection", "x-other"),
                ("keep-alive", "timeout=5"),
                ("x-secret", "1"),
                ("x-other", "1"),
                ("x-kept", "1"),
                ("te", "gzip"),
                ("proxy-connection", "close"),
                ("transfer-encoding", "chunked"),
            ],
            &[("x-kept", "1")],
            None,
        );
        check(&[("te", "gzip, Trailers")], &[("te", "trailers")], None);
        check(
            &[("connection", "Upgrade"), ("upgrade", "websocket")],
            &[],
            Some("websocket"),
        );
        check(&[("upgrade", "h2c")], &[], None);
        for protocols in ["h2c", "websocket, H2C", "HTTP/2.0", "h2"] {
            check(
                &[("connection", "upgrade"), ("upgrade", protocols)],
                &[],
                None,
            );
        }
    }

    #[test]
    fn forwarded_quotes_what_must_be_quoted() {
        let host = HeaderValue::from_static("a.example:80");
        let element = |peer: &str, host, is_tls| {
            let value = forwarded_element(peer.parse().ok(), host, Some(is_tls));
            value.to_str().unwrap().to_owned()
        };
        assert_eq!(
            element("192.0.2.1", Some(&host), false),
            "for=192.0.2.1;host=\"a.example:80\";proto=http"
        );
        assert_eq!(
            element("2001:db8::1", None, true),
            "for=\"[2001:db8::1]\";proto=https"
        );
    }
}
