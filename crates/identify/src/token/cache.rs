//! Verified tokens, remembered until they expire.
//!
//! Only tokens with a good signature get in, so nobody can fill the table with forged ones. A token is known by a keyed
//! hash of 128 bits; the token itself is not kept.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use siphasher::sip128::SipHasher13;

use super::Claims;

/// The verified tokens of one key set.
pub(super) struct TokenCache {
    /// A random key, so that nobody can choose two tokens with one hash.
    seed: [u64; 2],
    /// Each shard has a lock of its own, so that threads rarely wait for each other.
    shards: Box<[Mutex<Shard>]>,
}

/// The keyed hash of a token, in two halves: one for its shard, one for its place in the map of the shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TokenHash {
    shard: u64,
    place: u64,
}

/// One part of the table: at most [`MAX_TOKENS`] / [`SHARDS`] tokens.
#[derive(Default)]
struct Shard {
    tokens: HashMap<TokenHash, VerifiedToken, BuildHasherDefault<PlaceHasher>>,
    /// The tokens in the order in which they are looked at for eviction.
    order: VecDeque<TokenHash>,
    bytes: usize,
}

/// Takes a [`TokenHash`] as it is: hashing a keyed hash once more would be of no use.
#[derive(Default)]
struct PlaceHasher(u64);

struct VerifiedToken {
    claims: Arc<Claims>,
    /// The first second in which it is no longer valid.
    ends_at_s: u64,
    bytes: usize,
    /// A token that was used since it was last looked at is kept once more (second chance).
    is_used: bool,
}

const SHARDS: usize = 16;

/// The largest number of tokens, over all shards: more callers than one node has in the life of a token.
const MAX_TOKENS: usize = 1 << 16;

/// The most memory that claims take, over all shards: 64 MiB, which is 1 KiB for each token.
const MAX_BYTES: usize = 64 << 20;

/// The memory of a token beside its claims: its place in the map and in the order.
const TOKEN_BYTES: usize = 160;

// === impl TokenCache ===

impl TokenCache {
    pub(super) fn new() -> Self {
        Self {
            seed: random_seed(),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
        }
    }

    pub(super) fn hash(&self, token: &str) -> TokenHash {
        let hasher = SipHasher13::new_with_keys(self.seed[0], self.seed[1]);
        let hash = hasher.hash(token.as_bytes());
        TokenHash {
            shard: hash.h1,
            place: hash.h2,
        }
    }

    /// The claims of a token that was verified before and is still valid.
    pub(super) fn get(&self, hash: TokenHash, now_s: u64) -> Option<Arc<Claims>> {
        let mut shard = self.shard(hash);
        let token = shard.tokens.get_mut(&hash)?;
        if now_s >= token.ends_at_s {
            // Its place in the order stays until it is looked at.
            shard.remove(hash);
            return None;
        }
        token.is_used = true;
        Some(Arc::clone(&token.claims))
    }

    /// Remembers a token until `ends_at_s`.
    pub(super) fn insert(&self, hash: TokenHash, claims: &Arc<Claims>, ends_at_s: u64, now_s: u64) {
        let bytes = TOKEN_BYTES + claims.bytes();
        if bytes > MAX_BYTES / SHARDS {
            return;
        }
        let mut shard = self.shard(hash);
        shard.remove(hash);
        let token = VerifiedToken {
            claims: Arc::clone(claims),
            ends_at_s,
            bytes,
            is_used: false,
        };
        shard.make_room(bytes, now_s);
        shard.bytes += bytes;
        shard.tokens.insert(hash, token);
        shard.order.push_back(hash);
    }

    fn shard(&self, hash: TokenHash) -> MutexGuard<'_, Shard> {
        let [first, ..] = hash.shard.to_be_bytes();
        let shard = &self.shards[usize::from(first) % SHARDS];
        // A panic under the lock leaves a table whose sums may be off by one token, which does no harm.
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for TokenCache {
    /// Shows no claims.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenCache").finish_non_exhaustive()
    }
}

// === impl TokenHash ===

impl Hash for TokenHash {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.place);
    }
}

// === impl PlaceHasher ===

impl Hasher for PlaceHasher {
    fn write_u64(&mut self, place: u64) {
        self.0 = place;
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

// === impl Shard ===

impl Shard {
    /// Evicts tokens until one of `bytes` more fits: expired ones, then those that were not used lately.
    fn make_room(&mut self, bytes: usize, now_s: u64) {
        let is_full = |shard: &Self| {
            shard.order.len() >= MAX_TOKENS / SHARDS || shard.bytes + bytes > MAX_BYTES / SHARDS
        };
        // The second look at a token finds it unused, so this ends after two rounds.
        while is_full(self) {
            let Some(hash) = self.order.pop_front() else {
                return;
            };
            match self.tokens.get_mut(&hash) {
                Some(token) if token.is_used && now_s < token.ends_at_s => {
                    token.is_used = false;
                    self.order.push_back(hash);
                }
                _ => self.remove(hash),
            }
        }
    }

    fn remove(&mut self, hash: TokenHash) {
        if let Some(token) = self.tokens.remove(&hash) {
            self.bytes -= token.bytes;
        }
    }
}

/// A key for hashes that nobody outside of this process knows.
pub(super) fn random_seed() -> [u64; 2] {
    // `RandomState` draws its keys from the operating system; see the fingerprints of `tidegate-store`.
    let source = RandomState::new();
    [source.hash_one(0_u64), source.hash_one(1_u64)]
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value};

    use super::*;

    fn claims(n_bytes: usize) -> Arc<Claims> {
        let mut values = Map::new();
        values.insert("x".to_owned(), Value::String("y".repeat(n_bytes)));
        Arc::new(Claims::new(values, 0))
    }

    /// The tokens and bytes of all shards, as they are and as the sums say.
    fn size(cache: &TokenCache) -> (usize, usize) {
        let mut size = (0, 0);
        for shard in &cache.shards {
            let shard = shard.lock().expect("no panic");
            let bytes: usize = shard.tokens.values().map(|token| token.bytes).sum();
            assert_eq!(shard.bytes, bytes);
            assert!(shard.tokens.len() <= shard.order.len());
            size = (size.0 + shard.tokens.len(), size.1 + bytes);
        }
        size
    }

    fn fill(cache: &TokenCache, n_tokens: usize, claims: &Arc<Claims>, ends_at_s: u64) {
        for token in 0..n_tokens {
            let hash = cache.hash(&token.to_string());
            cache.insert(hash, claims, ends_at_s, 0);
        }
    }

    #[test]
    fn the_number_of_tokens_is_bounded() {
        let cache = TokenCache::new();
        fill(&cache, 2 * MAX_TOKENS, &claims(0), 10);
        let (n_tokens, _) = size(&cache);
        assert_eq!(n_tokens, MAX_TOKENS);
    }

    #[test]
    fn the_bytes_of_claims_are_bounded() {
        let cache = TokenCache::new();
        let large = claims(MAX_BYTES / SHARDS / 10);
        // So many that each shard is full, however the random hash spreads them.
        fill(&cache, 60 * SHARDS, &large, 10);
        let (n_tokens, bytes) = size(&cache);
        assert!(bytes <= MAX_BYTES, "{bytes}");
        assert_eq!(n_tokens, 9 * SHARDS);
        let hash = cache.hash("too large");
        cache.insert(hash, &claims(MAX_BYTES / SHARDS), 10, 0);
        assert!(cache.get(hash, 0).is_none());
    }

    #[test]
    fn the_same_token_counts_once() {
        let cache = TokenCache::new();
        let hash = cache.hash("token");
        for _ in 0..3 * MAX_TOKENS / SHARDS {
            cache.insert(hash, &claims(0), 10, 0);
        }
        assert_eq!(size(&cache).0, 1);
        assert!(cache.get(hash, 9).is_some());
        assert!(cache.get(hash, 10).is_none());
        assert_eq!(size(&cache), (0, 0));
    }

    #[test]
    fn a_token_in_use_is_evicted_after_those_that_are_not() {
        let cache = TokenCache::new();
        let claims = claims(0);
        let used = cache.hash("used");
        cache.insert(used, &claims, 10, 0);
        for round in 0..4 {
            assert!(cache.get(used, 0).is_some(), "{round}");
            for token in 0..MAX_TOKENS / 2 {
                let hash = cache.hash(&format!("{round} {token}"));
                cache.insert(hash, &claims, 10, 0);
            }
        }
    }
}
