//! Headers with more than one value.
//!
//! A client can send a header twice, and servers differ in the line that they read. If such lines were one value, `X-Api-Key: secret` and
//! `X-Api-Key: 1` would be a new caller with every number, while the API serves `secret`. So lines that differ are refused, unless the
//! source says which values count: `header:x-api-key first`.
//!
//! Anybody on the way may join lines with commas (RFC 9110, section 5.3). Hence `first`, `last` and `each` are about the values between
//! commas, in all lines. Without such a word, one line is one value, commas included.

use std::borrow::Cow;
use std::fmt;

use crate::{HeaderText, Identities, Request, Source};

/// The values of a header that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListChoice {
    /// The first value, as `Header.Get` in Go, `getHeader` in Java and most frameworks read it.
    First,
    /// The last value, which the nearest proxy appended.
    Last,
    /// Every value: a descriptor for each is charged.
    Each,
}

/// A header by which the caller is identified has lines that differ, or too many values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AmbiguousHeader {
    /// Two lines differ.
    #[error("the lines of the header `{name}` differ")]
    DifferingLines {
        /// The name, in lower case.
        name: String,
    },
    /// More values than are charged.
    #[error("the header `{name}` has more than {MAX_VALUES} values")]
    TooManyValues {
        /// The name, in lower case.
        name: String,
    },
}

/// The most values of a header that [`ListChoice::Each`] charges: more than any honest client sends.
const MAX_VALUES: usize = 8;

// === impl ListChoice ===

impl ListChoice {
    /// Reads the word after the name of a header.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        match word {
            "first" => Some(Self::First),
            "last" => Some(Self::Last),
            "each" => Some(Self::Each),
            _ => None,
        }
    }

    /// The values of a header that count, each once, in order. Empty ones do not.
    pub(crate) fn choose(self, joined: &str) -> Vec<&str> {
        let mut values = joined.split(',').map(str::trim_ascii);
        let mut values = values.by_ref().filter(|value| !value.is_empty());
        match self {
            Self::First => values.next().into_iter().collect(),
            Self::Last => values.next_back().into_iter().collect(),
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

/// Checks that the headers behind an API key or a claim have one meaning.
pub(crate) fn check_lines(source: &Source, request: &Request<'_>) -> Result<(), AmbiguousHeader> {
    match source {
        Source::ApiKey => check_named(Identities::api_key_header, request),
        Source::Claim(_) => check_named(Identities::token_header, request),
        Source::Plan | Source::Tenant => {
            check_named(Identities::api_key_header, request)?;
            check_named(Identities::token_header, request)
        }
        _ => Ok(()),
    }
}

fn check_named<'a>(
    header: impl Fn(&'a Identities) -> Option<&'a str>,
    request: &Request<'a>,
) -> Result<(), AmbiguousHeader> {
    let name = header(request.identities);
    let value = name.and_then(|name| Some((name, request.headers.value(name)?)));
    value.map_or(Ok(()), |(name, value)| one_meaning(name, value).map(drop))
}

/// The text of a header whose lines must not differ.
pub(crate) fn one_meaning<'a>(
    name: &str,
    value: HeaderText<'a>,
) -> Result<Cow<'a, str>, AmbiguousHeader> {
    if value.has_differing_lines {
        let name = name.to_owned();
        return Err(AmbiguousHeader::DifferingLines { name });
    }
    Ok(value.text)
}

/// Checks that a header has no more values than are charged.
pub(crate) fn check_count(name: &str, n_values: usize) -> Result<(), AmbiguousHeader> {
    if n_values > MAX_VALUES {
        let name = name.to_owned();
        return Err(AmbiguousHeader::TooManyValues { name });
    }
    Ok(())
}

/// Chooses among the values of a header.
pub(crate) fn choose(value: &str, choice: ListChoice) -> Vec<Cow<'static, str>> {
    let chosen = choice.choose(value).into_iter();
    chosen.map(|value| Cow::Owned(value.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_chosen_from_all_lines() {
        let check = |joined: &str, first: &[&str], last: &[&str], each: &[&str]| {
            assert_eq!(ListChoice::First.choose(joined), first, "{joined}");
            assert_eq!(ListChoice::Last.choose(joined), last, "{joined}");
            assert_eq!(ListChoice::Each.choose(joined), each, "{joined}");
        };
        check("a", &["a"], &["a"], &["a"]);
        check("a,b", &["a"], &["b"], &["a", "b"]);
        check("a, b ,a", &["a"], &["a"], &["a", "b"]);
        check(", ,a,", &["a"], &["a"], &["a"]);
        check(",", &[], &[], &[]);
        check("", &[], &[], &[]);
    }
}
