//! SipHash-1-3 of a whole string at once.
//!
//! The same function as the `siphasher` crate's, which the tests compare it with, in fewer
//! instructions: there is no state to keep between writes.

/// The hash of `bytes` under a key.
#[inline]
pub(super) fn sip13(key: [u64; 2], bytes: &[u8]) -> u64 {
    let mut state = Sip::new(key);
    let (words, tail) = bytes.as_chunks::<8>();
    for word in words {
        state.absorb(u64::from_le_bytes(*word));
    }
    // The last word: what is left of the string, and its length in the highest byte.
    let mut last = (bytes.len() as u64) << 56;
    for (place, &byte) in tail.iter().enumerate() {
        last |= u64::from(byte) << (place * 8);
    }
    state.absorb(last);
    state.finish()
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
    const fn finish(mut self) -> u64 {
        self.v2 ^= 0xff;
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use siphasher::sip::SipHasher13;

    use super::*;

    proptest! {
        /// Any string, under any key, hashes as the reference says.
        #[test]
        fn agrees_with_the_reference(key: [u64; 2], bytes: Vec<u8>) {
            let reference = SipHasher13::new_with_keys(key[0], key[1]).hash(&bytes);
            prop_assert_eq!(sip13(key, &bytes), reference);
        }
    }
}
