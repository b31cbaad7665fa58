//! The format, pinned: a file that version 4 wrote is read, and written again as it was; those of versions 1 to 3
//! are read.

use std::path::{Path, PathBuf};
use std::{env, fs};

use tidegate_algorithms::Outcome;
use tidegate_store::{EmbeddedStore, ManualClock};

use crate::support::{MIB, START, charge, new_store, quotas, restore, snapshot};

/// Set it to write the file anew, which only a new version of the format should need.
const UPDATE: &str = "TIDEGATE_UPDATE_FIXTURES";

#[test]
fn version_4_is_read_and_written() {
    if env::var_os(UPDATE).is_some() {
        let store = new_store(MIB);
        for (limit, quota) in quotas().iter().enumerate() {
            charge(&store, (limit, "ann"), quota, 4);
            charge(&store, (limit, "bob"), quota, 1);
            charge(&store, (limit, "bob"), quota, 5);
        }
        fs::write(path(4), snapshot(&store)).expect("a file");
    }
    let file = fs::read(path(4)).expect("the fixture");
    let store = check_fixture(&file);
    let is_same = snapshot(&store) == file;
    assert!(is_same, "the format has changed: give it a new version");
}

#[test]
fn versions_1_to_3_are_read() {
    for version in 1..=3 {
        check_fixture(&fs::read(path(version)).expect("the fixture"));
    }
}

/// Restores a fixture and checks its counters on a second copy, which they change.
fn check_fixture(file: &[u8]) -> EmbeddedStore<ManualClock> {
    let read = || restore(MIB, START, file).expect("a sound snapshot");
    let (store, restored) = read();
    assert_eq!(restored.counters, 28);
    for (limit, quota) in quotas().iter().enumerate() {
        let ann = charge(&store, (limit, "ann"), quota, 2);
        // Of 5 an hour 4 are gone; of 7 and a half as much again, 4 as well.
        let is_refused = matches!(ann.outcome, Outcome::Denied { .. });
        assert_eq!(is_refused, quota.limit() == 5, "{quota:?}");
    }
    read().0
}

fn path(version: u32) -> PathBuf {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    fixtures.join(format!("snapshot_v{version}.bin"))
}
