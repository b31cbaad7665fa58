//! Tokens, API keys and labels: the keys and tables by which callers are identified.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use crate::api_key::{ApiKey, ApiKeyPlace, ApiKeys};
use crate::label::LabelTable;
use crate::token::{BadToken, MissingToken, TokenPlace, TokenVerifier, UnverifiedToken};
use crate::{Claims, Headers, Request};

/// The keys and tables by which callers are identified. A reload replaces it as a whole; parts that did not change can be
/// shared, because each is behind an [`Arc`].
#[derive(Clone, Debug, Default)]
pub struct Identities {
    tokens: Option<Arc<TokenVerifier>>,
    api_keys: Option<Arc<ApiKeys>>,
    labels: BTreeMap<String, Arc<LabelTable>>,
}

/// The token of a request, before any signature is checked.
#[derive(Clone, Debug)]
pub(crate) enum TokenFound<'a> {
    /// The request has no token, or no tokens are configured.
    Absent,
    /// The same token was verified before and has not expired.
    Verified(Arc<Claims>),
    /// The token must be [verified](Identities::claims) before its claims mean anything.
    Unverified(UnverifiedToken<'a>),
}

// === impl Identities ===

impl Identities {
    /// Identities without keys and tables.
    pub fn none() -> &'static Self {
        static NONE: Identities = Identities {
            tokens: None,
            api_keys: None,
            labels: BTreeMap::new(),
        };
        &NONE
    }

    /// Accepts tokens.
    #[must_use]
    pub fn with_tokens(mut self, tokens: Arc<TokenVerifier>) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Accepts API keys.
    #[must_use]
    pub fn with_api_keys(mut self, api_keys: Arc<ApiKeys>) -> Self {
        self.api_keys = Some(api_keys);
        self
    }

    /// Adds the table of labels for the source `label:NAME`.
    #[must_use]
    pub fn with_labels(mut self, name: &str, table: Arc<LabelTable>) -> Self {
        self.labels.insert(name.to_owned(), table);
        self
    }

    /// The verifier of tokens, which can be shared with the next generation.
    pub fn tokens(&self) -> Option<&Arc<TokenVerifier>> {
        self.tokens.as_ref()
    }

    /// Finds the token of a request at the configured place. Checks no signature, so it is cheap.
    ///
    /// `now_s` is the time in seconds since 1970.
    pub(crate) fn find_token<'a>(&self, headers: &'a dyn Headers, now_s: u64) -> TokenFound<'a> {
        match &self.tokens {
            None => TokenFound::Absent,
            Some(tokens) => tokens.find(headers, now_s),
        }
    }

    /// The treatment of a request whose token is not good.
    pub fn bad_token(&self) -> BadToken {
        self.tokens
            .as_ref()
            .map_or(BadToken::Deny, |tokens| tokens.settings().bad_token)
    }

    /// The treatment of a request without a token. Where no tokens are configured, none is demanded.
    pub fn missing_token(&self) -> MissingToken {
        self.tokens
            .as_ref()
            .map_or_else(MissingToken::default, |tokens| {
                tokens.settings().missing_token
            })
    }

    /// The table entry of the API key that the request has, if it is known.
    pub(crate) fn api_key(&self, request: &Request<'_>) -> Option<&ApiKey> {
        self.api_keys.as_ref()?.find(request)
    }

    /// The part of a request that holds API keys, if they are configured.
    pub(crate) fn api_key_place(&self) -> Option<&ApiKeyPlace> {
        Some(self.api_keys.as_ref()?.place())
    }

    /// The part of a request that holds tokens, if they are configured.
    pub(crate) fn token_place(&self) -> Option<&TokenPlace> {
        Some(&self.tokens.as_ref()?.settings().place)
    }

    /// The label of an address in the table of this name.
    pub(crate) fn label(&self, table: &str, address: IpAddr) -> Option<&str> {
        self.labels.get(table)?.find(address)
    }
}
