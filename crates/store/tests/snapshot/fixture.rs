//! The format, pinned: a file that version 1 wrote is read, and written again as it was.

use std::path::{Path, PathBuf};
use std::{env, fs};

use tidegate_algorithms::Outcome;

use crate::support::{MIB, START, charge, new_store, quotas, restore, snapshot};

/// Set it to write the file anew, which only a new version of the format should need.
const UPDATE: &str = "TIDEGATE_UPDATE_FIXTURES";

#[test]
fn version_1_is_read_and_written() {
    if env::var_os(UPDATE).is_some() {
        let store = new_store(MIB);
        for (limit, quota) in quotas().iter().enumerate() {
            charge(&store, (limit, "ann"), quota, 4);
            charge(&store, (limit, "bob"), quota, 1);
            charge(&store, (limit, "bob"), quota, 5);
        }
        fs::write(path(), snapshot(&store)).expect("a file");
    }
    let file = fs::read(path()).expect("the fixture");
    let (store, restored) = restore(MIB, START, &file).expect("a snapshot of version 1");
    assert_eq!(restored.counters, 28);
    let is_same = snapshot(&store) == file;
    assert!(is_same, "the format has changed: give it a new version");
    for (limit, quota) in quotas().iter().enumerate() {
        let ann = charge(&store, (limit, "ann"), quota, 2);
        // Of 5 an hour 4 are gone; of 7 and a half as much again, 4 as well.
        let is_refused = matches!(ann.outcome, Outcome::Denied { .. });
        assert_eq!(is_refused, quota.limit() == 5, "{quota:?}");
    }
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/snapshot_v1.bin")
}
