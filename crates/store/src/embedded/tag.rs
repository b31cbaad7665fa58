//! The first word of a slot: whose it is, how its state reads, and the lock of its set.
//!
//! ```text
//!  63     62      61       60 … 51   50 … 0
//! ┌──────┬───────┬─────────┬────────┬─────────────┐
//! │ lock │ boxed │ refused │ layout │ fingerprint │
//! └──────┴───────┴─────────┴────────┴─────────────┘
//! ```
//! Layout 0 marks an empty slot. Only the first slot of a set uses the lock bit, for the whole set.

use super::layout::LayoutId;

/// Bits of a fingerprint kept in a slot. The shard a key lies in tells more bits of the same hash,
/// twelve in a store of 256 MiB: two of ten million keys collide with a chance of about one in ten
/// thousand.
pub(super) const FINGERPRINT_BITS: u32 = 51;

pub(super) const LOCK: u64 = 1 << 63;
const BOXED: u64 = 1 << 62;
const REFUSED: u64 = 1 << 61;
const FINGERPRINT: u64 = (1 << FINGERPRINT_BITS) - 1;
const LAYOUT: u64 = REFUSED - 1 - FINGERPRINT;

/// The first word of a slot, without the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag(u64);

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
        // Layout and fingerprint are all bits but the highest three.
        (self.0 ^ other.0) << 3 == 0
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

    /// Whether the counter's last answer was a refusal: such a counter is never evicted while it
    /// lives.
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
}

#[cfg(all(test, not(loom)))]
mod tests;
