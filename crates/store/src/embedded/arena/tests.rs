use proptest::prelude::*;

use super::test_util::TestArena;
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
}

fn step() -> impl Strategy<Value = Step> {
    let words = prop_oneof![4 => 1..8_usize, 1 => 8..100_usize];
    prop_oneof![
        3 => words.prop_map(|words| Step::Allocate { words }),
        2 => (0..100_usize).prop_map(|nth| Step::Free { nth }),
    ]
}

/// Marks each word of a block as its own.
fn mark(arena: Arena<'_>, handle: Handle) {
    let block = arena.block(handle);
    for index in 0..block.len() {
        block.put(index, handle.to_word() + index as u64);
    }
}

fn is_marked(arena: Arena<'_>, handle: Handle) -> bool {
    let block = arena.block(handle);
    let is_own = |index: usize| block.get(index) == handle.to_word() + index as u64;
    // In both directions: a chain is gone through from the start or from where one was.
    (0..block.len()).all(is_own) && (0..block.len()).rev().all(is_own)
}

proptest! {
    /// Blocks are zero when they come, large enough, and nobody else's until they go. None is refused for which
    /// there is enough memory in pieces. When all are gone the arena is whole again.
    #[test]
    fn blocks_are_whole_and_ones_own(steps in prop::collection::vec(step(), 1..200)) {
        let memory = TestArena::new(BYTES);
        let arena = memory.arena();
        let mut held = Vec::new();
        for step in steps {
            match step {
                Step::Allocate { words } => {
                    let Some(handle) = arena.allocate(words) else {
                        // Of the smallest pieces a sixth is lost to links.
                        let free = memory.space().lock();
                        let unused = free.free_words() + free.fresh().min(LEAST_UNITS - 1);
                        prop_assert!(unused * 5 / 6 <= words + 6, "{} for {}", unused, words);
                        continue;
                    };
                    let block = arena.block(handle);
                    prop_assert!(block.len() >= words);
                    prop_assert!((0..block.len()).all(|index| block.get(index) == 0));
                    mark(arena, handle);
                    held.push(handle);
                }
                Step::Free { nth } => {
                    if !held.is_empty() {
                        let nth = nth % held.len();
                        arena.free(held.swap_remove(nth));
                    }
                }
            }
            prop_assert!(held.iter().all(|&handle| is_marked(arena, handle)));
        }
        for handle in held {
            arena.free(handle);
        }
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
        mark(arena, handle);
    }
    for &handle in &freed {
        arena.free(handle);
    }
    // All pieces but the last have a link.
    let words = freed.len() * (LEAST_UNITS * UNIT_WORDS - 1) + 1;
    assert_eq!(arena.allocate(words + 6), None);
    let large = arena.allocate(words).expect("room in pieces");
    assert!(large.is_chained);
    mark(arena, large);
    assert!(is_marked(arena, large));
    assert!(kept.iter().all(|&handle| is_marked(arena, handle)));
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
    assert_eq!(arena.allocate(BYTES / 8 + 1), None);
    assert!(arena.allocate(BYTES / 8).is_some());
}
