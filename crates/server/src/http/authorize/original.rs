//! The client's request, as the headers of the proxy's question describe it.

use std::borrow::Cow;
use std::net::IpAddr;

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use tidegate_gateway::{HeaderLines, is_preflight};
use tidegate_identify::{Claims, HeaderText, Headers, Identities, Request, text_of, uri_text};

use super::{AuthorizeConfig, HeaderForm};
use crate::peer::Peer;

/// The client's request. A peer that is not trusted speaks for itself alone, and only of its headers.
pub(super) struct Original<'a> {
    method: Option<Cow<'a, str>>,
    uri: Option<Cow<'a, str>>,
    host: Option<Cow<'a, str>>,
    client: Option<IpAddr>,
    headers: OriginalHeaders<'a>,
}

/// The headers of the client's request.
struct OriginalHeaders<'a> {
    lines: HeaderLines<'a>,
    form: HeaderForm,
}

// === impl Original ===

impl<'a> Original<'a> {
    pub(super) fn new(headers: &'a HeaderMap, peer: Peer, config: &AuthorizeConfig) -> Self {
        let peer = tidegate_identify::Peer::from(peer);
        let address = &config.client_address;
        let is_trusted = address.trusts(peer);
        let told = |name: &HeaderName| last(headers, name).filter(|_| is_trusted);
        let lines = headers.get_all(address.header.name());
        Self {
            method: told(&config.request_headers.method).map(text_of),
            uri: told(&config.request_headers.uri).map(uri_text),
            host: told(&config.request_headers.host).map(text_of),
            client: address.find(peer, lines.iter().map(HeaderValue::as_bytes)),
            headers: OriginalHeaders {
                lines: HeaderLines(headers),
                form: config.header_lines,
            },
        }
    }

    /// The address that counts as the client's.
    pub(super) const fn client(&self) -> Option<IpAddr> {
        self.client
    }

    /// True if a browser asks by the request if a page may make another one.
    pub(super) fn is_preflight(&self) -> bool {
        let method = self.method.as_deref();
        method.is_some_and(|method| is_preflight(method, self.headers.lines.0))
    }

    /// The request of a caller with these claims. Nobody tells of client certificates here, and routes belong to the gateway.
    pub(super) fn request<'r>(
        &'r self,
        identities: &'r Identities,
        claims: Option<&'r Claims>,
    ) -> Request<'r> {
        Request {
            method: self.method.as_deref(),
            uri: self.uri.as_deref(),
            host: self.host.as_deref(),
            client: self.client,
            headers: &self.headers,
            identities,
            claims,
            certificate: None,
            route: None,
        }
    }
}

// === impl OriginalHeaders ===

impl Headers for OriginalHeaders<'_> {
    fn value(&self, name: &str) -> Option<HeaderText<'_>> {
        let value = self.lines.value(name)?;
        Some(match self.form {
            HeaderForm::Separate => value,
            HeaderForm::Joined => value.split_lines(),
        })
    }
}

// === impl Peer ===

impl From<Peer> for tidegate_identify::Peer {
    fn from(peer: Peer) -> Self {
        match peer {
            Peer::Tcp(address) => Self::Address(address.ip()),
            Peer::Unix => Self::Unix,
        }
    }
}

/// The last line of a header. A proxy that adds to what the client sent, instead of setting it, adds
/// at the end. Bytes that are not UTF-8 are escaped: if the line were dropped for one of them, `/login?\xff` would have
/// no path, and no limit.
fn last<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a [u8]> {
    let line = headers.get_all(name).iter().next_back()?;
    Some(line.as_bytes())
}
