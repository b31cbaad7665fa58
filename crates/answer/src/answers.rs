//! How answers look where a rule does not say.

use tidegate_limiter::{Dialect, Verdict};

/// How answers look where a rule does not say.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    /// In which headers clients are told about limits.
    pub headers: Headers,
    /// The body of a denial, where the service writes it for a proxy.
    pub body: DenialBody,
}

/// The body of a denial, where the service writes it for a proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DenialBody {
    /// Problem details (RFC 9457).
    #[default]
    Problem,
    /// None, so that the proxy sends one of its own.
    Empty,
}

/// In which headers clients are told about limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Headers {
    /// Those of a dialect.
    Dialect(Dialect),
    /// Three with names of the operator's own, as envoyproxy/ratelimit has them.
    Named(HeaderNames),
}

/// The names of three headers: the limit, what remains, and the seconds to the end of the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderNames {
    pub(crate) limit: Box<str>,
    pub(crate) remaining: Box<str>,
    pub(crate) reset: Box<str>,
}

/// A text that cannot be the name of a header.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{name:?} cannot name a header; use letters, digits and hyphens, at most {MAX_NAME_BYTES}, and no \
     name that HTTP needs itself"
)]
pub struct BadHeaderName {
    name: String,
}

/// The longest name; the longest that is registered has 39.
const MAX_NAME_BYTES: usize = 64;

/// Headers that say where a message ends, how it is to be read, or when to come again: a second one
/// with a count in it breaks the answer.
const TAKEN: [&str; 11] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "keep-alive",
    "proxy-connection",
    "retry-after",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

// === impl Answers ===

impl Answers {
    /// The [problem details](crate::problem) of a denial that goes out with `status`, unless it is to have no body.
    pub fn body(&self, verdict: &Verdict, status: u16) -> Option<Vec<u8>> {
        match self.body {
            DenialBody::Problem => crate::problem(verdict, status, None),
            DenialBody::Empty => None,
        }
    }
}

// === impl Headers ===

impl Default for Headers {
    fn default() -> Self {
        Self::Dialect(Dialect::default())
    }
}

impl From<Dialect> for Headers {
    fn from(dialect: Dialect) -> Self {
        Self::Dialect(dialect)
    }
}

// === impl HeaderNames ===

impl HeaderNames {
    /// All names, in lower case.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        [&*self.limit, &*self.remaining, &*self.reset].into_iter()
    }

    /// Takes the names in any case; they go out in lower case.
    ///
    /// # Errors
    ///
    /// For the first of them that cannot name a header.
    pub fn new(limit: &str, remaining: &str, reset: &str) -> Result<Self, BadHeaderName> {
        Ok(Self {
            limit: header_name(limit)?,
            remaining: header_name(remaining)?,
            reset: header_name(reset)?,
        })
    }
}

impl Default for HeaderNames {
    /// Those of envoyproxy/ratelimit where nothing else is set.
    fn default() -> Self {
        Self {
            limit: "ratelimit-limit".into(),
            remaining: "ratelimit-remaining".into(),
            reset: "ratelimit-reset".into(),
        }
    }
}

fn header_name(text: &str) -> Result<Box<str>, BadHeaderName> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let is_name = !text.is_empty() && text.len() <= MAX_NAME_BYTES && text.bytes().all(is_token);
    let is_taken = || TAKEN.iter().any(|name| text.eq_ignore_ascii_case(name));
    if !is_name || is_taken() {
        return Err(BadHeaderName {
            name: text.chars().take(MAX_NAME_BYTES).collect(),
        });
    }
    Ok(text.to_ascii_lowercase().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_out_in_lower_case() {
        let names = HeaderNames::new("RateLimit-Limit", "ratelimit-remaining", "RATELIMIT-RESET");
        assert_eq!(names, Ok(HeaderNames::default()));
    }

    #[test]
    fn what_cannot_name_a_header_is_refused() {
        for bad in [
            "",
            "x limit",
            "x:limit",
            "x\r\nlimit",
            "límite",
            &"x".repeat(65),
            "Content-Length",
            "transfer-encoding",
        ] {
            let error = HeaderNames::new("x-limit", bad, "x-reset").unwrap_err();
            assert!(
                error.to_string().contains("cannot name a header"),
                "{bad:?}"
            );
        }
        assert!(header_name(&"x".repeat(64)).is_ok());
    }
}
