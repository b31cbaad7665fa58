//! API keys: a table from keyed hashes to callers, so that no file holds a key that works.

mod read;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use ring::hmac;

use crate::recipe::SourceFault;
use crate::token::{TokenPlace, TokenPlaceFault};
use crate::{Request, uri};

/// The API keys that are known, and the part of a request that holds one.
#[derive(Debug)]
pub struct ApiKeys {
    place: ApiKeyPlace,
    hasher: ApiKeyHasher,
    table: ApiKeyTable,
}

/// The part of a request that holds the API key. Written in a config file as [`FromStr`] reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApiKeyPlace {
    /// `bearer`, `header:NAME` or `cookie:NAME`.
    Header(TokenPlace),
    /// `query:NAME`: the parameter with that name. Many servers write it to their logs.
    Query(String),
}

/// Computes the hashes of API keys that the table file holds: HMAC-SHA-256 under a key of the operator's.
#[derive(Clone)]
pub struct ApiKeyHasher {
    key: hmac::Key,
}

/// A key for hashes that is short enough to be guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the key for hashes has {given} bytes, at least {MIN_HASH_KEY_BYTES} are needed (openssl rand -hex 32)"
)]
pub struct ShortHashKey {
    /// The number of bytes.
    pub given: usize,
}

/// The table of callers by the hash of their API key.
#[derive(Clone, Default)]
pub struct ApiKeyTable {
    entries: HashMap<[u8; HASH_BYTES], ApiKey>,
}

/// One caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiKey {
    pub(crate) id: Box<str>,
    pub(crate) plan: Option<Box<str>>,
    pub(crate) tenant: Option<Box<str>>,
}

/// The length of SHA-256.
const HASH_BYTES: usize = 32;

/// As long as the output of the hash, as RFC 2104 advises.
const MIN_HASH_KEY_BYTES: usize = 32;

/// The longest API key that is looked up.
const MAX_KEY_BYTES: usize = 1024;

// === impl ApiKeys ===

impl ApiKeys {
    /// API keys at this place of a request, hashed and looked up in the table.
    pub const fn new(place: ApiKeyPlace, hasher: ApiKeyHasher, table: ApiKeyTable) -> Self {
        Self {
            place,
            hasher,
            table,
        }
    }

    /// The entry of the API key that `request` has. An unknown key has none: if all unknown keys were one caller, anybody
    /// could exhaust its limits.
    pub(crate) fn find(&self, request: &Request<'_>) -> Option<&ApiKey> {
        let key = self.place.find(request)?;
        if key.is_empty() || key.len() > MAX_KEY_BYTES {
            return None;
        }
        // Nobody without the hasher's key can choose a hash, so a lookup that ends early tells nothing.
        self.table.entries.get(&self.hasher.hash(&key))
    }

    /// The part of a request that holds the key.
    pub(crate) const fn place(&self) -> &ApiKeyPlace {
        &self.place
    }
}

// === impl ApiKeyPlace ===

impl ApiKeyPlace {
    fn find<'a>(&self, request: &Request<'a>) -> Option<Cow<'a, str>> {
        match self {
            Self::Header(place) => place.find(request.headers),
            // One that is ambiguous was rejected before.
            Self::Query(name) => uri::query(request.uri?, name).ok()?,
        }
    }
}

impl FromStr for ApiKeyPlace {
    type Err = TokenPlaceFault;

    fn from_str(text: &str) -> Result<Self, TokenPlaceFault> {
        match text.strip_prefix("query:") {
            Some("") => Err(SourceFault::Nameless { word: "query" }.into()),
            Some(name) => Ok(Self::Query(name.to_owned())),
            None => text.parse().map(Self::Header),
        }
    }
}

impl fmt::Display for ApiKeyPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(place) => place.fmt(f),
            Self::Query(name) => write!(f, "query:{name}"),
        }
    }
}

// === impl ApiKeyHasher ===

impl ApiKeyHasher {
    /// A hasher with this key, read from a file. One line end after the key does not belong to it.
    pub fn new(key: &[u8]) -> Result<Self, ShortHashKey> {
        let key = crate::without_line_end(key);
        if key.len() < MIN_HASH_KEY_BYTES {
            return Err(ShortHashKey { given: key.len() });
        }
        Ok(Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, key),
        })
    }

    /// The hash of an API key as the table file has it: 64 hexadecimal digits. The same as
    /// `openssl dgst -sha256 -hmac KEY`.
    pub fn hash_hex(&self, api_key: &str) -> String {
        let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble)]);
        let hash = self.hash(api_key);
        let digits = hash.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        digits.map(digit).collect()
    }

    fn hash(&self, api_key: &str) -> [u8; HASH_BYTES] {
        let mut hash = [0; HASH_BYTES];
        hash.copy_from_slice(hmac::sign(&self.key, api_key.as_bytes()).as_ref());
        hash
    }
}

impl fmt::Debug for ApiKeyHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiKeyHasher").finish_non_exhaustive()
    }
}

// === impl ApiKeyTable ===

impl ApiKeyTable {
    /// The number of keys.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if no key is known.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl fmt::Debug for ApiKeyTable {
    /// Shows the size, not the callers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiKeyTable")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
