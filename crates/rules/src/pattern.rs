//! Values matched by more than equality: wildcards and networks.

use std::cell::OnceCell;

use crate::network::{Networks, parse_address};

/// What a rule with stars or networks takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    Wildcard(Wildcard),
    Networks(Networks),
}

/// A value that is held against patterns; its address is worked out once, and only if asked for.
#[derive(Debug)]
pub(crate) struct Subject<'a> {
    value: &'a str,
    address: OnceCell<Option<u128>>,
}

/// A value with `*` in it; each `*` stands for any number of characters, none included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wildcard {
    /// `prefix*`
    Prefix(Box<str>),
    /// `*suffix`
    Suffix(Box<str>),
    /// Anything else: the parts around the stars, two at least.
    Parts(Box<[Box<str>]>),
}

// === impl Pattern ===

impl Pattern {
    /// Whether the pattern takes the value.
    pub(crate) fn matches(&self, subject: &Subject<'_>) -> bool {
        match self {
            Self::Wildcard(wildcard) => wildcard.matches(subject.value),
            Self::Networks(networks) => subject
                .address()
                .is_some_and(|address| networks.contains(address)),
        }
    }
}

// === impl Subject ===

impl<'a> Subject<'a> {
    pub(crate) const fn new(value: &'a str) -> Self {
        Self {
            value,
            address: OnceCell::new(),
        }
    }

    fn address(&self) -> Option<u128> {
        *self.address.get_or_init(|| parse_address(self.value))
    }
}

// === impl Wildcard ===

impl Wildcard {
    /// Whether `value` means a pattern and not just itself.
    pub(crate) fn is_pattern(value: &str) -> bool {
        value.contains('*')
    }

    /// Compiles a value with stars; one without a star matches itself.
    pub(crate) fn new(value: &str) -> Self {
        let parts: Vec<&str> = value.split('*').collect();
        match parts.as_slice() {
            [prefix, ""] => Self::Prefix((*prefix).into()),
            ["", suffix] => Self::Suffix((*suffix).into()),
            parts => Self::Parts(parts.iter().map(|part| (*part).into()).collect()),
        }
    }

    /// Whether the pattern covers `value`.
    pub(crate) fn matches(&self, value: &str) -> bool {
        match self {
            Self::Prefix(prefix) => starts_with(value, prefix),
            Self::Suffix(suffix) => value.ends_with(&**suffix),
            Self::Parts(parts) => match_parts(parts, value),
        }
    }

    /// Whether this pattern covers every value that the pattern written `other` covers.
    ///
    /// The literal parts of a pattern hold no star, so a star of `other` can only fall to one of
    /// this pattern's stars: to match the text of `other` is to match all it stands for.
    pub(crate) fn covers(&self, other: &str) -> bool {
        self.matches(other)
    }
}

/// As `str::starts_with`, but looks at the last byte first: prefixes of one file, such as
/// `/api/v1/` and `/api/v2/`, differ at their ends.
fn starts_with(value: &str, prefix: &str) -> bool {
    let last = prefix.len().wrapping_sub(1);
    value.as_bytes().get(last) == prefix.as_bytes().get(last) && value.starts_with(prefix)
}

/// The first part is a prefix, the last a suffix, and the rest follow in order, each as early as
/// it can: whatever a later choice would match, this one does.
fn match_parts(parts: &[Box<str>], value: &str) -> bool {
    let [first, middle @ .., last] = parts else {
        return parts.iter().all(|part| **part == *value);
    };
    let Some(rest) = value.strip_prefix(&**first) else {
        return false;
    };
    let Some(mut rest) = rest.strip_suffix(&**last) else {
        return false;
    };
    middle.iter().all(|part| match rest.find(&**part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(pattern: &str, value: &str, expected: bool) {
        assert_eq!(
            Wildcard::new(pattern).matches(value),
            expected,
            "{pattern} on {value}"
        );
    }

    #[test]
    fn matches_any_number_of_stars() {
        check("*", "", true);
        check("*", "anything", true);
        check("foo*", "foo", true);
        check("foo*", "foobar", true);
        check("foo*", "fo", false);
        check("*bar", "foobar", true);
        check("*bar", "barn", false);
        check("/api/*/action", "/api/123/action", true);
        check("/api/*/action", "/api/123/other", false);
        check("/api/*/r/*/action", "/api/v1/r/12/action", true);
        check("/api/*/r/*/action", "/api/v1/12/action", false);
        check("**", "x", true);
        check("a*b*c", "abc", true);
        check("a*b*c", "acb", false);
        check("aba*aba", "aba", false);
        check("aba*aba", "abaaba", true);
        check("é*ü", "éü", true);
    }

    #[test]
    fn covers_what_it_hides() {
        let check = |pattern: &str, other: &str, expected: bool| {
            assert_eq!(
                Wildcard::new(pattern).covers(other),
                expected,
                "{pattern} over {other}"
            );
        };
        check("foo*", "foo_bar*", true);
        check("foo_bar*", "foo*", false);
        check("*", "a*b", true);
        check("a*", "a*b", true);
        check("*b", "a*b", true);
        check("a*b", "a*", false);
        check("a*b", "a*x*b", true);
        check("a*x*b", "a*b", false);
    }

    /// The plain definition: try every length for the first star.
    fn oracle(pattern: &[char], value: &[char]) -> bool {
        match pattern.split_first() {
            None => value.is_empty(),
            Some(('*', rest)) => (0..=value.len()).any(|taken| oracle(rest, &value[taken..])),
            Some((char, rest)) => value
                .split_first()
                .is_some_and(|(first, value)| first == char && oracle(rest, value)),
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(pattern in "[ab*é]{0,8}", value in "[abé]{0,10}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            let expected = oracle(&chars(&pattern), &chars(&value));
            prop_assert_eq!(Wildcard::new(&pattern).matches(&value), expected);
        }

        #[test]
        fn what_is_covered_is_matched(
            pattern in "[ab*]{0,6}",
            other in "[ab*]{0,6}",
            value in "[ab]{0,8}",
        ) {
            if Wildcard::new(&pattern).covers(&other) && Wildcard::new(&other).matches(&value) {
                prop_assert!(Wildcard::new(&pattern).matches(&value));
            }
        }
    }
}
