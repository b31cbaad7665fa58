//! The first word of a slot: whose it is, how its state reads, and the lock of its set.
//!
//! ```text
//!  63     62      61 … 59   58 … 49   48 … 0
//! ┌──────┬───────┬─────────┬─────────┬─────────────┐
//! │ lock │ boxed │ mark    │ layout  │ fingerprint │
//! └──────┴───────┴─────────┴─────────┴─────────────┘
//! ```
//! Layout 0 marks an empty slot. Only the first slot of a set uses the lock bit, for the whole set.
//!
//! The mark tells when the counter was last requested, in passes of a little more than a second. Few bits tell a
//! pass only among three or four, so a mark that is recognised as old is replaced by [`IDLE`], which stays old.
//!
//! ```text
//!  000         idle: nobody requested it in the last two passes
//!  001 … 011   requested once, in a pass of that number modulo 3, plus 1
//!  100 … 111   requested again, in a pass of that number modulo 4
//! ```

use tidegate_algorithms::Time;

use super::layout::LayoutId;

/// Bits of a fingerprint kept in a slot. The shard a key lies in tells more bits of the same hash,
/// twelve in a store of 256 MiB: two of ten million keys collide with a chance of about one in forty
/// thousand.
pub(super) const FINGERPRINT_BITS: u32 = 49;

pub(super) const LOCK: u64 = 1 << 63;
const BOXED: u64 = 1 << 62;
const FINGERPRINT: u64 = (1 << FINGERPRINT_BITS) - 1;
const MARK_SHIFT: u32 = 59;
const MARK: u64 = 7 << MARK_SHIFT;
/// The mark of a counter that nobody requested lately.
const IDLE: u64 = 0;
/// Set in the marks of counters that were requested again.
const AGAIN: u64 = 4;
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

/// A span of a little more than a second. A counter that was requested again in the present pass or the one before
/// is not evicted, so one that is requested every second stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pass {
    number: u64,
}

/// The order in which live counters are evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EvictionRank {
    /// Nobody requested it in this pass or the one before.
    Idle,
    /// It was requested once, in the pass before.
    OncePreviously,
    /// It was requested once, in this pass.
    OnceNow,
    /// It was requested again in this pass or the one before: it is not evicted, unless it is a shared counter.
    InUse,
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

    /// The tag of a counter that is requested for the first time in `pass`.
    #[must_use]
    pub(super) const fn marked_once(self, pass: Pass) -> Self {
        self.with_mark(pass.number % 3 + 1)
    }

    /// The tag of a counter that is requested again in `pass`.
    #[must_use]
    #[inline]
    pub(super) const fn marked_again(self, pass: Pass) -> Self {
        self.with_mark(AGAIN | (pass.number & 3))
    }

    /// The tag as it is saved in `pass`: of its mark only whether the counter is in use.
    #[must_use]
    pub(super) const fn to_saved(self, pass: Pass) -> Self {
        match self.rank(pass) {
            EvictionRank::InUse => self.with_mark(AGAIN),
            _ => self.unmarked(),
        }
    }

    /// The tag of a counter whose tag was `saved`, restored in `pass`: one that was in use has that pass and the next
    /// one to be requested again.
    #[must_use]
    pub(super) const fn restored_as(self, saved: Self, pass: Pass) -> Self {
        if saved.mark() == AGAIN {
            self.marked_again(pass)
        } else {
            self.unmarked()
        }
    }

    /// The tag of a counter that nobody requested lately.
    #[must_use]
    pub(super) const fn unmarked(self) -> Self {
        self.with_mark(IDLE)
    }

    /// The same tag, without a mark that is old in `pass`.
    #[must_use]
    pub(super) const fn aged(self, pass: Pass) -> Self {
        match self.rank(pass) {
            EvictionRank::Idle => self.unmarked(),
            _ => self,
        }
    }

    /// The place of the counter in the order of eviction.
    pub(super) const fn rank(self, pass: Pass) -> EvictionRank {
        match self.passes_since(pass) {
            Some(0 | 1) if self.mark() & AGAIN != 0 => EvictionRank::InUse,
            Some(0) => EvictionRank::OnceNow,
            Some(1) => EvictionRank::OncePreviously,
            Some(_) | None => EvictionRank::Idle,
        }
    }

    /// The time from which the counter may be evicted, if nobody requests it any more.
    pub(super) const fn evictable_at(self, pass: Pass) -> Time {
        match (self.rank(pass), self.passes_since(pass)) {
            (EvictionRank::InUse, Some(passes)) => {
                Time::from_nanos((pass.number + 2 - passes) << PASS_BITS)
            }
            _ => Time::ZERO,
        }
    }

    /// How many passes ago the counter was requested, as far as its mark tells; `None` if it is idle.
    const fn passes_since(self, pass: Pass) -> Option<u64> {
        match self.mark() {
            IDLE => None,
            mark if mark & AGAIN != 0 => Some(pass.number.wrapping_sub(mark) & 3),
            mark => Some((pass.number + 4 - mark) % 3),
        }
    }

    const fn mark(self) -> u64 {
        (self.0 & MARK) >> MARK_SHIFT
    }

    #[inline]
    const fn with_mark(self, mark: u64) -> Self {
        Self((self.0 & !MARK) | (mark << MARK_SHIFT))
    }

    /// Reads a tag of version 1 of the snapshot, which had two more bits of the fingerprint and no mark.
    pub(super) const fn from_version_1(word: u64) -> Self {
        let flags = word & BOXED;
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

    pub(super) const fn numbered(number: u64) -> Self {
        Self { number }
    }

    pub(super) const fn number(self) -> u64 {
        self.number
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
