//! Whatever befalls a snapshot, it is refused: no panic, and never another count.

use tidegate_store::SnapshotError;

use crate::support::{MIB, START, charge, new_store, quotas, restore, snapshot};

/// A snapshot with a counter of each kind.
fn sample() -> Vec<u8> {
    let store = new_store(MIB);
    for (limit, quota) in quotas().iter().enumerate() {
        charge(&store, (limit, "ann"), quota, 3);
    }
    snapshot(&store)
}

#[track_caller]
fn is_refused(bytes: &[u8]) {
    assert!(restore(MIB, START, bytes).is_err());
}

#[test]
fn any_changed_byte_is_noticed() {
    let good = sample();
    for place in 0..good.len() {
        for bits in [0x01, 0x80, 0xFF] {
            let mut bad = good.clone();
            bad[place] ^= bits;
            is_refused(&bad);
        }
    }
}

#[test]
fn any_end_too_soon_is_noticed() {
    let good = sample();
    for length in 0..good.len() {
        is_refused(&good[..length]);
    }
    let longer = [&good[..], &[0]].concat();
    is_refused(&longer);
}

/// Frames of the same snapshot in another order, doubled or left out: each is sound by itself.
#[test]
fn any_missing_or_misplaced_part_is_noticed() {
    let good = sample();
    let frames = frames(&good);
    assert!(frames.len() > 5, "{} parts", frames.len());
    for first in 0..frames.len() {
        let mut missing = frames.clone();
        missing.remove(first);
        is_refused(&join(&good, &missing));
        let mut doubled = frames.clone();
        doubled.insert(first, frames[first]);
        is_refused(&join(&good, &doubled));
        for second in 0..first {
            let mut swapped = frames.clone();
            swapped.swap(first, second);
            is_refused(&join(&good, &swapped));
        }
    }
    assert_eq!(join(&good, &frames), good);
}

/// The frames of two snapshots, mixed.
#[test]
fn parts_of_another_snapshot_are_noticed() {
    let (one, other) = (sample(), sample());
    let (mut mixed, foreign) = (frames(&one), frames(&other));
    let last = mixed.len() - 2;
    mixed[last] = foreign[foreign.len() - 2];
    is_refused(&join(&one, &mixed));
}

#[test]
fn what_is_wrong_is_said() {
    let good = sample();
    let error = |bytes: &[u8]| {
        restore(MIB, START, bytes)
            .expect_err("no snapshot")
            .to_string()
    };
    assert_eq!(
        error(b"a text of some kind"),
        "it is no snapshot of counters"
    );
    assert_eq!(error(&good[..good.len() - 1]), "it is cut short");
    let mut newer = good.clone();
    newer[8] = 5;
    assert_eq!(
        error(&newer),
        "it is written in format 5, this version of tidegate reads formats 1 to 4"
    );
    let mut flipped = good;
    let end = flipped.len() - 1;
    flipped[end] ^= 1;
    let parts = frames(&flipped).len();
    assert_eq!(
        error(&flipped),
        format!("it is damaged: its checksum does not match, in the {parts}. part")
    );
}

#[test]
fn a_source_that_fails_is_no_damage() {
    struct Failing;
    impl std::io::Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("gone"))
        }
    }
    let config = tidegate_store::StoreConfig { max_memory: MIB };
    let clock = tidegate_store::ManualClock::at(START);
    let error = tidegate_store::EmbeddedStore::restore(config, clock, Failing);
    assert!(matches!(error, Err(SnapshotError::Unreadable(_))));
}

/// Magic and version.
const HEAD: usize = 12;

/// The frames of a snapshot, each with its length and checksum.
fn frames(bytes: &[u8]) -> Vec<&[u8]> {
    let mut frames = Vec::new();
    let mut rest = &bytes[HEAD..];
    while let Some(length) = rest.first_chunk() {
        let length = usize::try_from(u64::from_le_bytes(*length)).expect("small");
        let (frame, after) = rest.split_at(length + 16);
        frames.push(frame);
        rest = after;
    }
    frames
}

fn join(original: &[u8], frames: &[&[u8]]) -> Vec<u8> {
    [&original[..HEAD], &frames.concat()].concat()
}
