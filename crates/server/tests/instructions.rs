//! Holds the number of instructions of one gRPC message: read, judged and answered, without HTTP/2 around
//! it. Time on a shared machine says little; this number says when a change made the path longer. It fails
//! on both sides, so that a gain is written down too.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Set it to write the number down instead of comparing it.
const UPDATE: &str = "TIDEGATE_UPDATE_FIXTURES";

/// How far off the number may be, in percent: the C library and the seeds of hash tables differ.
const TOLERANCE: u64 = 5;

/// So many that making the counter does not show.
const N_MESSAGES: u64 = 10_000;

#[test]
fn a_message_takes_as_many_instructions_as_written_down() {
    let measured = per_message(&build());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/instructions.txt");
    if std::env::var_os(UPDATE).is_some() {
        fs::write(&path, format!("{measured}\n")).unwrap();
        return;
    }
    let written: u64 = fs::read_to_string(&path).unwrap().trim().parse().unwrap();
    assert!(
        measured.abs_diff(written) * 100 <= written * TOLERANCE,
        "a message takes {measured} instructions, not {written}; if that is meant, run this test again \
         with {UPDATE}=1"
    );
}

/// Builds the example with optimisations and gives its path.
fn build() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--release", "--locked"])
        .args(["--example", "messages", "--features", "test-util"])
        .args(["--package", env!("CARGO_PKG_NAME"), "--target-dir"])
        .arg(target)
        .status()
        .unwrap();
    assert!(built.success(), "the example does not build");
    target.join("release/examples/messages")
}

/// The instructions of one message. Only those inside the function that answers are counted: the start of
/// the program reads rules, and measures clocks for as long as that takes.
fn per_message(program: &Path) -> u64 {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("callgrind.messages");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--toggle-collect=*answer_repeatedly*"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(program)
        .arg(N_MESSAGES.to_string())
        .output()
        .expect("valgrind runs; scripts/test installs it");
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    let expected = format!("{N_MESSAGES} of {N_MESSAGES} answered\n");
    assert_eq!(stdout, expected, "{stderr}");
    let profile = fs::read_to_string(&out).unwrap();
    let mut lines = profile.lines();
    let totals = lines.find_map(|line| line.strip_prefix("totals: "));
    let total: u64 = totals.expect("callgrind sums up").trim().parse().unwrap();
    total / N_MESSAGES
}
