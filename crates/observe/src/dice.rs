//! Chance, for whatever is sampled.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU32;

/// A source of chance for one core: a few instructions a throw. Traffic cannot keep step with it, as
/// it could with every n-th request, for nobody outside knows where it began.
#[derive(Debug)]
pub(crate) struct Dice(Cell<u64>);

// === impl Dice ===

impl Dice {
    pub(crate) fn new() -> Self {
        Self::seeded(RandomState::new().hash_one("dice"))
    }

    fn seeded(seed: u64) -> Self {
        // The generator stands still at zero.
        Self(Cell::new(seed | 1))
    }

    /// True once in `n` throws.
    #[inline]
    pub(crate) fn one_in(&self, n: NonZeroU32) -> bool {
        ((self.throw() >> 32) * u64::from(n.get())) >> 32 == 0
    }

    /// A number below `n`; 0 if `n` is 0.
    pub(crate) fn below(&self, n: u32) -> u32 {
        u32::try_from(((self.throw() >> 32) * u64::from(n)) >> 32).unwrap_or_default()
    }

    /// True in `millionths` of a million throws.
    pub(crate) fn in_millionths(&self, millionths: u32) -> bool {
        ((self.throw() >> 32) * 1_000_000) >> 32 < u64::from(millionths)
    }

    /// Marsaglia's xorshift with a multiplication at the end (Vigna, 2016).
    #[inline]
    fn throw(&self) -> u64 {
        let mut state = self.0.get();
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        self.0.set(state);
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn falls_as_often_as_it_should() {
        let dice = Dice::seeded(42);
        let sixteen = NonZeroU32::new(16).unwrap();
        let n = (0..160_000).filter(|_| dice.one_in(sixteen)).count();
        // Six standard deviations of 97 around the mean.
        assert!(n.abs_diff(10_000) < 582, "{n}");
        let n = (0..100_000).filter(|_| dice.in_millionths(250_000)).count();
        assert!(n.abs_diff(25_000) < 822, "{n}");
    }

    #[test]
    fn is_sure_at_the_ends() {
        let dice = Dice::new();
        for _ in 0..1_000 {
            assert!(dice.one_in(NonZeroU32::MIN));
            assert!(dice.in_millionths(1_000_000));
            assert!(!dice.in_millionths(0));
        }
    }
}
