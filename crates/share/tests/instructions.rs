//! Holds the number of instructions of a decision from memory: of this node alone, leased, refused as
//! before, and of two leased limits together; and of a strict one, where the common store is another table
//! in memory, so that beside it only the note is paid for. Time on a shared machine says little; this number says when
//! a change made the path longer. It fails on both sides, so that a gain is written down too.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Set it to write the numbers down instead of comparing them.
const UPDATE: &str = "TIDEGATE_UPDATE_FIXTURES";

/// How far off a number may be, in percent: the C library and the seeds of hash tables differ.
const TOLERANCE: u64 = 5;

/// So many that a draw in between does not show.
const N_DECISIONS: u64 = 1_000;

const WORKLOADS: [&str; 5] = ["node", "strict", "leased", "refused", "several"];

#[test]
fn a_decision_takes_as_many_instructions_as_written_down() {
    let program = build();
    let measured = WORKLOADS.map(|name| (name, per_decision(&program, name)));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/instructions.txt");
    if std::env::var_os(UPDATE).is_some() {
        let lines = measured.map(|(name, count)| format!("{name} {count}\n"));
        fs::write(&path, lines.concat()).unwrap();
        return;
    }
    let written = fs::read_to_string(&path).unwrap();
    for (name, count) in measured {
        let line = written
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .expect(name);
        let expected: u64 = line.trim().parse().unwrap();
        assert!(
            count.abs_diff(expected) * 100 <= expected * TOLERANCE,
            "a decision of {name} takes {count} instructions, not {expected}; if that is meant, run \
             this test again with {UPDATE}=1"
        );
    }
}

/// Builds the program with optimisations and gives its path.
fn build() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--release", "--locked"])
        .args(["--bin", "decisions", "--features", "test-util"])
        .args(["--package", env!("CARGO_PKG_NAME"), "--target-dir"])
        .arg(target)
        .status()
        .unwrap();
    assert!(built.success(), "the program does not build");
    target.join("release/decisions")
}

/// The instructions of one decision. Only those inside the function that decides are counted.
fn per_decision(program: &Path, name: &str) -> u64 {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("callgrind.{name}"));
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--toggle-collect=*decide_repeatedly*"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(program)
        .args([name, &N_DECISIONS.to_string()])
        .output()
        .expect("valgrind runs; scripts/test installs it");
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    let n_admitted = if name == "refused" { 0 } else { N_DECISIONS };
    assert_eq!(
        stdout,
        format!("{n_admitted} of {N_DECISIONS} admitted\n"),
        "{stderr}"
    );
    let profile = fs::read_to_string(&out).unwrap();
    let totals = profile
        .lines()
        .find_map(|line| line.strip_prefix("totals: "));
    let total: u64 = totals.expect("callgrind sums up").trim().parse().unwrap();
    total / N_DECISIONS
}
