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
    /// How often each of them comes.
    pub spread: Spread,
}

/// How often each caller comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// All alike.
    Even,
    /// By Zipf's law with exponent 1: the k-th about as often as one in k.
    Zipf,
}

// === impl Keys ===

impl Keys {
    /// The question about one of them.
    pub fn question(self, caller: u64) -> Bytes {
        question(self.entry, &format!("u{caller:07}"))
    }

    /// Questions about any of them at random, for ever.
    pub fn draws(self, seed: u64) -> impl Iterator<Item = Bytes> {
        self.callers(seed).map(move |caller| self.question(caller))
    }

    /// Any of them at random, for ever.
    pub fn callers(self, seed: u64) -> impl Iterator<Item = u64> {
        // xorshift64*: some nanoseconds for a number.
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        std::iter::repeat_with(move || {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            let number = state.wrapping_mul(0x2545_F491_4F6C_DD1D);
            self.spread.place(number >> 11, self.count)
        })
    }
}

// === impl Spread ===

impl Spread {
    /// Which of `count` callers a random number of 53 bits stands for.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the power lies between 1 and one more than the count"
    )]
    fn place(self, random: u64, count: u64) -> u64 {
        match self {
            Self::Even => random % count,
            Self::Zipf => {
                let share = random as f64 / (1_u64 << 53) as f64;
                (((count + 1) as f64).powf(share) as u64)
                    .saturating_sub(1)
                    .min(count - 1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_caller_of_zipf_comes_most_and_all_can_come() {
        let keys = Keys {
            entry: "user",
            count: 1_000,
            spread: Spread::Zipf,
        };
        let mut times = vec![0_u32; 1_000];
        for caller in keys.callers(1).take(1_000_000) {
            times[usize::try_from(caller).unwrap()] += 1;
        }
        // ln 2 over ln 1001 of them are the first caller's.
        assert!((95_000..106_000).contains(&times[0]), "{}", times[0]);
        assert!(times[0] > times[1] && times[1] > times[9] && times[9] > times[99]);
        assert!(times.iter().all(|&times| times > 0));
    }
}
