//! Holds the number of instructions of a check: matching in 200 rules on three levels, hashing the
//! key, deciding, and the verdict. Time on a shared machine says little; this number says when a
//! change made the path longer. It fails on both sides, so that a gain is written down too.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Set it to write the numbers down instead of comparing them.
const UPDATE: &str = "TIDEGATE_UPDATE_FIXTURES";

/// How far off a number may be, in percent: the C library and the seeds of hash tables differ.
const TOLERANCE: u64 = 5;

/// So many that making the counter does not show.
const N_CHECKS: u64 = 10_000;

/// One limit, and two limits that are charged together.
const KEYS: [&str; 2] = ["user_id", "remote_address"];

#[test]
fn a_check_takes_as_many_instructions_as_written_down() {
    let program = build();
    let measured = KEYS.map(|key| (key, per_check(&program, key)));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/instructions.txt");
    if std::env::var_os(UPDATE).is_some() {
        let lines = measured.map(|(key, count)| format!("{key} {count}\n"));
        fs::write(&path, lines.concat()).unwrap();
        return;
    }
    let written = fs::read_to_string(&path).unwrap();
    for (key, count) in measured {
        let line = written
            .lines()
            .find_map(|line| line.strip_prefix(key))
            .expect(key);
        let expected: u64 = line.trim().parse().unwrap();
        assert!(
            count.abs_diff(expected) * 100 <= expected * TOLERANCE,
            "a check by {key} takes {count} instructions, not {expected}; if that is meant, run this \
             test again with {UPDATE}=1"
        );
    }
}

/// Builds the example with optimisations and gives its path.
fn build() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let built = Command::new(env!("CARGO"))
        .args([
            "build",
            "--quiet",
            "--release",
            "--locked",
            "--example",
            "checks",
        ])
        .args(["--package", env!("CARGO_PKG_NAME"), "--target-dir"])
        .arg(target)
        .status()
        .unwrap();
    assert!(built.success(), "the example does not build");
    target.join("release/examples/checks")
}

/// The instructions of one check. Only those inside the function that checks are counted: the start of
/// the program reads rules, and measures clocks for as long as that takes.
fn per_check(program: &Path, key: &str) -> u64 {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("callgrind.{key}"));
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--toggle-collect=*check_repeatedly*"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(program)
        .args([key, &N_CHECKS.to_string()])
        .output()
        .expect("valgrind runs; scripts/test installs it");
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        stdout,
        format!("{N_CHECKS} of {N_CHECKS} passed\n"),
        "{stderr}"
    );
    let profile = fs::read_to_string(&out).unwrap();
    let totals = profile
        .lines()
        .find_map(|line| line.strip_prefix("totals: "));
    let total: u64 = totals.expect("callgrind sums up").trim().parse().unwrap();
    total / N_CHECKS
}
