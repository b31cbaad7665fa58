//! The sub-window counts of one caller in a block: a ring of numbers of as few bits as the limit
//! needs.

use tidegate_algorithms::sub_windows::Counts;

use super::arena::Block;
use super::state::SOFT_PERIOD;

/// Where the newest sub-window stands, below the width of a count.
const NEWEST: usize = SOFT_PERIOD + 1;
/// Where the sum of all counts stands.
const TOTAL: usize = NEWEST + 1;
/// Where the counts begin.
const COUNTS: usize = TOTAL + 1;

/// The width of a count lies above the index of the newest sub-window, which has far fewer bits.
const WIDTH_SHIFT: u32 = 56;

/// A ring of `len` counts of some bits each.
#[derive(Clone, Debug)]
pub(super) struct BlockCounts<'a> {
    block: Block<'a>,
    len: u64,
}

// === impl BlockCounts ===

impl<'a> BlockCounts<'a> {
    /// Words of a block for `len` counts of `width` bits.
    pub(super) fn words(len: u64, width: u32) -> usize {
        let bits = len.saturating_mul(u64::from(width));
        COUNTS + usize::try_from(bits.div_ceil(64)).unwrap_or(usize::MAX / 2)
    }

    /// The bits that a count up to `most` takes.
    pub(super) fn width_for(most: u64) -> u32 {
        (u64::BITS - most.leading_zeros()).max(1)
    }

    /// Makes a zeroed block a ring of `len` counts of `width` bits.
    pub(super) fn format(block: Block<'a>, len: u64, width: u32) -> Self {
        block.put(NEWEST, u64::from(width) << WIDTH_SHIFT);
        Self { block, len }
    }

    /// Reads a block that `format` made; `None` if it is too small for `len` counts, which one that
    /// was restored from a made-up file may be.
    pub(super) fn open(block: Block<'a>, len: u64) -> Option<Self> {
        let counts = Self { block, len };
        let words = counts.block.len();
        let fits = words > COUNTS && Self::words(len, counts.width()) <= words;
        fits.then_some(counts)
    }

    /// Whether the words of a block of unknown origin are counts, however many.
    pub(super) fn is_sound(block: Block<'a>) -> bool {
        Self::open(block, 1).is_some_and(|counts| (1..=u64::BITS).contains(&counts.width()))
    }

    pub(super) fn width(&self) -> u32 {
        u32::try_from(self.block.get(NEWEST) >> WIDTH_SHIFT).expect("eight bits")
    }

    /// Copies all of these counts to a ring of the same length that has none yet.
    pub(super) fn copy_to(&self, other: &mut BlockCounts<'_>) {
        let oldest = self.newest().saturating_sub(self.len - 1);
        for sub_window in oldest..=self.newest() {
            other.advance(sub_window);
            other.add(self.count(self.newest() - sub_window));
        }
    }

    fn most(&self) -> u64 {
        u64::MAX >> (u64::BITS - self.width())
    }

    /// The word, the shift in it, and the width of the count of a sub-window.
    fn place(&self, sub_window: u64) -> (usize, u32, u32) {
        let width = self.width();
        let bit = (sub_window % self.len) * u64::from(width);
        let word = COUNTS + usize::try_from(bit / 64).expect("within the block");
        (word, u32::try_from(bit % 64).expect("below 64"), width)
    }

    fn read(&self, sub_window: u64) -> u64 {
        let (word, shift, width) = self.place(sub_window);
        let mut pair = u128::from(self.block.get(word));
        if shift + width > 64 {
            pair |= u128::from(self.block.get(word + 1)) << 64;
        }
        low(pair >> shift) & self.most()
    }

    fn write(&self, sub_window: u64, count: u64) {
        let (word, shift, width) = self.place(sub_window);
        let mask = u128::from(self.most()) << shift;
        let bits = u128::from(count) << shift;
        let keep = |index, mask, bits| {
            self.block
                .put(index, (self.block.get(index) & !low(mask)) | low(bits));
        };
        keep(word, mask, bits);
        if shift + width > 64 {
            keep(word + 1, mask >> 64, bits >> 64);
        }
    }
}

impl Counts for BlockCounts<'_> {
    fn newest(&self) -> u64 {
        self.block.get(NEWEST) & ((1 << WIDTH_SHIFT) - 1)
    }

    fn total(&self) -> u64 {
        self.block.get(TOTAL)
    }

    fn count(&self, age: u64) -> u64 {
        match self.newest().checked_sub(age) {
            Some(sub_window) if age < self.len => self.read(sub_window),
            _ => 0,
        }
    }

    fn advance(&mut self, sub_window: u64) {
        let steps = sub_window.saturating_sub(self.newest());
        let mut total = self.total();
        // The places of the sub-windows that come are those of the ones that go.
        for back in 0..steps.min(self.len).min(sub_window + 1) {
            let coming = sub_window - back;
            total = total.saturating_sub(self.read(coming));
            self.write(coming, 0);
        }
        // Back, too: the clock stepped back and nothing is counted.
        if sub_window != self.newest() {
            self.block.put(
                NEWEST,
                sub_window | (u64::from(self.width()) << WIDTH_SHIFT),
            );
            self.block.put(TOTAL, total);
        }
    }

    fn add(&mut self, cost: u64) {
        let count = self.count(0);
        let sum = count.saturating_add(cost).min(self.most());
        self.write(self.newest(), sum);
        self.block
            .put(TOTAL, self.total().saturating_add(sum - count));
    }

    fn take(&mut self, age: u64, cost: u64) -> u64 {
        let count = self.count(age);
        let taken = count.min(cost);
        if taken > 0 {
            self.write(self.newest() - age, count - taken);
            self.block.put(TOTAL, self.total().saturating_sub(taken));
        }
        taken
    }
}

/// The low 64 bits.
fn low(wide: u128) -> u64 {
    u64::try_from(wide & u128::from(u64::MAX)).expect("masked to 64 bits")
}

#[cfg(all(test, not(loom)))]
mod tests;
