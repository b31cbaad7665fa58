use proptest::prelude::*;
use tidegate_algorithms::counter::Ring;

use super::*;
use crate::embedded::arena::test_util::TestArena;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// To a later sub-window.
    Advance(u64),
    /// To an earlier one, if nothing is counted.
    Back(u64),
    Add(u64),
    Take {
        age: u64,
        cost: u64,
    },
    Widen,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..4_u64).prop_map(Step::Advance),
        1 => (0..200_u64).prop_map(Step::Advance),
        1 => (0..200_u64).prop_map(Step::Back),
        4 => any::<u64>().prop_map(Step::Add),
        2 => (0..70_u64, any::<u64>()).prop_map(|(age, cost)| Step::Take { age, cost }),
        1 => Just(Step::Widen),
    ]
}

fn check(counts: &BlockCounts<'_>, ring: &Ring, len: u64) -> Result<(), TestCaseError> {
    prop_assert_eq!(counts.newest(), ring.newest());
    prop_assert_eq!(counts.total(), ring.total());
    for age in 0..len + 2 {
        prop_assert_eq!(counts.count(age), ring.count(age), "age {}", age);
    }
    Ok(())
}

proptest! {
    /// The ring of a block counts as a plain list does, whatever the width of its numbers.
    #[test]
    fn a_block_counts_as_a_list(
        len in 2..64_u64,
        bits in 1..30_u32,
        start in 0..1_u64 << 50,
        steps in prop::collection::vec(step(), 1..100),
    ) {
        let memory = TestArena::new(1 << 16);
        let arena = memory.arena();
        let block = |width| {
            let handle = arena.allocate(BlockCounts::words(len, width));
            BlockCounts::format(arena.block(handle.expect("room")), len, width)
        };
        let mut counts = block(bits);
        let mut ring = Ring::new(len - 1);
        counts.advance(start);
        ring.advance(start);
        for step in steps {
            match step {
                Step::Advance(by) => {
                    counts.advance(ring.newest() + by);
                    ring.advance(ring.newest() + by);
                }
                Step::Back(by) if ring.total() == 0 => {
                    let to = ring.newest().saturating_sub(by);
                    counts.advance(to);
                    ring.advance(to);
                }
                // No more than the limit that the width was chosen for.
                Step::Add(cost) => {
                    let cost = cost % (counts.most() - counts.count(0) + 1);
                    counts.add(cost);
                    ring.add(cost);
                }
                Step::Take { age, cost } => {
                    prop_assert_eq!(counts.take(age, cost), ring.take(age, cost));
                }
                // No wider than any limit is, so that sums stay within 64 bits.
                Step::Widen if counts.width() <= 54 => {
                    let mut wider = block(counts.width() + 3);
                    counts.copy_to(&mut wider);
                    counts = wider;
                }
                Step::Back(_) | Step::Widen => {}
            }
            check(&counts, &ring, len)?;
        }
    }

    /// The width for a limit is the least that holds it.
    #[test]
    fn a_width_is_the_least_that_holds_its_limit(most: u64) {
        let width = BlockCounts::width_for(most);
        prop_assert!(most <= u64::MAX >> (64 - width));
        prop_assert!(width == 1 || most > u64::MAX >> (65 - width));
    }
}

/// What is more than a number can say is held at the most it can.
#[test]
fn a_count_ends_with_its_width() {
    let memory = TestArena::new(1 << 10);
    let arena = memory.arena();
    let handle = arena.allocate(BlockCounts::words(3, 5)).expect("room");
    let mut counts = BlockCounts::format(arena.block(handle), 3, 5);
    counts.add(30);
    counts.add(u64::MAX);
    assert_eq!((counts.count(0), counts.total()), (31, 31));
}
