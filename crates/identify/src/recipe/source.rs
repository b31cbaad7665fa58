//! Where the value of an entry comes from.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use crate::grouping::Grouping;
use crate::{Request, uri};

/// Where the value of an entry comes from. Written in a config file as [`FromStr`] reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// `header:NAME`: the header of that name, in lower case; several lines joined by commas.
    Header(String),
    /// `method`: the method.
    Method,
    /// `path`: the path in its normal form, without the query.
    Path,
    /// `host`: the host in lower case, without port.
    Host,
    /// `query:NAME`: the first parameter of that name in the query, decoded.
    Query(String),
    /// `client_address`, or with other prefixes `client_address ipv4/24 ipv6/56`: the client's
    /// address, grouped; a family that is left out has no value.
    ClientAddress(Grouping),
    /// `constant:TEXT`: this text.
    Constant(String),
}

/// A text that names no source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceFault {
    /// The word is unknown.
    #[error(
        "`{word}` is no source; write client_address, method, path, host, header:NAME, query:NAME \
         or constant:TEXT"
    )]
    Unknown {
        /// What was written.
        word: String,
    },
    /// A name or text is missing after the colon.
    #[error("nothing stands after `{word}:`")]
    Nameless {
        /// The word before the colon.
        word: &'static str,
    },
    /// The text after `header:` is no name of a header.
    #[error("`{name}` is no name of a header")]
    BadHeaderName {
        /// What was written.
        name: String,
    },
    /// The prefixes after `client_address` are none.
    #[error(
        "`{text}` are no prefixes; write ipv4/24, ipv6/56 or both, with at most 32 and 128 bits"
    )]
    BadGrouping {
        /// What was written.
        text: String,
    },
}

// === impl Source ===

impl Source {
    /// What `request` has there.
    pub(super) fn of<'a>(&'a self, request: &Request<'a>) -> Option<Cow<'a, str>> {
        match self {
            Self::Header(name) => request.headers.value(name),
            Self::Method => request.method.map(Cow::Borrowed),
            Self::Path => request.uri.and_then(uri::path),
            Self::Host => request.host.map(uri::host),
            Self::Query(name) => request.uri.and_then(|uri| uri::query(uri, name)),
            Self::ClientAddress(grouping) => {
                let group = request.client.and_then(|client| grouping.of(client));
                group.map(|group| Cow::Owned(group.to_string()))
            }
            Self::Constant(text) => Some(Cow::Borrowed(text)),
        }
    }
}

impl FromStr for Source {
    type Err = SourceFault;

    fn from_str(text: &str) -> Result<Self, SourceFault> {
        if let Some((word, name)) = text.split_once(':') {
            return match word {
                "header" => named("header", name).and_then(header),
                "query" => named("query", name).map(Self::Query),
                "constant" => named("constant", name).map(Self::Constant),
                _ => Err(unknown(text)),
            };
        }
        match text.split_once(' ').unwrap_or((text, "")) {
            ("method", "") => Ok(Self::Method),
            ("path", "") => Ok(Self::Path),
            ("host", "") => Ok(Self::Host),
            ("client_address", "") => Ok(Self::ClientAddress(Grouping::DEFAULT)),
            ("client_address", prefixes) => {
                grouping(prefixes).map(Self::ClientAddress).ok_or_else(|| {
                    SourceFault::BadGrouping {
                        text: prefixes.to_owned(),
                    }
                })
            }
            _ => Err(unknown(text)),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Method => f.write_str("method"),
            Self::Path => f.write_str("path"),
            Self::Host => f.write_str("host"),
            Self::Query(name) => write!(f, "query:{name}"),
            Self::ClientAddress(Grouping::DEFAULT) => f.write_str("client_address"),
            Self::ClientAddress(grouping) => write!(f, "client_address {grouping}"),
            Self::Constant(text) => write!(f, "constant:{text}"),
        }
    }
}

fn unknown(text: &str) -> SourceFault {
    SourceFault::Unknown {
        word: text.to_owned(),
    }
}

fn named(word: &'static str, name: &str) -> Result<String, SourceFault> {
    if name.is_empty() {
        return Err(SourceFault::Nameless { word });
    }
    Ok(name.to_owned())
}

fn header(name: String) -> Result<Source, SourceFault> {
    // The characters of a token (RFC 9110, section 5.6.2).
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.bytes().all(is_token) {
        Ok(Source::Header(name.to_ascii_lowercase()))
    } else {
        Err(SourceFault::BadHeaderName { name })
    }
}

/// Reads `ipv4/24 ipv6/56`, either or both.
fn grouping(text: &str) -> Option<Grouping> {
    let (mut ipv4_bits, mut ipv6_bits) = (None, None);
    for prefix in text.split_ascii_whitespace() {
        let (family, bits) = prefix.split_once('/')?;
        let slot = match family {
            "ipv4" => &mut ipv4_bits,
            "ipv6" => &mut ipv6_bits,
            _ => return None,
        };
        if slot.replace(bits.parse().ok()?).is_some() {
            return None;
        }
    }
    let is_empty = ipv4_bits.is_none() && ipv6_bits.is_none();
    Grouping::new(ipv4_bits, ipv6_bits)
        .ok()
        .filter(|_| !is_empty)
}
