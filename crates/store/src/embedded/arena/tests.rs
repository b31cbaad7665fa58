use proptest::prelude::*;

use super::super::sync::Ordering;
use super::super::table::SET_WORDS;
use super::super::tag::LOCK;
use super::test_util::{LAYERS, TestArena};
use super::*;

/// Bytes of the arena: 256 units.
const BYTES: usize = 4_096;

#[derive(Clone, Copy, Debug)]
enum Step {
    Allocate {
        words: usize,
    },
    /// Frees one of those that are allocated.
    Free {
        nth: usize,
    },
    /// Begins to clear the lowest layers, or goes on: moves one of the blocks there.
    Clear {
        kept: u32,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let words = prop_oneof![4 => 1..8_usize, 1 => 8..100_usize];
    prop_oneof![
        3 => words.prop_map(|words| Step::Allocate { words }),
        2 => (0..100_usize).prop_map(|nth| Step::Free { nth }),
        1 => (0..LAYERS).prop_map(|kept| Step::Clear { kept }),
    ]
}

/// The mark of a word, of which every bit differs from block to block. The first word is a time.
fn mark_of(mark: u64, index: usize) -> u64 {
    let mark = (mark + index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    if index == 0 { mark >> 7 << 6 } else { mark }
}

/// Marks each word of a block as its own.
fn mark(arena: Arena<'_>, handle: Handle, mark: u64) {
    let block = arena.block(handle);
    for index in 0..block.len() {
        block.put(index, mark_of(mark, index));
    }
}

fn is_marked(arena: Arena<'_>, handle: Handle, mark: u64) -> bool {
    let block = arena.block(handle);
    let is_own = |index: usize| block.get(index) == mark_of(mark, index);
    // In both directions: a chain is gone through from the start or from where one was.
    (0..block.len()).all(is_own) && (0..block.len()).rev().all(is_own)
}

/// Begins to clear the lowest layers or, if that is under way, moves the first block there.
fn clear(memory: &TestArena, kept: u32, held: &mut [(Handle, u64)]) {
    let arena = memory.arena();
    let clearing = arena.clearing();
    if clearing.is_over() {
        return arena.clear_lowest(kept);
    }
    let moved = held
        .iter_mut()
        .find(|(handle, _)| clearing.concerns(*handle));
    if let Some((handle, number)) = moved
        && let Some(other) = arena.allocate(arena.block(*handle).len())
    {
        mark(arena, other, *number);
        arena.free(std::mem::replace(handle, other));
    }
}

/// Whether no piece of a block lies in a layer that the arena does not have.
fn lies_within(memory: &TestArena, handle: Handle) -> bool {
    let arena = memory.arena();
    let lowest = LAYERS - arena.border.taken(Side::Arena);
    let lowest = lowest as usize * memory.space().layer_units;
    let first = Piece::first(arena.words, handle);
    pieces(first).all(|piece| piece.handle().start >= lowest)
}

proptest! {
    /// Blocks are zero when they come, large enough, and nobody else's until they go. None is refused for which
    /// there is enough memory in pieces. When all are gone the arena is whole again, without what it gave back.
    #[test]
    fn blocks_are_whole_and_ones_own(steps in prop::collection::vec(step(), 1..200)) {
        let memory = TestArena::new(BYTES);
        let arena = memory.arena();
        let mut held = Vec::new();
        for (number, step) in (1_u64..).zip(steps) {
            match step {
                Step::Allocate { words } => {
                    let Some(handle) = arena.allocate(words) else {
                        prop_assert!(memory.space().lock().chain_words() < words);
                        continue;
                    };
                    let block = arena.block(handle);
                    prop_assert!(block.len() >= words);
                    prop_assert!((0..block.len()).all(|index| block.get(index) == 0));
                    mark(arena, handle, number << 32);
                    held.push((handle, number << 32));
                }
                Step::Free { nth } => {
                    if !held.is_empty() {
                        let nth = nth % held.len();
                        arena.free(held.swap_remove(nth).0);
                    }
                }
                Step::Clear { kept } => clear(&memory, kept, &mut held),
            }
            prop_assert!(held.iter().all(|&(handle, number)| is_marked(arena, handle, number)));
            prop_assert!(held.iter().all(|&(handle, _)| lies_within(&memory, handle)));
        }
        for (handle, _) in held {
            arena.free(handle);
        }
        memory.space().lock().clear_below(arena, 0);
        let used = usize::try_from(memory.space().used_bytes()).expect("small") / UNIT_BYTES;
        let free = memory.space().lock();
        let whole = (used, free.units() - used);
        prop_assert_eq!(free.heads(), if used == 0 { vec![] } else { vec![whole] });
    }

    #[test]
    fn a_handle_is_a_word(start in 0..1_usize << 39, length in 0..1_usize << 24, is_chained: bool) {
        let handle = Handle { start, length, is_chained };
        prop_assert_eq!(Handle::from_word(handle.to_word()), handle);
    }
}

/// However memory is cut up, all of it serves a large block: here every other one of the smallest pieces is free.
#[test]
fn a_large_block_is_made_of_small_pieces() {
    let memory = TestArena::new(BYTES);
    let arena = memory.arena();
    let mut small = Vec::new();
    while let Some(handle) = arena.allocate(LEAST_UNITS * UNIT_WORDS) {
        small.push(handle);
    }
    let (kept, freed): (Vec<_>, Vec<_>) = small.chunks_exact(2).map(|it| (it[0], it[1])).unzip();
    for &handle in &kept {
        mark(arena, handle, 1);
    }
    for &handle in &freed {
        arena.free(handle);
    }
    // All pieces have a word for their highest bits and one for a link.
    let words = freed.len() * (LEAST_UNITS * UNIT_WORDS - 2);
    assert_eq!(arena.allocate(words + 1), None);
    let large = arena.allocate(words).expect("room in pieces");
    assert!(large.is_chained);
    mark(arena, large, 2);
    assert!(is_marked(arena, large, 2));
    assert!(kept.iter().all(|&handle| is_marked(arena, handle, 1)));
    arena.free(large);
    assert_eq!(arena.allocate(words).map(|it| it.is_chained), Some(true));
}

/// Blocks and slots share one range: what the table has taken, the arena does not have.
#[test]
fn the_border_ends_the_arena() {
    let border = Border::new(8);
    let space = ArenaSpace::new(8, 64);
    let words: Box<[AtomicU64]> = (0..64).map(|_| AtomicU64::new(0)).collect();
    let arena = space.arena(&words, &border);
    assert!(border.claim(Side::Table, 6));
    assert!(arena.allocate(16).is_some());
    assert_eq!(arena.allocate(1), None);
}

/// A block too long for a handle is refused.
#[test]
fn no_block_is_longer_than_its_handle_can_say() {
    let memory = TestArena::new(BYTES);
    let arena = memory.arena();
    assert_eq!(arena.allocate(1 << 25), None);
    // A word in 504 is for highest bits.
    assert_eq!(arena.allocate(BYTES / 8 - 1), None);
    assert!(arena.allocate(BYTES / 8 - 2).is_some());
}

/// The lock bit of every line stays set, so that no thread with an old size locks one.
#[test]
fn lines_stay_locked() {
    let memory = TestArena::new(BYTES);
    let arena = memory.arena();
    for word in arena.words {
        word.store(LOCK, Ordering::Relaxed);
    }
    let handles = [5, 100, 6, 30].map(|words| arena.allocate(words).expect("room"));
    for handle in handles {
        mark(arena, handle, 3);
        assert!(is_marked(arena, handle, 3));
        mark(arena, handle, 0);
    }
    for handle in handles {
        arena.free(handle);
    }
    let lines = arena.words.iter().step_by(SET_WORDS);
    assert!(
        lines
            .map(|word| word.load(Ordering::Relaxed))
            .all(|it| it & LOCK != 0)
    );
}
