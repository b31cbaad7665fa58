//! Whom the calls ask about.

use bytes::Bytes;

use super::message::question;

/// Some callers of one kind.
#[derive(Clone, Copy)]
pub struct Keys {
    /// The key of the descriptor's entry: one that a rule has, or not.
    pub entry: &'static str,
    /// How many callers there are.
    pub count: u64,
}

// === impl Keys ===

impl Keys {
    /// The question about one of them.
    pub fn question(self, caller: u64) -> Bytes {
        question(self.entry, &format!("u{caller:07}"))
    }

    /// Questions about any of them at random, for ever.
    pub fn draws(self, seed: u64) -> impl Iterator<Item = Bytes> {
        // xorshift64*: some nanoseconds for a number.
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        std::iter::repeat_with(move || {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            let number = state.wrapping_mul(0x2545_F491_4F6C_DD1D);
            self.question((number >> 16) % self.count)
        })
    }
}
