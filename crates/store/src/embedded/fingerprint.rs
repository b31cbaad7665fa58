//! The fingerprint of a counter's key: SipHash-1-3 under a key of the process' own, so that nobody
//! can choose two callers that share a slot.

use std::hash::{BuildHasher, RandomState};

use smallvec::SmallVec;

use super::sip::{sip13, sip13_wide};
use super::table::CHOICE_BITS;
use super::tag::FINGERPRINT_BITS;
use crate::CounterKey;

/// Bytes of a key's values that are laid out on the stack; longer keys take an allocation.
const INLINE: usize = 256;

/// What tells the key of several values from that of one. A number that no two limits differ by,
/// unlike that of the values: 2^64 over the golden ratio.
const SEVERAL: u64 = 0x9E37_79B9_7F4A_7C15;

/// Hashes keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fingerprinter {
    pub(super) secret: [u64; 2],
    /// Bits of a hash that the slots of the store before this one did not keep, see
    /// [`complete`](Self::complete); none in a store that began empty.
    pub(super) lost: u64,
}

/// Makes digests of keys, for tables that hold nothing else of them: 128 bits under a secret of the
/// process' own, so that nobody can choose two callers with the same.
#[derive(Clone, Copy, Debug)]
pub struct Digester {
    secret: [u64; 2],
}

// === impl Fingerprinter ===

impl Fingerprinter {
    /// A fingerprinter with a random key.
    pub(super) fn random() -> Self {
        // `RandomState` draws its keys from the operating system; hashing two different words
        // under it gives 128 bits that follow from nothing an outsider sees.
        let source = RandomState::new();
        Self {
            secret: [source.hash_one(0_u64), source.hash_one(1_u64)],
            lost: 0,
        }
    }

    /// A fingerprinter with that key, for tests that need the same sets each time.
    #[cfg(all(loom, test))]
    pub(super) const fn with_secret(secret: [u64; 2]) -> Self {
        Self { secret, lost: 0 }
    }

    /// The bits of a hash that follow neither from a slot's fingerprint nor from the number of its
    /// shard, where a shard's number has so many bits.
    pub(super) const fn lost_among(shard_bits: u32) -> u64 {
        let below_shard = u64::MAX.unbounded_shr(shard_bits);
        below_shard & u64::MAX.unbounded_shl(FINGERPRINT_BITS)
    }

    /// A hash whose lost bits are copies of others. A store that was restored from one with fewer
    /// shards cannot tell those bits of the old counters, so it uses them of no counter: then all
    /// are found. The copied bits are the lowest of those that choose a key's second set, which
    /// hardly depends on them.
    #[inline]
    pub(super) const fn complete(&self, hash: u64) -> u64 {
        const DISTANCE: u32 = FINGERPRINT_BITS - CHOICE_BITS;
        (hash & !self.lost) | ((hash << DISTANCE) & self.lost)
    }

    /// The hash of `key`: its values, under a key made of the secret, the limit and whether there
    /// is one value. A lone value goes in as it is, several each with its length, so that no two
    /// lists of values read the same.
    #[inline]
    pub(super) fn hash(&self, key: CounterKey<'_>) -> u64 {
        self.complete(hashed(self.secret, key, sip13))
    }
}

// === impl Digester ===

impl Digester {
    /// A digester with a secret of its own.
    pub fn new() -> Self {
        let Fingerprinter { secret, .. } = Fingerprinter::random();
        Self { secret }
    }

    /// The digest of `key`, the same for the life of this digester.
    #[inline]
    pub fn digest(&self, key: CounterKey<'_>) -> u128 {
        let [low, high] = hashed(self.secret, key, sip13_wide);
        u128::from(low) | (u128::from(high) << 64)
    }
}

impl Default for Digester {
    fn default() -> Self {
        Self::new()
    }
}

/// A hash of `key` under a key made of a secret, the limit and whether there is one value: see
/// [`Fingerprinter::hash`].
#[inline]
fn hashed<T>(
    [first, second]: [u64; 2],
    key: CounterKey<'_>,
    hash: impl FnOnce([u64; 2], &[u8]) -> T,
) -> T {
    let [low, high] = halves(key.limit.0);
    let [first, second] = [first ^ low, second ^ high];
    if let [value] = key.values {
        return hash([first, second], value.as_bytes());
    }
    hashed_together([first, second ^ SEVERAL], key.values, hash)
}

/// A hash of several values, each with its length.
#[inline(never)]
fn hashed_together<T>(
    secret: [u64; 2],
    values: &[&str],
    hash: impl FnOnce([u64; 2], &[u8]) -> T,
) -> T {
    let mut bytes: SmallVec<[u8; INLINE]> = SmallVec::new();
    for value in values {
        bytes.extend_from_slice(&length_word(value));
        bytes.extend_from_slice(value.as_bytes());
    }
    hash(secret, &bytes)
}

/// The low and the high half of a number.
#[inline]
fn halves(number: u128) -> [u64; 2] {
    let half = |number: u128| u64::try_from(number & u128::from(u64::MAX)).unwrap_or(u64::MAX);
    [half(number), half(number >> 64)]
}

/// The length of a value, in four bytes. A value of 4 GiB or more never gets here whole.
fn length_word(value: &str) -> [u8; 4] {
    u32::try_from(value.len()).unwrap_or(u32::MAX).to_le_bytes()
}

#[cfg(all(test, not(loom)))]
mod tests;
