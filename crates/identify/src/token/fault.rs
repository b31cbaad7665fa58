//! Reasons to reject a token.

use jsonwebtoken::errors::{Error, ErrorKind};

/// The reason why a token is not good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum TokenFault {
    /// It has more bytes than are read.
    #[error("token is longer than 8192 bytes")]
    TooLong,
    /// It is not a signed JSON Web Token, its algorithm is unknown (`none` included), or its claims are not JSON.
    #[error("token is malformed or has an unknown algorithm")]
    Malformed,
    /// Its header demands an extension (`crit`).
    #[error("token header demands an unsupported extension")]
    UnsupportedExtension,
    /// Its header names a key that is not in the key set.
    #[error("token is signed with an unknown key")]
    UnknownKey,
    /// Its header names no key, and too many keys could have signed it.
    #[error("token does not name its key, and the key set has too many to try")]
    KeyNotNamed,
    /// Its header names another algorithm than that of the key.
    #[error("token has another algorithm than its key")]
    WrongAlgorithm,
    /// No key has made its signature.
    #[error("token signature is wrong")]
    BadSignature,
    /// It has no `exp`, or one that is not a time.
    #[error("token has no expiry")]
    NoExpiry,
    /// Its `exp` has passed.
    #[error("token has expired")]
    Expired,
    /// Its `nbf` has not come, or is not a time.
    #[error("token is not valid yet")]
    NotYetValid,
    /// Its `iss` is missing or is not accepted.
    #[error("token issuer is not accepted")]
    WrongIssuer,
    /// Its `aud` is missing or is not accepted.
    #[error("token audience is not accepted")]
    WrongAudience,
}

/// The reason why a request is rejected: with 401, or with 429 if too many tokens from its address were not good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum TokenRejection {
    /// It has no token, and needs one.
    #[error("a token is required")]
    Missing,
    /// Its token is not good.
    #[error(transparent)]
    Bad(#[from] TokenFault),
    /// Its token is not checked, because too many tokens from this address were not good.
    #[error("too many tokens from this address were not good; try again later")]
    TooManyFailures,
}

// === impl TokenRejection ===

impl TokenRejection {
    /// The header that the answer has, by name in lower case and value: `www-authenticate` (RFC 6750, section 3; without an error code
    /// if the request has no token), or `retry-after`.
    pub const fn header(self) -> (&'static str, &'static str) {
        match self {
            Self::Missing => ("www-authenticate", "Bearer"),
            Self::Bad(_) => ("www-authenticate", "Bearer error=\"invalid_token\""),
            // Within a second there is room for one failure again.
            Self::TooManyFailures => ("retry-after", "1"),
        }
    }

    /// Returns true if the answer is 429, else it is 401.
    pub const fn is_rate_limited(self) -> bool {
        matches!(self, Self::TooManyFailures)
    }
}

// === impl TokenFault ===

impl TokenFault {
    /// All faults, for metrics that have one counter for each.
    pub const ALL: [Self; 12] = [
        Self::TooLong,
        Self::Malformed,
        Self::UnsupportedExtension,
        Self::UnknownKey,
        Self::KeyNotNamed,
        Self::WrongAlgorithm,
        Self::BadSignature,
        Self::NoExpiry,
        Self::Expired,
        Self::NotYetValid,
        Self::WrongIssuer,
        Self::WrongAudience,
    ];

    /// A short name for logs and metric labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TooLong => "too_long",
            Self::Malformed => "malformed",
            Self::UnsupportedExtension => "unsupported_extension",
            Self::UnknownKey => "unknown_key",
            Self::KeyNotNamed => "key_not_named",
            Self::WrongAlgorithm => "wrong_algorithm",
            Self::BadSignature => "bad_signature",
            Self::NoExpiry => "no_expiry",
            Self::Expired => "expired",
            Self::NotYetValid => "not_yet_valid",
            Self::WrongIssuer => "wrong_issuer",
            Self::WrongAudience => "wrong_audience",
        }
    }
}

impl From<Error> for TokenFault {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::InvalidSignature => Self::BadSignature,
            ErrorKind::InvalidAlgorithm | ErrorKind::UnsupportedAlgorithm => Self::WrongAlgorithm,
            ErrorKind::InvalidIssuer => Self::WrongIssuer,
            ErrorKind::InvalidAudience => Self::WrongAudience,
            ErrorKind::MissingRequiredClaim(name) => match name.as_str() {
                "iss" => Self::WrongIssuer,
                "aud" => Self::WrongAudience,
                _ => Self::NoExpiry,
            },
            _ => Self::Malformed,
        }
    }
}
