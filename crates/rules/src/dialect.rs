//! The dialects in which clients are told about limits. Here they are only words: a rule names one, and
//! the front doors speak it.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

/// In which headers a client is told the limit, what remains and when to come back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// `X-RateLimit-Limit`, `X-RateLimit-Remaining`, `X-RateLimit-Retry-After`.
    #[default]
    XRateLimit,
    /// `RateLimit` and `RateLimit-Policy` of the current IETF draft.
    Ietf,
    /// `RateLimit-Limit`, `RateLimit-Remaining`, `RateLimit-Reset` of the drafts up to 06.
    Ietf06,
    /// GitHub's: `X-RateLimit-Reset` is a time of the clock.
    GitHub,
    /// Envoy's: every limit in `X-RateLimit-Limit`.
    Envoy,
    /// None but `Retry-After`.
    None,
}

/// A word that names no dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownDialect;

// === impl Dialect ===

impl Dialect {
    /// Every dialect.
    pub const ALL: [Self; 6] = [
        Self::XRateLimit,
        Self::Ietf,
        Self::Ietf06,
        Self::GitHub,
        Self::Envoy,
        Self::None,
    ];

    /// The word for it in a config file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::XRateLimit => "x-ratelimit",
            Self::Ietf => "ietf",
            Self::Ietf06 => "ietf-06",
            Self::GitHub => "github",
            Self::Envoy => "envoy",
            Self::None => "none",
        }
    }
}

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(text: &str) -> Result<Self, UnknownDialect> {
        let named = |dialect: &Self| dialect.name() == text;
        Self::ALL.into_iter().find(named).ok_or(UnknownDialect)
    }
}

// === impl UnknownDialect ===

impl fmt::Display for UnknownDialect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Dialect::ALL.map(Dialect::name).join(", ");
        write!(formatter, "no such dialect; there are {names}")
    }
}

impl Error for UnknownDialect {}
