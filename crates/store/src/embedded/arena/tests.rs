use proptest::prelude::*;

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
fn mark(arena: &Arena, handle: Handle) {
    let block = arena.block(handle);
    for index in 0..block.len() {
        block.put(index, handle.to_word() + index as u64);
    }
}

fn is_marked(arena: &Arena, handle: Handle) -> bool {
    let block = arena.block(handle);
    (0..block.len()).all(|index| block.get(index) == handle.to_word() + index as u64)
}

proptest! {
    /// Blocks are zero when they come, large enough, and nobody else's until they go. When all are
    /// gone the arena is whole again.
    #[test]
    fn blocks_are_whole_and_ones_own(steps in prop::collection::vec(step(), 1..200)) {
        let (arena, budget) = (Arena::new(BYTES), Budget::new(BYTES as u64));
        let mut held = Vec::new();
        for step in steps {
            match step {
                Step::Allocate { words } => {
                    let Some(handle) = arena.allocate(words, &budget) else {
                        continue;
                    };
                    let block = arena.block(handle);
                    prop_assert!(block.len() >= words);
                    prop_assert!((0..block.len()).all(|index| block.get(index) == 0));
                    mark(&arena, handle);
                    held.push(handle);
                }
                Step::Free { nth } => {
                    if !held.is_empty() {
                        let nth = nth % held.len();
                        arena.free(held.swap_remove(nth));
                    }
                }
            }
            prop_assert!(held.iter().all(|&handle| is_marked(&arena, handle)));
        }
        let used = BYTES as u64 - budget.left();
        for handle in held {
            arena.free(handle);
        }
        let free = arena.lock();
        let whole = usize::try_from(used).expect("small") / 16;
        let lengths: Vec<_> = free.heads.iter().map(|(length, start)| (*length, *start)).collect();
        prop_assert_eq!(lengths, if used == 0 { vec![] } else { vec![(whole, 0)] });
    }

    #[test]
    fn a_handle_is_a_word(start in 0..1_usize << 40, length in 0..1_usize << 24) {
        let handle = Handle { start, length };
        prop_assert_eq!(Handle::from_word(handle.to_word()), handle);
    }
}

/// The budget is shared: what it does not give, the arena does not have.
#[test]
fn the_budget_ends_before_the_arena() {
    let (arena, budget) = (Arena::new(BYTES), Budget::new(48));
    assert!(arena.allocate(4, &budget).is_some());
    assert_eq!(
        arena.allocate(4, &budget),
        None,
        "two units, of which one is left"
    );
    assert!(arena.allocate(2, &budget).is_some());
    assert_eq!(arena.allocate(1, &budget), None);
}

/// A block too long for a handle is refused.
#[test]
fn no_block_is_longer_than_its_handle_can_say() {
    let (arena, budget) = (Arena::new(BYTES), Budget::new(u64::MAX));
    assert_eq!(arena.allocate(1 << 25, &budget), None);
    assert_eq!(arena.allocate(BYTES / 8 + 1, &budget), None);
    assert!(arena.allocate(BYTES / 8, &budget).is_some());
}
