//! What the state words of a limit look like: their shape and the window that gives them meaning.
//!
//! A slot has ten bits for it, so that any request that finds the slot, not only one of its own limit, can tell
//! when its state has expired. Layouts are numbered as they are first seen, and a
//! number is given out again when no slot names it any more:
//!
//! ```text
//!          assign             retire                   release
//!  free ───────────► in use ───────────► retired ───────────────► free
//!                       ▲                   │ a live slot names it
//!                       └───────────────────┘ restore
//! ```
//! A retired number still tells how states read, but nobody writes a slot with it: a number is looked
//! up before a set is locked and has to be [current](Layouts::is_current) under the lock. So after it
//! was retired, one look at each shard tells whether a slot names it (see [`recycle`](super::recycle)).
//!
//! One number is never given out: [`SPARE`], for buckets that get none of their own (see
//! [`unnumbered`](super::unnumbered)). Their state is an instant, which reads the same whatever the window.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::PoisonError;

use tidegate_algorithms::{Meter, Quota, Time};

use super::sync::{AtomicU64, Mutex, MutexGuard, Ordering};

/// How many layouts there can be: ten bits, of which 0 marks an empty slot.
pub(super) const LAYOUTS: usize = if cfg!(loom) { 4 } else { 1024 };

const SHAPE_BITS: u32 = 3;

/// Marks the word of a retired number. A window has at most 60 bits, so it is free.
const RETIRED: u64 = 1 << 63;

/// The layouts that can have numbers of their own: all but the empty and the spare one.
pub(super) const MOST_LAYOUTS: usize = LAYOUTS - 2;

/// The layout of all buckets that have no number of their own. With the shortest window, because a sum of folded
/// buckets is at most a window ahead of now.
pub(super) const SPARE: Layout = Layout {
    shape: Shape::Instant,
    window: 1_000_000,
};

/// The place of the spare layout.
const SPARE_PLACE: usize = LAYOUTS - 1;

/// The windows that a quota may have, in nanoseconds: a millisecond to ten years, and a little.
const WINDOWS: RangeInclusive<u64> = 1_000_000..=1 << 59;

/// The number of a layout, never 0 for one in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LayoutId(u16);

/// The shape of a state and the window it counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Layout {
    pub(super) shape: Shape,
    /// The window in nanoseconds, at least one millisecond.
    pub(super) window: u64,
}

/// What a narrow state word holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shape {
    /// An instant in nanoseconds: the theoretical arrival time, or the next departure.
    Instant = 1,
    /// A window and its count.
    Window = 2,
    /// A refill period, the missing tokens, and in how many periods they will be back.
    Portion = 3,
    /// A window, the count of the one before, and its own.
    Pair = 4,
    /// Nothing: the state is a log, always in a block.
    Log = 5,
    /// Nothing: the state is the counts of sub-windows, always in a block.
    Counts = 6,
}

/// All layouts in use, by number.
#[derive(Debug)]
pub(super) struct Layouts {
    /// `window << 3 | shape`, 0 where free. Open addressing; a search does not end at a free place,
    /// because a layout before it may have been released.
    words: Box<[AtomicU64]>,
    /// The layouts of the rules in force, which keep their numbers. Held while a number is assigned or recycled.
    reserved: Mutex<BTreeSet<Layout>>,
}

/// The right to assign and recycle numbers, which one thread has at a time. Taken before any set.
#[derive(Debug)]
pub(super) struct Assignment<'l> {
    layouts: &'l Layouts,
    reserved: MutexGuard<'l, BTreeSet<Layout>>,
}

// === impl LayoutId ===

impl LayoutId {
    /// The number of the [spare layout](SPARE).
    #[expect(clippy::cast_possible_truncation, reason = "below 1024")]
    pub(super) const SPARE: Self = Self(SPARE_PLACE as u16);

    pub(super) const fn new(number: u16) -> Self {
        Self(number)
    }

    fn at(place: usize) -> Self {
        Self(u16::try_from(place).expect("below 1024"))
    }

    pub(super) const fn get(self) -> u16 {
        self.0
    }
}

// === impl Layout ===

impl Layout {
    pub(super) fn of(quota: &Quota) -> Self {
        let shape = match quota.meter() {
            Meter::TokenBucket(_) | Meter::LeakyBucket(_) => Shape::Instant,
            Meter::FixedWindow(_) => Shape::Window,
            Meter::IntervalBucket(_) => Shape::Portion,
            Meter::SlidingCounter(_) => Shape::Pair,
            Meter::SlidingLog(_) => Shape::Log,
            Meter::SubWindows(_) => Shape::Counts,
        };
        // A quota's window is at most ten years.
        let window = quota.window();
        let window = window.as_secs() * 1_000_000_000 + u64::from(window.subsec_nanos());
        Self { shape, window }
    }

    /// How many bits the index of a window takes, up to the end of time; one more than needed for
    /// some windows, for this is asked on every decision and needs no division.
    pub(super) const fn index_bits(self) -> u32 {
        Time::MAX.nanos().ilog2() + 1 - self.window.ilog2()
    }

    /// The layout as one word.
    pub(super) const fn to_word(self) -> u64 {
        (self.window << SHAPE_BITS) | self.shape as u64
    }

    /// Reads what `to_word` wrote.
    const fn from_word(word: u64) -> Option<Self> {
        let shape = match word & ((1 << SHAPE_BITS) - 1) {
            1 => Shape::Instant,
            2 => Shape::Window,
            3 => Shape::Portion,
            4 => Shape::Pair,
            5 => Shape::Log,
            6 => Shape::Counts,
            _ => return None,
        };
        Some(Self {
            shape,
            window: word >> SHAPE_BITS,
        })
    }

    /// Reads what `to_word` wrote, from a source that may have made it up.
    pub(super) fn from_foreign_word(word: u64) -> Option<Self> {
        Self::from_word(word).filter(|layout| WINDOWS.contains(&layout.window))
    }
}

// === impl Layouts ===

impl Layouts {
    pub(super) fn new() -> Self {
        let word = |place| {
            AtomicU64::new(if place == SPARE_PLACE {
                SPARE.to_word()
            } else {
                0
            })
        };
        Self {
            words: (0..LAYOUTS).map(word).collect(),
            reserved: Mutex::new(BTreeSet::new()),
        }
    }

    /// The number of `layout`, if it has one.
    pub(super) fn search(&self, layout: Layout) -> Option<LayoutId> {
        let word = layout.to_word();
        let mut places = (0..LAYOUTS).map(|probe| place(word, probe));
        places
            .find(|&number| self.words[number].load(Ordering::Relaxed) == word)
            .map(LayoutId::at)
    }

    /// How many numbers are free.
    pub(super) fn unused(&self) -> usize {
        let is_free = |word: &&AtomicU64| word.load(Ordering::Relaxed) == 0;
        self.words.iter().skip(1).filter(is_free).count()
    }

    /// Waits for the right to assign numbers.
    pub(super) fn assignment(&self) -> Assignment<'_> {
        Assignment {
            layouts: self,
            reserved: self.reserved.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// The number of `layout`, given now if it has none yet; the spare one for a bucket for which none is left. `None`
    /// if all are in use, or if another thread assigns numbers just now.
    pub(super) fn try_number(&self, layout: Layout) -> Option<LayoutId> {
        self.search(layout).or_else(|| {
            let assignment = Assignment {
                layouts: self,
                reserved: self.reserved.try_lock().ok()?,
            };
            let spare = (layout.shape == Shape::Instant).then_some(LayoutId::SPARE);
            assignment.number(layout).or(spare)
        })
    }

    /// Whether `number` still stands for `layout`. For the holder of a set: while it stays held, a
    /// slot of it with that number can be written.
    #[inline]
    pub(super) fn is_current(&self, number: LayoutId, layout: Layout) -> bool {
        // Relaxed: a thread that retired the number before it locked this set was seen with the lock.
        self.words[usize::from(number.0)].load(Ordering::Relaxed) == layout.to_word()
    }

    /// The number of `layout`, if it has one and it is where one would look first.
    #[inline]
    pub(super) fn find(&self, layout: Layout) -> Option<LayoutId> {
        let word = layout.to_word();
        let number = place(word, 0);
        (self.words[number].load(Ordering::Relaxed) == word).then(|| LayoutId::at(number))
    }

    /// The layout with that number.
    pub(super) fn get(&self, number: LayoutId) -> Option<Layout> {
        let word = self
            .words
            .get(usize::from(number.0))?
            .load(Ordering::Relaxed);
        Layout::from_word(word & !RETIRED)
    }
}

// === impl Assignment ===

impl Assignment<'_> {
    /// The number of `layout`, given now if it has none yet; `None` if all are in use.
    pub(super) fn number(&self, layout: Layout) -> Option<LayoutId> {
        let word = layout.to_word();
        self.layouts.search(layout).or_else(|| {
            let number = (0..LAYOUTS)
                .map(|probe| place(word, probe))
                .find(|&number| number != 0 && self.word(number) == 0)?;
            self.put(number, word);
            Some(LayoutId::at(number))
        })
    }

    /// The layouts of the rules in force.
    pub(super) fn reserved(&self) -> &BTreeSet<Layout> {
        &self.reserved
    }

    /// Has the layouts of other rules keep their numbers from now on.
    pub(super) fn reserve(&mut self, layouts: BTreeSet<Layout>) {
        *self.reserved = layouts;
    }

    /// Retires the numbers of layouts for which `is_idle` holds, and lists them.
    pub(super) fn retire(&self, is_idle: impl Fn(LayoutId, Layout) -> bool) -> Vec<LayoutId> {
        let mut retired = Vec::new();
        for number in (1..SPARE_PLACE).map(LayoutId::at) {
            let layout = self.layouts.get(number);
            if layout.is_some_and(|layout| is_idle(number, layout)) {
                let place = usize::from(number.0);
                self.put(place, self.word(place) | RETIRED);
                retired.push(number);
            }
        }
        retired
    }

    /// Puts a retired number back in use.
    pub(super) fn restore(&self, number: LayoutId) {
        let place = usize::from(number.0);
        self.put(place, self.word(place) & !RETIRED);
    }

    /// Frees a retired number that no slot names.
    pub(super) fn release(&self, number: LayoutId) {
        self.put(usize::from(number.0), 0);
    }

    fn word(&self, number: usize) -> u64 {
        self.layouts.words[number].load(Ordering::Relaxed)
    }

    fn put(&self, number: usize, word: u64) {
        self.layouts.words[number].store(word, Ordering::Relaxed);
    }
}

/// Where to look for a layout's word on the given attempt. Fibonacci hashing: the high bits of the
/// product depend on all bits of the word.
#[inline]
fn place(word: u64, probe: usize) -> usize {
    const SHIFT: u32 = u64::BITS - LAYOUTS.ilog2();
    let start = word.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> SHIFT;
    (usize::try_from(start).unwrap_or(0) + probe) % LAYOUTS
}

#[cfg(all(test, not(loom)))]
mod tests;
