//! Holds the number of instructions that it takes to write down one verdict: this is done for every
//! request. It fails on both sides, so that a gain is written down too.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Set it to write the numbers down instead of comparing them.
const UPDATE: &str = "TIDEGATE_UPDATE_FIXTURES";

/// How far off a number may be, in percent: which requests are looked at is left to chance.
const TOLERANCE: u64 = 5;

/// So many that chance evens out.
const N_RECORDS: u64 = 100_000;

/// A request that passes, and one that does not.
const OUTCOMES: [&str; 2] = ["allowed", "refused"];

#[test]
fn a_record_takes_as_many_instructions_as_written_down() {
    let program = build();
    let measured = OUTCOMES.map(|outcome| (outcome, per_record(&program, outcome)));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/instructions.txt");
    if std::env::var_os(UPDATE).is_some() {
        let lines = measured.map(|(outcome, count)| format!("{outcome} {count}\n"));
        fs::write(&path, lines.concat()).unwrap();
        return;
    }
    let written = fs::read_to_string(&path).unwrap();
    for (outcome, count) in measured {
        let line = written
            .lines()
            .find_map(|line| line.strip_prefix(outcome))
            .expect(outcome);
        let expected: u64 = line.trim().parse().unwrap();
        assert!(
            count.abs_diff(expected) * 100 <= expected * TOLERANCE,
            "to record a request that is {outcome} takes {count} instructions, not {expected}; if \
             that is meant, run this test again with {UPDATE}=1"
        );
    }
}

/// Builds the example with optimisations and gives its path.
fn build() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--release", "--locked"])
        .args(["--example", "records", "--package"])
        .args([env!("CARGO_PKG_NAME"), "--target-dir"])
        .arg(target)
        .status()
        .unwrap();
    assert!(built.success(), "the example does not build");
    target.join("release/examples/records")
}

/// The instructions of one record: only those inside the function that records are counted.
fn per_record(program: &Path, outcome: &str) -> u64 {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("callgrind.{outcome}"));
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--toggle-collect=*record_repeatedly*"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(program)
        .args([outcome, &N_RECORDS.to_string()])
        .output()
        .expect("valgrind runs; scripts/test installs it");
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(stdout, format!("{N_RECORDS} recorded\n"), "{stderr}");
    let profile = fs::read_to_string(&out).unwrap();
    let totals = profile
        .lines()
        .find_map(|line| line.strip_prefix("totals: "));
    let total: u64 = totals.expect("callgrind sums up").trim().parse().unwrap();
    total / N_RECORDS
}
