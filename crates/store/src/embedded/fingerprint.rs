//! The fingerprint of a counter's key: SipHash-1-3 under a key of the process' own, so that nobody
//! can choose two callers that share a slot.

use std::hash::{BuildHasher, Hasher, RandomState};

use siphasher::sip::SipHasher13;

use crate::CounterKey;

/// Bytes of a key's values that are laid out on the stack and hashed in one go; longer ones are
/// streamed.
const INLINE: usize = 256;

/// Hashes keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fingerprinter {
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
        }
    }

    /// The hash of `key`: its values, under a key made of the secret, the limit and the number of
    /// values. A lone value goes in as it is, several each with its length, so that no two lists
    /// of values read the same.
    #[inline]
    pub(super) fn hash(&self, key: CounterKey<'_>) -> u64 {
        let hasher = self.hasher(key);
        if let [value] = key.values {
            return hasher.hash(value.as_bytes());
        }
        hash_several(hasher, key.values)
    }

    #[inline]
    fn hasher(&self, key: CounterKey<'_>) -> SipHasher13 {
        let limit = key.limit.0;
        let halves = [limit, limit >> 64].map(|half| half & u128::from(u64::MAX));
        let [low, high] = halves.map(|half| u64::try_from(half).expect("masked to 64 bits"));
        let [first, second] = self.secret;
        SipHasher13::new_with_keys(first ^ low, second ^ high ^ key.values.len() as u64)
    }
}

fn hash_several(mut hasher: SipHasher13, values: &[&str]) -> u64 {
    let mut buffer = [0_u8; INLINE];
    let mut end = 0;
    for value in values {
        let Some(place) = buffer.get_mut(end..end + 4 + value.len()) else {
            for value in values {
                hasher.write(&length_word(value));
                hasher.write(value.as_bytes());
            }
            return hasher.finish();
        };
        let (length, text) = place.split_at_mut(4);
        length.copy_from_slice(&length_word(value));
        text.copy_from_slice(value.as_bytes());
        end += 4 + value.len();
    }
    hasher.hash(&buffer[..end])
}

/// The length of a value, in four bytes. A value of 4 GiB or more never gets here whole.
fn length_word(value: &str) -> [u8; 4] {
    u32::try_from(value.len()).unwrap_or(u32::MAX).to_le_bytes()
}
