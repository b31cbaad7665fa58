//! Signed tokens (JWT, RFC 7519): found in a request, verified, and remembered until they expire.
//!
//! The time is a parameter: `jsonwebtoken` would read a clock for `exp` and `nbf`, so both are checked here.

mod cache;
mod claims;
mod failures;
mod fault;
mod keys;
mod place;
mod provider;
mod spki;
mod steps;

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Validation};
use serde_json::{Map, Value};

pub use claims::{ClaimPath, ClaimPathFault, Claims};
pub use fault::{TokenFault, TokenRejection};
use keys::TokenKey;
pub use keys::{LeftOutKey, TokenKeyFault, TokenKeys};
pub use place::{TokenPlace, TokenPlaceFault};
pub use steps::LimitSteps;

use crate::Headers;
use crate::identities::TokenFound;
use cache::{TokenCache, TokenHash};
use failures::FailureTable;

/// The settings of tokens. Issuers and audiences have no default: accepting any of them must be said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenSettings {
    /// The part of a request that holds the token.
    pub place: TokenPlace,
    /// The values of `iss` that are accepted.
    pub issuers: AcceptedNames,
    /// The values of `aud` that are accepted.
    pub audiences: AcceptedNames,
    /// The difference between our clock and the issuer's that is tolerated for `exp` and `nbf`.
    pub leeway: Duration,
    /// The treatment of a request whose token is not good.
    pub bad_token: BadToken,
    /// The treatment of a request without a token; a route of the gateway may have its own.
    pub missing_token: MissingToken,
    /// The claim that holds the plan of a caller.
    pub plan_claim: Option<ClaimPath>,
    /// The claim that holds the tenant of a caller.
    pub tenant_claim: Option<ClaimPath>,
}

/// The values of a claim that are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcceptedNames {
    /// One of these; a token without the claim is rejected.
    Named(Vec<String>),
    /// Any value, or none.
    Any,
}

/// The treatment of a request whose token is not good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BadToken {
    /// It is denied with 401.
    #[default]
    Deny,
    /// It is treated as a request without a token.
    Anonymous,
}

/// The treatment of a request without a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingToken {
    /// It has only the limits that need no token.
    #[default]
    Anonymous,
    /// It is denied with 401.
    Deny,
}

/// Finds and verifies tokens of one key set.
#[derive(Debug)]
pub struct TokenVerifier {
    settings: TokenSettings,
    keys: TokenKeys,
    verified: TokenCache,
    /// Shared with the verifiers before and after this one.
    n_unknown_keys: Arc<AtomicU64>,
    /// Shared likewise.
    failures: Arc<FailureTable>,
}

/// A token that was found in a request and may be forged.
#[derive(Clone)]
pub(crate) struct UnverifiedToken<'a> {
    text: Cow<'a, str>,
    hash: TokenHash,
}

/// The longest token that is looked at. Tokens of one to two KiB are usual.
const MAX_TOKEN_BYTES: usize = 8 * 1024;

// === impl TokenSettings ===

impl TokenSettings {
    /// The leeway where nobody sets it. Hosts that synchronise their clocks differ by less than a second; 30 s forgives one
    /// that does not, and is short beside the minutes that a token lives.
    pub const LEEWAY: Duration = Duration::from_secs(30);

    /// Settings with defaults for everything that has one.
    pub const fn new(issuers: AcceptedNames, audiences: AcceptedNames) -> Self {
        Self {
            place: TokenPlace::Bearer,
            issuers,
            audiences,
            leeway: Self::LEEWAY,
            bad_token: BadToken::Deny,
            missing_token: MissingToken::Anonymous,
            plan_claim: None,
            tenant_claim: None,
        }
    }

    /// The checks that `jsonwebtoken` makes for a key of this algorithm.
    fn validation(&self, algorithm: Algorithm) -> Validation {
        let mut validation = Validation::new(algorithm);
        validation.validate_exp = false;
        validation.validate_nbf = false;
        validation.iss = self.issuers.named();
        validation.aud = self.audiences.named();
        validation.validate_aud = validation.aud.is_some();
        let is_required = [
            ("iss", validation.iss.is_some()),
            ("aud", validation.aud.is_some()),
        ];
        let required = is_required
            .into_iter()
            .filter(|(_, is_required)| *is_required);
        let required = required.map(|(name, _)| name.to_owned());
        // `exp` is required from the start.
        validation.required_spec_claims.extend(required);
        validation
    }
}

// === impl AcceptedNames ===

impl AcceptedNames {
    fn named(&self) -> Option<HashSet<String>> {
        match self {
            Self::Named(names) => Some(names.iter().cloned().collect()),
            Self::Any => None,
        }
    }
}

// === impl TokenVerifier ===

impl TokenVerifier {
    /// A verifier that has not seen a token yet.
    pub fn new(settings: TokenSettings, keys: TokenKeys) -> Self {
        Self {
            settings,
            keys,
            verified: TokenCache::new(),
            n_unknown_keys: Arc::default(),
            failures: Arc::new(FailureTable::new(cache::random_seed())),
        }
    }

    /// A verifier that takes the place of this one, and goes on counting failures and tokens with unknown keys.
    #[must_use]
    pub fn replaced_by(&self, settings: TokenSettings, keys: TokenKeys) -> Self {
        Self {
            n_unknown_keys: Arc::clone(&self.n_unknown_keys),
            failures: Arc::clone(&self.failures),
            ..Self::new(settings, keys)
        }
    }

    /// The settings that it was made with.
    pub const fn settings(&self) -> &TokenSettings {
        &self.settings
    }

    /// The keys that it was made with.
    pub const fn keys(&self) -> &TokenKeys {
        &self.keys
    }

    /// The number of tokens so far that named a key which is not in the set. If it grew, the issuer may have new keys: fetch
    /// them, but not more often than once a minute, because anybody can send such tokens.
    pub fn n_unknown_keys(&self) -> u64 {
        self.n_unknown_keys.load(Ordering::Relaxed)
    }

    /// Finds the token of a request, verified or not.
    pub(crate) fn find<'a>(&self, headers: &'a dyn Headers, now_s: u64) -> TokenFound<'a> {
        let Some(text) = self.settings.place.find(headers) else {
            return TokenFound::Absent;
        };
        let hash = self.verified.hash(&text);
        match self.verified.get(hash, now_s) {
            Some(claims) => TokenFound::Verified(claims),
            None => TokenFound::Unverified(UnverifiedToken { text, hash }),
        }
    }

    /// Verifies a token of this client and remembers it if it is good. Its signature is not checked if too many tokens from its address
    /// were not good. A token without a key that could have signed it costs no check, so it is rejected as it is and not counted.
    pub(crate) fn verify(
        &self,
        token: &UnverifiedToken<'_>,
        client: Option<IpAddr>,
        now_s: u64,
    ) -> Result<Arc<Claims>, TokenRejection> {
        let keys = self.candidates(&token.text).inspect_err(|fault| {
            if *fault == TokenFault::UnknownKey {
                self.n_unknown_keys.fetch_add(1, Ordering::Relaxed);
            }
        })?;
        let attempt = self.failures.begin(client, now_s);
        let attempt = attempt.ok_or(TokenRejection::TooManyFailures)?;
        let claims = Arc::new(self.check(&token.text, &keys, now_s)?);
        self.failures.forgive(attempt);
        let ends_at_s = self.end_of(claims.expires_at_s());
        self.verified.insert(token.hash, &claims, ends_at_s, now_s);
        Ok(claims)
    }

    /// The keys that may have signed a token.
    fn candidates(&self, token: &str) -> Result<Vec<&TokenKey>, TokenFault> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(TokenFault::TooLong);
        }
        let header = jsonwebtoken::decode_header(token)?;
        if header.crit.is_some() {
            return Err(TokenFault::UnsupportedExtension);
        }
        self.keys.candidates(&header)
    }

    /// Checks the signature and the registered claims.
    fn check(&self, token: &str, keys: &[&TokenKey], now_s: u64) -> Result<Claims, TokenFault> {
        for key in keys {
            let validation = self.settings.validation(key.algorithm);
            match jsonwebtoken::decode::<Map<String, Value>>(token, &key.key, &validation) {
                Ok(data) => return self.check_times(data.claims, now_s),
                // Another key may have signed it.
                Err(error) if *error.kind() == ErrorKind::InvalidSignature => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(TokenFault::BadSignature)
    }

    fn check_times(&self, values: Map<String, Value>, now_s: u64) -> Result<Claims, TokenFault> {
        let expires_at_s = values
            .get("exp")
            .and_then(seconds)
            .ok_or(TokenFault::NoExpiry)?;
        if now_s >= self.end_of(expires_at_s) {
            return Err(TokenFault::Expired);
        }
        if let Some(not_before) = values.get("nbf") {
            let not_before_s = seconds(not_before).ok_or(TokenFault::NotYetValid)?;
            if not_before_s > now_s.saturating_add(self.settings.leeway.as_secs()) {
                return Err(TokenFault::NotYetValid);
            }
        }
        Ok(Claims::new(values, expires_at_s))
    }

    /// The first second in which a token that expires at `expires_at_s` is not accepted any more.
    const fn end_of(&self, expires_at_s: u64) -> u64 {
        expires_at_s.saturating_add(self.settings.leeway.as_secs())
    }
}

// === impl UnverifiedToken ===

impl fmt::Debug for UnverifiedToken<'_> {
    /// Shows nothing of the token, because a log is no place for it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnverifiedToken").finish_non_exhaustive()
    }
}

/// A `NumericDate` (RFC 7519, section 2) in whole seconds; one before 1970 is 0.
fn seconds(value: &Value) -> Option<u64> {
    let number = value.as_number()?;
    if let Some(seconds) = number.as_u64() {
        return Some(seconds);
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast saturates, and fractions of a second do not matter"
    )]
    number.as_f64().map(|seconds| seconds as u64)
}

#[cfg(test)]
mod tests;
