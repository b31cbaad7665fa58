//! Headers, cookies and query parameters with more than one value.
//!
//! A client can send each of them twice, and servers differ in the one that they read. If such values were one, `X-Api-Key: secret` and
//! `X-Api-Key: 1` would be a new caller with every number, while the API serves `secret`. So values that differ are refused, unless the
//! source says which of them count: `header:x-api-key first`.
//!
//! Anybody on the way may join the lines of a header with commas (RFC 9110, section 5.3). Hence `first`, `last` and `each` of a header are
//! about the values between commas, in all lines. Without such a word, one line is one value, commas included.

use std::borrow::Cow;
use std::fmt;

use crate::api_key::ApiKeyPlace;
use crate::token::TokenPlace;
use crate::{HeaderText, Request, Source, cookie, uri};

/// The values that count of a header, a cookie or a query parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListChoice {
    /// The first value, as `Header.Get` in Go, `getHeader` in Java and most frameworks read it.
    First,
    /// The last value. Of a header it is the one that the nearest proxy appended.
    Last,
    /// Every value: a descriptor for each is charged.
    Each,
}

/// A part of a request that can have several values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListPlace {
    /// The lines of a header.
    Header,
    /// Cookies of one name.
    Cookie,
    /// Query parameters of one name.
    Query,
}

/// The values by which a caller is identified can be read in several ways, or are too many.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AmbiguousValue {
    /// Two values differ.
    #[error("the {place} `{name}` differ")]
    Differing {
        /// The part of the request.
        place: ListPlace,
        /// The name of the header (in lower case), cookie or parameter.
        name: String,
    },
    /// More values than are charged.
    #[error("the {place} `{name}` have more than {MAX_VALUES} values")]
    TooManyValues {
        /// The part of the request.
        place: ListPlace,
        /// The name of the header (in lower case), cookie or parameter.
        name: String,
    },
    /// A recipe with several lists makes more descriptors than are charged.
    #[error("the values of one descriptor have more than {MAX_VALUES} combinations")]
    TooManyCombinations,
}

/// The most values that [`ListChoice::Each`] charges, and the most combinations of several lists: more than any honest client sends.
pub(crate) const MAX_VALUES: usize = 8;

// === impl ListChoice ===

impl ListChoice {
    /// Reads the word after the name of a header, cookie or query parameter.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        match word {
            "first" => Some(Self::First),
            "last" => Some(Self::Last),
            "each" => Some(Self::Each),
            _ => None,
        }
    }

    /// The values that count, each once, in order: at most one more than [`MAX_VALUES`]. Empty ones do not count.
    fn choose<'a>(self, values: impl Iterator<Item = Cow<'a, str>>) -> Vec<Cow<'a, str>> {
        let mut values = values.filter(|value| !value.is_empty());
        match self {
            Self::First => values.next().into_iter().collect(),
            Self::Last => values.last().into_iter().collect(),
            Self::Each => {
                let mut chosen = Vec::new();
                for value in values {
                    if chosen.len() <= MAX_VALUES && !chosen.contains(&value) {
                        chosen.push(value);
                    }
                }
                chosen
            }
        }
    }
}

impl fmt::Display for ListChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::First => "first",
            Self::Last => "last",
            Self::Each => "each",
        })
    }
}

// === impl ListPlace ===

impl ListPlace {
    /// The values of the request at this place that count by `choice`.
    pub(crate) fn read<'a>(
        self,
        request: &Request<'a>,
        name: &str,
        choice: ListChoice,
    ) -> Result<Vec<Cow<'a, str>>, AmbiguousValue> {
        let values = match self {
            Self::Header => {
                let Some(value) = request.headers.value(name) else {
                    return Ok(Vec::new());
                };
                if value.has_differing_spellings && choice != ListChoice::Each {
                    // Lines of two spellings have no order.
                    return Err(self.differing(name));
                }
                split_value(value.text, ',', |value| Some(value.trim_ascii()), choice)
            }
            Self::Cookie => {
                let Some(line) = request.headers.value("cookie") else {
                    return Ok(Vec::new());
                };
                split_value(line.text, ';', |pair| cookie::value_of(pair, name), choice)
            }
            Self::Query => {
                let values = request.uri.into_iter();
                choice.choose(values.flat_map(|uri| uri::query_values(uri, name)))
            }
        };
        if values.len() > MAX_VALUES {
            let name = name.to_owned();
            return Err(AmbiguousValue::TooManyValues { place: self, name });
        }
        Ok(values)
    }

    /// The value that all of `values` are; none if there are none.
    pub(crate) fn only<T: PartialEq>(
        self,
        name: &str,
        mut values: impl Iterator<Item = T>,
    ) -> Result<Option<T>, AmbiguousValue> {
        let Some(first) = values.next() else {
            return Ok(None);
        };
        if values.any(|other| other != first) {
            return Err(self.differing(name));
        }
        Ok(Some(first))
    }

    fn differing(self, name: &str) -> AmbiguousValue {
        let name = name.to_owned();
        AmbiguousValue::Differing { place: self, name }
    }
}

impl fmt::Display for ListPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Header => "lines of the header",
            Self::Cookie => "cookies",
            Self::Query => "query parameters",
        })
    }
}

/// Splits a text and chooses among the values of its parts.
fn split_value<'a>(
    text: Cow<'a, str>,
    separator: char,
    value: impl for<'p> Fn(&'p str) -> Option<&'p str>,
    choice: ListChoice,
) -> Vec<Cow<'a, str>> {
    match text {
        Cow::Borrowed(text) => {
            let values = text.split(separator).filter_map(&value);
            choice.choose(values.map(Cow::Borrowed))
        }
        Cow::Owned(text) => {
            let values = text.split(separator).filter_map(&value);
            let chosen = choice.choose(values.map(Cow::Borrowed)).into_iter();
            chosen.map(|it| Cow::Owned(it.into_owned())).collect()
        }
    }
}

/// Checks that the part of the request behind an API key or a claim has one meaning.
pub(crate) fn check_lines(source: &Source, request: &Request<'_>) -> Result<(), AmbiguousValue> {
    match source {
        Source::ApiKey => check_api_key(request),
        Source::Claim(_) => check_token(request),
        Source::Plan | Source::Tenant => {
            check_api_key(request)?;
            check_token(request)
        }
        _ => Ok(()),
    }
}

fn check_api_key(request: &Request<'_>) -> Result<(), AmbiguousValue> {
    match request.identities.api_key_place() {
        None => Ok(()),
        Some(ApiKeyPlace::Header(place)) => check_place(place, request),
        Some(ApiKeyPlace::Query(name)) => match request.uri {
            Some(uri) => uri::query(uri, name).map(drop),
            None => Ok(()),
        },
    }
}

fn check_token(request: &Request<'_>) -> Result<(), AmbiguousValue> {
    let place = request.identities.token_place();
    place.map_or(Ok(()), |place| check_place(place, request))
}

fn check_place(place: &TokenPlace, request: &Request<'_>) -> Result<(), AmbiguousValue> {
    let name = match place {
        TokenPlace::Cookie(name) => return cookie::find(request.headers, name).map(drop),
        TokenPlace::Bearer => "authorization",
        TokenPlace::Header(name) => name,
    };
    let value = request.headers.value(name);
    value.map_or(Ok(()), |value| one_meaning(name, value).map(drop))
}

/// The text of a header whose lines must not differ.
pub(crate) fn one_meaning<'a>(
    name: &str,
    value: HeaderText<'a>,
) -> Result<Cow<'a, str>, AmbiguousValue> {
    if value.has_differing_lines {
        return Err(ListPlace::Header.differing(name));
    }
    Ok(value.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_chosen_from_all_lines() {
        let check = |joined: &str, first: &[&str], last: &[&str], each: &[&str]| {
            let choose = |choice| {
                let joined = Cow::Borrowed(joined);
                split_value(joined, ',', |value| Some(value.trim_ascii()), choice)
            };
            assert_eq!(choose(ListChoice::First), first, "{joined}");
            assert_eq!(choose(ListChoice::Last), last, "{joined}");
            assert_eq!(choose(ListChoice::Each), each, "{joined}");
        };
        check("a", &["a"], &["a"], &["a"]);
        check("a,b", &["a"], &["b"], &["a", "b"]);
        check("a, b ,a", &["a"], &["a"], &["a", "b"]);
        check(", ,a,", &["a"], &["a"], &["a"]);
        check(",", &[], &[], &[]);
        check("", &[], &[], &[]);
    }
}
