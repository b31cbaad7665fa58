//! The first word of a slot: whose it is, how its state reads, and the lock of its set.
//!
//! ```text
//!  63     62      61       60 … 59   58 … 49   48 … 0
//! ┌──────┬───────┬─────────┬─────────┬────────┬─────────────┐
//! │ lock │ boxed │ refused │ mark    │ layout │ fingerprint │
//! └──────┴───────┴─────────┴─────────┴────────┴─────────────┘
//! ```
//! Layout 0 marks an empty slot. Only the first slot of a set uses the lock bit, for the whole set.

use tidegate_algorithms::Time;

use super::layout::LayoutId;

/// Bits of a fingerprint kept in a slot. The shard a key lies in tells more bits of the same hash,
/// twelve in a store of 256 MiB: two of ten million keys collide with a chance of about one in forty
/// thousand.
pub(super) const FINGERPRINT_BITS: u32 = 49;

pub(super) const LOCK: u64 = 1 << 63;
const BOXED: u64 = 1 << 62;
const REFUSED: u64 = 1 << 61;
const FINGERPRINT: u64 = (1 << FINGERPRINT_BITS) - 1;
const MARK_SHIFT: u32 = 59;
const MARK: u64 = 3 << MARK_SHIFT;
const LAYOUT: u64 = (1 << MARK_SHIFT) - 1 - FINGERPRINT;

/// Bits above those that name a counter.
const FLAG_BITS: u32 = u64::BITS - MARK_SHIFT;

/// Where version 1 of the snapshot had the layout, and no mark.
const VERSION_1_LAYOUT_SHIFT: u32 = 51;

/// Nanoseconds of a pass, as a power of two: a little more than a second.
const PASS_BITS: u32 = 30;

/// The first word of a slot, without the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag(u64);

/// The time in which a counter was last asked for again: the pass that it is and the one before it. A
/// counter with either mark is not evicted, so one that is asked for every second stays.
///
/// A mark is the number of the pass modulo 3, plus 1; 0 is that of a counter that was asked for once.
/// One that is three passes old looks new again for two passes: that only puts its eviction off.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pass {
    number: u64,
}

/// How the second word of a slot reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// It is the state.
    Narrow,
    /// It is the handle of a block that holds the state.
    Boxed,
}

// === impl Tag ===

impl Tag {
    /// The tag of a slot that holds nothing.
    pub(super) const EMPTY: Self = Self(0);

    pub(super) fn new(hash: u64, layout: LayoutId) -> Self {
        Self((hash & FINGERPRINT) | (u64::from(layout.get()) << FINGERPRINT_BITS))
    }

    pub(super) const fn from_word(word: u64) -> Self {
        Self(word & !LOCK)
    }

    pub(super) const fn word(self) -> u64 {
        self.0
    }

    pub(super) const fn is_empty(self) -> bool {
        self.0 & LAYOUT == 0
    }

    /// Whether both tags name the same counter.
    pub(super) const fn is_same_counter(self, other: Self) -> bool {
        // Layout and fingerprint are all bits but the highest.
        (self.0 ^ other.0) << FLAG_BITS == 0
    }

    pub(super) const fn fingerprint(self) -> u64 {
        self.0 & FINGERPRINT
    }

    pub(super) fn layout(self) -> LayoutId {
        let index = (self.0 & LAYOUT) >> FINGERPRINT_BITS;
        LayoutId::new(u16::try_from(index).expect("a layout has ten bits"))
    }

    pub(super) const fn form(self) -> Form {
        if self.0 & BOXED == 0 {
            Form::Narrow
        } else {
            Form::Boxed
        }
    }

    #[must_use]
    pub(super) const fn with_form(self, form: Form) -> Self {
        match form {
            Form::Narrow => Self(self.0 & !BOXED),
            Form::Boxed => Self(self.0 | BOXED),
        }
    }

    /// Whether the counter's last answer was a refusal: such a counter is evicted after all others.
    pub(super) const fn is_refused(self) -> bool {
        self.0 & REFUSED != 0
    }

    #[must_use]
    pub(super) const fn with_refused(self, refused: bool) -> Self {
        if refused {
            Self(self.0 | REFUSED)
        } else {
            Self(self.0 & !REFUSED)
        }
    }

    /// The tag of a counter that is asked for again in `pass`.
    #[must_use]
    #[inline]
    pub(super) const fn marked(self, pass: Pass) -> Self {
        Self((self.0 & !MARK) | mark(pass.number))
    }

    /// The tag of a counter that nobody asked for lately.
    #[must_use]
    pub(super) const fn unmarked(self) -> Self {
        Self(self.0 & !MARK)
    }

    /// The time from which the counter may be evicted, if nobody asks for it any more.
    pub(super) const fn evictable_at(self, pass: Pass) -> Time {
        let found = self.0 & MARK;
        let passes = if found == mark(pass.number) {
            2
        } else if found == mark(pass.number.wrapping_sub(1)) {
            1
        } else {
            return Time::ZERO;
        };
        Time::from_nanos((pass.number + passes) << PASS_BITS)
    }

    /// Reads a tag of version 1 of the snapshot, which had two more bits of the fingerprint and no mark.
    pub(super) const fn from_version_1(word: u64) -> Self {
        let flags = word & (BOXED | REFUSED);
        let layout = (word >> VERSION_1_LAYOUT_SHIFT) << FINGERPRINT_BITS & LAYOUT;
        Self(flags | layout | (word & FINGERPRINT))
    }
}

// === impl Pass ===

impl Pass {
    #[inline]
    pub(super) const fn at(now: Time) -> Self {
        Self {
            number: now.nanos() >> PASS_BITS,
        }
    }
}

/// The mark of a pass, in its place.
#[inline]
const fn mark(pass: u64) -> u64 {
    (pass % 3 + 1) << MARK_SHIFT
}

#[cfg(all(test, not(loom)))]
mod tests;
