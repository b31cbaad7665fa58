//! The sources of values: parts of a request, and what is known of its caller.

use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroU8;
use std::str::FromStr;

use super::value::ValueReader;
use crate::grouping::Grouping;
use crate::{AmbiguousValue, ClaimPath, ClaimPathFault, ListChoice, ListPlace, Request};

/// The source of an entry's value. Written in a config file as [`FromStr`] reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// `header:NAME`: the header of that name, in lower case; one line, or several that are the same.
    Header(String),
    /// `header:NAME first`, `last` or `each`, and the same for `cookie:NAME` and `query:NAME`: some of the values that the
    /// request has there.
    List(ListPlace, String, ListChoice),
    /// `cookie:NAME`: the cookie of that name; one, or several that are the same.
    Cookie(String),
    /// `method`: the method.
    Method,
    /// `path`: the path without the query, in one spelling for all that some server reads alike.
    Path,
    /// `path without_last_slash`: the same, with `/a/` as `/a`.
    PathWithoutLastSlash,
    /// `path_segment:N`: the Nth segment of the value of `path`, counted from 1.
    PathSegment(NonZeroU8),
    /// `host`: the host in lower case, without port.
    Host,
    /// `query:NAME`: the parameter of that name in the query, decoded; one, or several that are the same.
    Query(String),
    /// `client_address`, or with other prefixes `client_address ipv4/24 ipv6/56`: the client's
    /// address, grouped; a family that is left out has no value.
    ClientAddress(Grouping),
    /// `constant:TEXT`: this text.
    Constant(String),
    /// `route`: the name of the route in the gateway.
    Route,
    /// `certificate`: the subject of the TLS client certificate, if it was verified.
    Certificate,
    /// `claim:NAME` or `claim:/JSON/POINTER`: a claim of the token, if it was verified.
    Claim(ClaimPath),
    /// `api_key`: the id of the API key, if the key is known; never the key itself.
    ApiKey,
    /// `plan`: the plan of the API key, else the claim that the settings of tokens name.
    Plan,
    /// `tenant`: the tenant of the API key, else the claim that the settings of tokens name.
    Tenant,
    /// `label:TABLE`: the label of the client's address in the table of that name.
    Label(String),
}

/// A text that is not a source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceFault {
    /// The word is unknown.
    #[error(
        "`{word}` is not a source; write client_address, method, path, path_segment:N, host, header:NAME, \
         cookie:NAME, query:NAME, constant:TEXT, route, certificate, claim:NAME, api_key, plan, tenant or \
         label:TABLE"
    )]
    Unknown {
        /// The text.
        word: String,
    },
    /// A name or text is missing after the colon.
    #[error("`{word}:` needs a text after the colon")]
    Nameless {
        /// The word before the colon.
        word: &'static str,
    },
    /// The text after `header:` is not a valid header name.
    #[error("`{name}` is not a valid header name")]
    BadHeaderName {
        /// The text.
        name: String,
    },
    /// The word after the name of a header or cookie is not `first`, `last` or `each`.
    #[error("`{word}` does not say which values count; write first, last or each")]
    BadListChoice {
        /// The text.
        word: String,
    },
    /// The text after `cookie:` is not a valid cookie name.
    #[error("`{name}` is not a valid cookie name")]
    BadCookieName {
        /// The text.
        name: String,
    },
    /// The text after `path_segment:` is not the number of a segment.
    #[error("`{number}` is not the number of a path segment; write 1 to 255")]
    BadSegment {
        /// The text.
        number: String,
    },
    /// The text after `claim:` does not name a claim.
    #[error(transparent)]
    BadClaim(#[from] ClaimPathFault),
    /// The text after `client_address` is not a list of prefixes.
    #[error(
        "`{text}` is not a list of prefixes; write ipv4/24, ipv6/56 or both, with at most 32 and 128 bits"
    )]
    BadGrouping {
        /// The text.
        text: String,
    },
}

// === impl Source ===

impl Source {
    /// All values that `request` has for this source, without empty ones: nearly always one or none. A claim that is a list has
    /// one for each element, a header whose values all count one for each of these.
    ///
    /// # Errors
    ///
    /// If a header behind the value has more than one meaning. Such a request is to be denied.
    pub fn all_of<'a>(
        &'a self,
        request: &Request<'a>,
    ) -> Result<Vec<Cow<'a, str>>, AmbiguousValue> {
        ValueReader::new(request).read_all(self)
    }

    /// Returns true if its value may come from a token, so that the token must be verified first.
    pub const fn needs_token(&self) -> bool {
        matches!(self, Self::Claim(_) | Self::Plan | Self::Tenant)
    }

    /// Returns true if the client can choose its value freely. A limit that tells callers apart by nothing else gives each
    /// client as many counters as it likes.
    pub const fn is_chosen_by_client(&self) -> bool {
        matches!(
            self,
            Self::Header(_) | Self::List(..) | Self::Cookie(_) | Self::Host | Self::Query(_)
        )
    }
}

impl FromStr for Source {
    type Err = SourceFault;

    fn from_str(text: &str) -> Result<Self, SourceFault> {
        if let Some((word, name)) = text.split_once(':') {
            return match word {
                "header" => match last_word(name)? {
                    (name, None) => header_name(name).map(Self::Header),
                    (name, Some(choice)) => {
                        Ok(Self::List(ListPlace::Header, header_name(name)?, choice))
                    }
                },
                "cookie" => match last_word(name)? {
                    (name, None) => cookie_name(name).map(Self::Cookie),
                    (name, Some(choice)) => {
                        Ok(Self::List(ListPlace::Cookie, cookie_name(name)?, choice))
                    }
                },
                "path_segment" => segment(name).map(Self::PathSegment),
                "query" => query(name),
                "constant" => named("constant", name).map(Self::Constant),
                "claim" => Ok(Self::Claim(name.parse()?)),
                "label" => named("label", name).map(Self::Label),
                _ => Err(unknown(text)),
            };
        }
        match text.split_once(' ').unwrap_or((text, "")) {
            ("method", "") => Ok(Self::Method),
            ("path", "") => Ok(Self::Path),
            ("path", "without_last_slash") => Ok(Self::PathWithoutLastSlash),
            ("host", "") => Ok(Self::Host),
            ("route", "") => Ok(Self::Route),
            ("certificate", "") => Ok(Self::Certificate),
            ("api_key", "") => Ok(Self::ApiKey),
            ("plan", "") => Ok(Self::Plan),
            ("tenant", "") => Ok(Self::Tenant),
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
            Self::List(ListPlace::Header, name, choice) => write!(f, "header:{name} {choice}"),
            Self::List(ListPlace::Cookie, name, choice) => write!(f, "cookie:{name} {choice}"),
            Self::List(ListPlace::Query, name, choice) => write!(f, "query:{name} {choice}"),
            Self::Cookie(name) => write!(f, "cookie:{name}"),
            Self::Method => f.write_str("method"),
            Self::Path => f.write_str("path"),
            Self::PathWithoutLastSlash => f.write_str("path without_last_slash"),
            Self::PathSegment(number) => write!(f, "path_segment:{number}"),
            Self::Host => f.write_str("host"),
            Self::Query(name) => write!(f, "query:{name}"),
            Self::ClientAddress(Grouping::DEFAULT) => f.write_str("client_address"),
            Self::ClientAddress(grouping) => write!(f, "client_address {grouping}"),
            Self::Constant(text) => write!(f, "constant:{text}"),
            Self::Route => f.write_str("route"),
            Self::Certificate => f.write_str("certificate"),
            Self::Claim(path) => write!(f, "claim:{path}"),
            Self::ApiKey => f.write_str("api_key"),
            Self::Plan => f.write_str("plan"),
            Self::Tenant => f.write_str("tenant"),
            Self::Label(table) => write!(f, "label:{table}"),
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

/// Splits the name of a header or cookie from the word after it, which says what values count.
fn last_word(text: &str) -> Result<(&str, Option<ListChoice>), SourceFault> {
    let Some((name, word)) = text.split_once(' ') else {
        return Ok((text, None));
    };
    match ListChoice::parse(word.trim_ascii()) {
        Some(choice) => Ok((name, Some(choice))),
        None => Err(SourceFault::BadListChoice {
            word: word.to_owned(),
        }),
    }
}

/// The same for a query parameter, whose name may have blanks.
fn query(text: &str) -> Result<Source, SourceFault> {
    let split = text.rsplit_once(' ');
    let chosen = split.and_then(|(name, word)| Some((name, ListChoice::parse(word)?)));
    match chosen {
        None => named("query", text).map(Source::Query),
        Some((name, choice)) => {
            let name = named("query", name.trim_ascii_end())?;
            Ok(Source::List(ListPlace::Query, name, choice))
        }
    }
}

/// Reads the name of a header, in lower case.
pub(crate) fn header_name(name: &str) -> Result<String, SourceFault> {
    let name = named("header", name)?;
    if is_token(&name) {
        Ok(name.to_ascii_lowercase())
    } else {
        Err(SourceFault::BadHeaderName { name })
    }
}

/// Reads the name of a cookie, whose case matters.
pub(crate) fn cookie_name(name: &str) -> Result<String, SourceFault> {
    let name = named("cookie", name)?;
    if is_token(&name) {
        Ok(name)
    } else {
        Err(SourceFault::BadCookieName { name })
    }
}

/// Returns true if all characters may be in a token (RFC 9110, section 5.6.2).
fn is_token(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    name.bytes().all(is_part)
}

fn segment(number: &str) -> Result<NonZeroU8, SourceFault> {
    let is_digits = number.bytes().all(|byte| byte.is_ascii_digit());
    let parsed = is_digits.then(|| number.parse().ok()).flatten();
    parsed.ok_or_else(|| SourceFault::BadSegment {
        number: number.to_owned(),
    })
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
