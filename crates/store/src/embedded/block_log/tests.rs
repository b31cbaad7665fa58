use proptest::prelude::*;
use tidegate_algorithms::counter::Stamps;

use super::*;
use crate::embedded::arena::test_util::TestArena;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Remembers so many, so long after the newest.
    Push {
        after: u64,
        n: u64,
    },
    DropOldest(u64),
    DropNewest(u64),
    /// Forgets so many, from this one on.
    Remove {
        first: u64,
        n: u64,
    },
    Widen,
    /// Moves it to a longer block.
    Move,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..1_u64 << 24, 1..6_u64).prop_map(|(after, n)| Step::Push { after, n }),
        2 => (0..8_u64).prop_map(Step::DropOldest),
        1 => (0..8_u64).prop_map(Step::DropNewest),
        2 => (0..40_u64, 0..8_u64).prop_map(|(first, n)| Step::Remove { first, n }),
        1 => Just(Step::Widen),
        1 => Just(Step::Move),
    ]
}

fn check(log: &BlockLog<'_>, stamps: &Stamps) -> Result<(), TestCaseError> {
    prop_assert_eq!(log.len(), stamps.len());
    for n in 0..log.len() + 2 {
        prop_assert_eq!(log.nth_oldest(n), stamps.nth_oldest(n), "entry {}", n);
    }
    Ok(())
}

proptest! {
    /// The ring of a block remembers as a plain list does: all stamps are whole again when read,
    /// though only their low halves are kept.
    #[test]
    fn a_block_remembers_as_a_list(
        entries in 1..40_u64,
        start in 0..1_u64 << 60,
        steps in prop::collection::vec(step(), 1..100),
    ) {
        let memory = TestArena::new(1 << 18);
        let arena = memory.arena();
        let block = |entries| {
            let handle = arena.allocate(BlockLog::words(entries));
            BlockLog::new(arena.block(handle.expect("room")))
        };
        let mut log = block(entries);
        prop_assert!(log.room() >= entries);
        let mut stamps = Stamps::default();
        let mut newest = start;
        for step in steps {
            match step {
                Step::Push { after, n } => {
                    newest += after;
                    let n = n.min(log.room() - log.len());
                    log.push(newest, n);
                    stamps.push(newest, n);
                }
                Step::DropOldest(n) => {
                    log.drop_oldest(n);
                    stamps.drop_oldest(n.min(stamps.len()));
                }
                Step::DropNewest(n) => {
                    log.drop_newest(n);
                    stamps.drop_newest(n.min(stamps.len()));
                }
                Step::Remove { first, n } => {
                    let first = first.min(log.len());
                    let n = n.min(log.len() - first);
                    log.remove(first, n);
                    stamps.remove(first, n);
                }
                Step::Widen => {
                    let mut wider = block(log.room() + 3);
                    log.copy_to(&mut wider);
                    log = wider;
                }
                Step::Move => {
                    let mut moved = block(log.room() + 3);
                    moved.take_over(log.block.len(), |index| log.block.get(index));
                    log = moved;
                }
            }
            check(&log, &stamps)?;
        }
    }
}

/// Two stamps a whole 2^32 - 1 apart are told apart; a full log takes no more.
#[test]
fn a_stamp_is_as_old_as_half_a_word_can_say() {
    let memory = TestArena::new(1 << 10);
    let arena = memory.arena();
    let handle = arena.allocate(BlockLog::words(2)).expect("room");
    let mut log = BlockLog::new(arena.block(handle));
    let oldest = 7 << 40;
    log.push(oldest, 1);
    log.push(oldest + u64::from(u32::MAX), log.room());
    assert_eq!(log.nth_oldest(0), Some(oldest));
    assert_eq!(log.nth_oldest(1), Some(oldest + u64::from(u32::MAX)));
    assert_eq!(log.len(), log.room());
}
