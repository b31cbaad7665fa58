//! The callers: 32 hexadecimal digits each, as of a user's identifier, the same for all contenders.

/// A caller's name in a buffer that can be written anew without allocating.
///
/// A `String`, because governor's map of strings must be asked with one.
pub struct Key(String);

/// Draws numbers below a bound, evenly and always the same ones (xorshift64*).
pub struct Draw(u64);

// === impl Key ===

impl Key {
    /// The name of the caller with this number.
    pub fn new(number: u64) -> Self {
        let mut key = Self(String::with_capacity(32));
        key.set(number);
        key
    }

    /// Turns into the name of another caller.
    pub fn set(&mut self, number: u64) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        self.0.clear();
        for half in [scatter(number), scatter(!number)] {
            for byte in half.to_le_bytes() {
                self.0.push(DIGITS[usize::from(byte >> 4)].into());
                self.0.push(DIGITS[usize::from(byte & 15)].into());
            }
        }
    }

    /// The name.
    pub fn as_string(&self) -> &String {
        &self.0
    }
}

// === impl Draw ===

impl Draw {
    /// A sequence of its own for each seed.
    pub fn new(seed: u64) -> Self {
        Self(scatter(seed) | 1)
    }

    /// The next number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let drawn = u128::from(self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)) * u128::from(bound);
        u64::try_from(drawn >> 64).unwrap_or(u64::MAX)
    }
}

/// One step of splitmix64: a bijection, so that different numbers stay different.
fn scatter(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn keys_are_32_digits_and_all_different() {
        let keys: HashSet<String> = (0..10_000)
            .map(|number| Key::new(number).as_string().clone())
            .collect();
        assert_eq!(keys.len(), 10_000);
        let is_digits =
            |key: &String| key.len() == 32 && key.chars().all(|c| c.is_ascii_hexdigit());
        assert!(keys.iter().all(is_digits));
    }

    #[test]
    fn draws_stay_below_the_bound_and_reach_all_of_it() {
        let mut draw = Draw::new(1);
        let drawn: HashSet<u64> = (0..1_000).map(|_| draw.below(10)).collect();
        assert_eq!(drawn, (0..10).collect());
    }
}
