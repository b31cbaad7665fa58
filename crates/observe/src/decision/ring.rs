//! A ring of fixed-size records that several threads write to and anybody reads, without a lock.
//!
//! A thread claims a chunk of slots at a time, so that threads seldom touch the same memory. Each slot has a version, which is odd
//! while the slot is being written:
//!
//! ```text
//!  even ──(writer: compare and swap)──► odd ──(words stored)──► even + 2
//! ```
//!
//! A reader takes the words only if the version was the same even number before and after. A writer that finds a slot odd, because
//! another thread has come round to it, claims another chunk.

use std::array;
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use super::packed::{N_WORDS, PackedDecision};

/// The ring.
#[derive(Debug)]
pub(super) struct DecisionRing {
    /// Allocated when they are first claimed, so that a server that denies nobody does not pay for them.
    chunks: Box<[OnceLock<Box<[Slot]>>]>,
    slots_per_chunk: usize,
    /// The number of chunks claimed so far.
    n_claimed: AtomicU64,
}

/// The chunk that one thread is filling.
#[derive(Debug, Default)]
pub(super) struct ChunkCursor {
    /// The count of claimed chunks at the time of the claim; 0 before the first.
    claim: Cell<u64>,
    n_used: Cell<usize>,
}

/// One record.
#[derive(Debug)]
struct Slot {
    version: AtomicU64,
    words: [AtomicU64; N_WORDS],
}

/// The largest chunk: 24 KB, which is little to lose to a thread that stays idle.
const MAX_SLOTS_PER_CHUNK: usize = 256;

/// The smallest number of chunks that a large ring is cut into, so that each thread of a large machine has one.
const MIN_CHUNKS: usize = 64;

/// A writer meets another one on the same slot only when a whole round of the ring takes less time than one record.
const MAX_ATTEMPTS: usize = 4;

// === impl DecisionRing ===

impl DecisionRing {
    /// A ring of about `capacity` records: never fewer, and at most 255 more.
    pub(super) fn new(capacity: usize) -> Self {
        let slots_per_chunk = (capacity / MIN_CHUNKS).clamp(1, MAX_SLOTS_PER_CHUNK);
        let n_chunks = capacity.div_ceil(slots_per_chunk).max(1);
        Self {
            chunks: (0..n_chunks).map(|_| OnceLock::new()).collect(),
            slots_per_chunk,
            n_claimed: AtomicU64::new(0),
        }
    }

    /// The number of records for which there is room.
    pub(super) fn capacity(&self) -> usize {
        self.chunks.len() * self.slots_per_chunk
    }

    /// Writes the record that `make` returns for the number of its slot, which no other record has. Returns `false` if no slot
    /// was free.
    pub(super) fn write(
        &self,
        cursor: &ChunkCursor,
        make: impl FnOnce(u64) -> PackedDecision,
    ) -> bool {
        let mut make = Some(make);
        for _ in 0..MAX_ATTEMPTS {
            let (number, slot) = self.next_slot(cursor);
            let version = slot.version.load(Ordering::Relaxed);
            if version % 2 == 0
                && slot.claim(version)
                && let Some(make) = make.take()
            {
                slot.store(version, &make(number));
                return true;
            }
            // The chunk has another writer.
            cursor.n_used.set(self.slots_per_chunk);
        }
        false
    }

    /// Calls `each` for every record that is not being written.
    pub(super) fn read(&self, mut each: impl FnMut(PackedDecision)) {
        let slots = self.chunks.iter().filter_map(OnceLock::get).flatten();
        for slot in slots {
            if let Some(decision) = slot.load() {
                each(decision);
            }
        }
    }

    /// Returns the number and the place of the next record.
    fn next_slot(&self, cursor: &ChunkCursor) -> (u64, &Slot) {
        let n_chunks = self.chunks.len() as u64;
        let claim = cursor.claim.get();
        // After a whole round another thread has the chunk.
        let is_overtaken = self.n_claimed.load(Ordering::Relaxed) >= claim + n_chunks;
        if claim == 0 || is_overtaken || cursor.n_used.get() >= self.slots_per_chunk {
            cursor
                .claim
                .set(self.n_claimed.fetch_add(1, Ordering::Relaxed) + 1);
            cursor.n_used.set(0);
        }
        let (claim, used) = (cursor.claim.get(), cursor.n_used.get());
        cursor.n_used.set(used + 1);
        let index = usize::try_from(claim % n_chunks).unwrap_or_default();
        let new_chunk = || (0..self.slots_per_chunk).map(|_| Slot::new()).collect();
        let chunk = self.chunks[index].get_or_init(new_chunk);
        (
            claim * self.slots_per_chunk as u64 + used as u64,
            &chunk[used],
        )
    }
}

// === impl Slot ===

impl Slot {
    fn new() -> Self {
        Self {
            version: AtomicU64::new(0),
            words: array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Makes the version odd, unless another writer was faster.
    fn claim(&self, version: u64) -> bool {
        let odd = version.wrapping_add(1);
        let swapped =
            self.version
                .compare_exchange(version, odd, Ordering::Acquire, Ordering::Relaxed);
        swapped.is_ok()
    }

    /// Fills in a claimed slot.
    fn store(&self, version: u64, decision: &PackedDecision) {
        // No word may be seen before the odd version.
        fence(Ordering::Release);
        for (word, value) in self.words.iter().zip(decision.0) {
            word.store(value, Ordering::Relaxed);
        }
        // Zero again after 2^63 writes would make the slot look empty, which is harmless.
        self.version
            .store(version.wrapping_add(2), Ordering::Release);
    }

    /// Returns the record, if there is one and nobody writes to it.
    fn load(&self) -> Option<PackedDecision> {
        let before = self.version.load(Ordering::Acquire);
        let words = array::from_fn(|index| self.words[index].load(Ordering::Relaxed));
        // No word may be read after the version is read again.
        fence(Ordering::Acquire);
        let after = self.version.load(Ordering::Relaxed);
        let is_whole = before != 0 && before.is_multiple_of(2) && before == after;
        is_whole.then_some(PackedDecision(words))
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// A record whose words all say the same.
    fn record(value: u64) -> PackedDecision {
        PackedDecision([value; N_WORDS])
    }

    fn values(ring: &DecisionRing) -> Vec<u64> {
        let mut values = Vec::new();
        ring.read(|decision| values.push(decision.0[0]));
        values.sort_unstable();
        values
    }

    #[test]
    fn the_newest_records_are_kept() {
        for capacity in [1, 10, 64, 1_000, 65_536] {
            let ring = DecisionRing::new(capacity);
            let room = ring.capacity() as u64;
            assert!(room >= capacity as u64 && room < capacity as u64 + 256);
            let cursor = ChunkCursor::default();
            for value in 0..room * 3 {
                assert!(ring.write(&cursor, |_| record(value)));
            }
            let expected: Vec<u64> = (room * 2..room * 3).collect();
            assert_eq!(values(&ring), expected, "{capacity}");
        }
    }

    #[test]
    fn no_two_records_have_the_same_number() {
        let ring = DecisionRing::new(200);
        let cursors = [ChunkCursor::default(), ChunkCursor::default()];
        let mut numbers = Vec::new();
        for turn in 0..2_000 {
            // The second thread writes so seldom that the first comes round to its chunk.
            let cursor = &cursors[usize::from(turn % 500 == 0)];
            assert!(ring.write(cursor, |number| {
                numbers.push(number);
                record(number)
            }));
        }
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 2_000);
    }

    /// Property: whatever a reader sees was written by one writer, whole.
    #[test]
    fn readers_see_whole_records_only() {
        const N_WRITES: u64 = 50_000;
        let ring = DecisionRing::new(8);
        thread::scope(|scope| {
            for writer in 0..3 {
                let ring = &ring;
                scope.spawn(move || {
                    let cursor = ChunkCursor::default();
                    for turn in 0..N_WRITES {
                        ring.write(&cursor, |_| record(turn * 3 + writer));
                    }
                });
            }
            for _ in 0..2_000 {
                ring.read(|decision| {
                    let first = decision.0[0];
                    assert!(decision.0.iter().all(|word| *word == first), "{decision:?}");
                });
            }
        });
        assert!(!values(&ring).is_empty());
    }
}
