//! The part of a request that holds a token or an API key.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use crate::recipe::{SourceFault, cookie_name, header_name};
use crate::{Headers, cookie};

/// The part of a request that holds the token. Written in a config file as [`FromStr`] reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TokenPlace {
    /// `bearer`: the header `Authorization: Bearer TOKEN` (RFC 6750).
    #[default]
    Bearer,
    /// `header:NAME`: the whole value of the header with that name, in lower case.
    Header(String),
    /// `cookie:NAME`: the cookie with that name.
    Cookie(String),
}

/// A text that is not a place for a token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenPlaceFault {
    /// The word is unknown.
    #[error("`{word}` is not a place for a token; write bearer, header:NAME or cookie:NAME")]
    Unknown {
        /// The text.
        word: String,
    },
    /// The name after the colon is faulty.
    #[error(transparent)]
    BadName(#[from] SourceFault),
}

const SCHEME: &str = "bearer";

// === impl TokenPlace ===

impl TokenPlace {
    /// The text at that place, if there is any.
    pub(crate) fn find<'a>(&self, headers: &'a dyn Headers) -> Option<Cow<'a, str>> {
        let found = match self {
            Self::Bearer => bearer(headers.value("authorization")?.text),
            Self::Header(name) => headers.value(name).map(|value| value.text),
            // Cookies that differ are no token, as lines that differ are none.
            Self::Cookie(name) => match cookie::find(headers, name) {
                Ok(value) => value,
                Err(ambiguous) => Some(Cow::Owned(ambiguous.to_string())),
            },
        };
        found.filter(|text| !text.is_empty())
    }
}

impl FromStr for TokenPlace {
    type Err = TokenPlaceFault;

    fn from_str(text: &str) -> Result<Self, TokenPlaceFault> {
        match text.split_once(':') {
            None if text == "bearer" => Ok(Self::Bearer),
            Some(("header", name)) => Ok(Self::Header(header_name(name)?)),
            Some(("cookie", name)) => Ok(Self::Cookie(cookie_name(name)?)),
            _ => Err(TokenPlaceFault::Unknown {
                word: text.to_owned(),
            }),
        }
    }
}

impl fmt::Display for TokenPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bearer => f.write_str("bearer"),
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Cookie(name) => write!(f, "cookie:{name}"),
        }
    }
}

/// The credentials of a header `Authorization` with the scheme `Bearer`, in any case (RFC 9110, section 11.1). APIs read more than that as
/// a bearer token, such as one among other credentials; then it is the whole value, which is no good token.
fn bearer(value: Cow<'_, str>) -> Option<Cow<'_, str>> {
    let is_bearer = |text: &str| {
        let scheme = text.get(..SCHEME.len());
        scheme.is_some_and(|it| it.eq_ignore_ascii_case(SCHEME))
    };
    let is_alone = is_bearer(&value)
        && matches!(
            value.as_bytes().get(SCHEME.len()),
            None | Some(b' ' | b'\t')
        );
    if is_alone {
        return Some(match value {
            Cow::Borrowed(value) => Cow::Borrowed(value[SCHEME.len()..].trim_ascii()),
            Cow::Owned(value) => Cow::Owned(value[SCHEME.len()..].trim_ascii().to_owned()),
        });
    }
    let mut words = value.split(|it: char| it == ',' || it.is_ascii_whitespace());
    words.any(is_bearer).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_scheme_bearer_holds_a_token() {
        let check = |value: &str, expected: Option<&str>| {
            assert_eq!(bearer(Cow::Borrowed(value)).as_deref(), expected, "{value}");
            let owned = Cow::Owned(value.to_owned());
            assert_eq!(bearer(owned).as_deref(), expected, "{value}");
        };
        check("Bearer abc", Some("abc"));
        check("bearer  abc ", Some("abc"));
        check("BEARER abc", Some("abc"));
        check("Bearer ", Some(""));
        check("Bearer\tabc", Some("abc"));
        check("Bearer", Some(""));
        check("Basic abc", None);
        check("Basic Abearer", None);
        for odd in [
            "Bearerabc",
            "Bearer:abc",
            "Bearer, abc",
            "Bearer\u{a0}abc",
            "Basic x, Bearer abc",
            ",bearer abc",
        ] {
            check(odd, Some(odd));
        }
        check("", None);
        check("Bearé x", None);
    }

    #[test]
    fn a_place_prints_as_it_reads() {
        for text in ["bearer", "header:x-token", "cookie:Session"] {
            let place: TokenPlace = text.parse().expect(text);
            assert_eq!(place.to_string(), text);
        }
        assert_eq!(
            "header:X-Token".parse(),
            Ok(TokenPlace::Header("x-token".to_owned()))
        );
    }

    #[test]
    fn faulty_places_are_named() {
        let check = |text: &str, expected: &str| {
            let fault = text.parse::<TokenPlace>().expect_err(text);
            assert!(fault.to_string().contains(expected), "{fault}");
        };
        check("", "`` is not a place for a token; write bearer, ");
        check("query:token", "`query:token` is not a place for a token");
        check("bearer:x", "`bearer:x` is not a place");
        check("header:", "`header:` needs a text after the colon");
        check("cookie:a b", "`a b` is not a valid cookie name");
    }
}
