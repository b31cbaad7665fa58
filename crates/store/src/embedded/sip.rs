//! SipHash-1-3 of a whole string at once.
//!
//! The same function as the `siphasher` crate's, which the tests compare it with, in fewer
//! instructions: there is no state to keep between writes.

/// The hash of `bytes` under a key.
#[inline]
pub(super) fn sip13(key: [u64; 2], bytes: &[u8]) -> u64 {
    let mut state = Sip::new(key);
    state.absorb_all(bytes);
    state.finish()
}

/// The hash of `bytes` in 128 bits, the low ones first.
#[inline]
pub(super) fn sip13_wide(key: [u64; 2], bytes: &[u8]) -> [u64; 2] {
    let mut state = Sip::new(key);
    state.v1 ^= 0xee;
    state.absorb_all(bytes);
    state.finish_wide()
}

struct Sip {
    v0: u64,
    v1: u64,
    v2: u64,
    v3: u64,
}

// === impl Sip ===

impl Sip {
    #[inline]
    const fn new([k0, k1]: [u64; 2]) -> Self {
        // "somepseudorandomlygeneratedbytes", as the function's definition has it.
        Self {
            v0: k0 ^ 0x736f_6d65_7073_6575,
            v1: k1 ^ 0x646f_7261_6e64_6f6d,
            v2: k0 ^ 0x6c79_6765_6e65_7261,
            v3: k1 ^ 0x7465_6462_7974_6573,
        }
    }

    #[inline]
    const fn absorb(&mut self, word: u64) {
        self.v3 ^= word;
        self.round();
        self.v0 ^= word;
    }

    #[inline]
    fn absorb_all(&mut self, bytes: &[u8]) {
        let (words, tail) = bytes.as_chunks::<8>();
        for word in words {
            self.absorb(u64::from_le_bytes(*word));
        }
        // The last word: what is left of the string, and its length in the highest byte.
        let length = (bytes.len() as u64) << 56;
        self.absorb(length | rest(bytes, tail));
    }

    #[inline]
    const fn finish(mut self) -> u64 {
        self.v2 ^= 0xff;
        self.finalize()
    }

    #[inline]
    const fn finish_wide(mut self) -> [u64; 2] {
        self.v2 ^= 0xee;
        let low = self.finalize();
        self.v1 ^= 0xdd;
        [low, self.finalize()]
    }

    #[inline]
    const fn finalize(&mut self) -> u64 {
        self.round();
        self.round();
        self.round();
        self.v0 ^ self.v1 ^ self.v2 ^ self.v3
    }

    #[inline]
    const fn round(&mut self) {
        self.v0 = self.v0.wrapping_add(self.v1);
        self.v2 = self.v2.wrapping_add(self.v3);
        self.v1 = self.v1.rotate_left(13) ^ self.v0;
        self.v3 = self.v3.rotate_left(16) ^ self.v2;
        self.v0 = self.v0.rotate_left(32);
        self.v2 = self.v2.wrapping_add(self.v1);
        self.v0 = self.v0.wrapping_add(self.v3);
        self.v1 = self.v1.rotate_left(17) ^ self.v2;
        self.v3 = self.v3.rotate_left(21) ^ self.v0;
        self.v2 = self.v2.rotate_left(32);
    }
}

/// The `tail` of `bytes` as the low bytes of a word.
#[inline]
fn rest(bytes: &[u8], tail: &[u8]) -> u64 {
    // A string of a word or more has its tail at the end of its last eight bytes.
    if let Some(end) = bytes.last_chunk::<8>() {
        // In two steps, because an empty tail leaves nothing of the word.
        return u64::from_le_bytes(*end) >> (8 * (7 - tail.len())) >> 8;
    }
    let mut word = 0;
    for &byte in tail.iter().rev() {
        word = (word << 8) | u64::from(byte);
    }
    word
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use siphasher::sip::SipHasher13;
    use siphasher::sip128;

    use super::*;

    proptest! {
        /// Any string, under any key, hashes as the reference says.
        #[test]
        fn agrees_with_the_reference(key: [u64; 2], bytes: Vec<u8>) {
            let reference = SipHasher13::new_with_keys(key[0], key[1]).hash(&bytes);
            prop_assert_eq!(sip13(key, &bytes), reference);
            let reference = sip128::SipHasher13::new_with_keys(key[0], key[1]).hash(&bytes);
            prop_assert_eq!(sip13_wide(key, &bytes), [reference.h1, reference.h2]);
        }
    }
}
