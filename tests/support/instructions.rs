//! Holds how many instructions a path takes, for the tests of the crates that include this file. Time on a shared
//! machine says little; this number says when a change made a path longer. It fails on both sides, so that a gain
//! is written down too, in `tests/instructions.txt` of the crate.

#[path = "cargo.rs"]
mod cargo;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo::cargo_build;

/// A program of the crate that does one thing over and over.
pub(crate) struct Program {
    /// Its kind and name: `--example` or `--bin` in [`ALL`].
    pub(crate) target: [&'static str; 2],
    /// The function inside which instructions are counted: the start of a program reads rules, and measures clocks
    /// for as long as that takes.
    pub(crate) function: &'static str,
    /// How often it does it: so often that what happens once does not show.
    pub(crate) times: u64,
}

/// One thing that it does.
pub(crate) struct Workload {
    /// What the number is called.
    pub(crate) name: &'static str,
    /// The program's first arguments; how often comes last.
    pub(crate) arguments: &'static [&'static str],
    /// What the program says when it has done it.
    pub(crate) says: String,
}

/// The arguments with which one call of cargo builds the programs of all crates with such a test, and the executable for the step `fleet` of
/// `scripts/test`. Asked for one package after the other, cargo would choose the features of dependencies for each anew, and build and
/// link what they share several times.
const ALL: &str = include_str!("programs.txt");

/// Set it to write the numbers down instead of comparing them.
const UPDATE: &str = "TIDEGATE_UPDATE_FIXTURES";

/// How far off a number may be, in percent: the C library, the seeds of hash tables and which requests are looked
/// at differ.
const TOLERANCE: u64 = 5;

/// Compares each workload with the number that is written down.
pub(crate) fn hold(program: &Program, workloads: &[Workload]) {
    // Before the build, which takes minutes.
    require_valgrind();
    let built = build(program);
    let measured = workloads
        .iter()
        .map(|it| (it.name, count(&built, program, it)));
    let measured: Vec<(&str, u64)> = measured.collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/instructions.txt");
    if std::env::var_os(UPDATE).is_some() {
        let lines = measured
            .iter()
            .map(|(name, count)| format!("{name} {count}\n"));
        let lines: Vec<String> = lines.collect();
        fs::write(&path, lines.concat()).unwrap();
        return;
    }
    let written = fs::read_to_string(&path).unwrap();
    for (name, count) in measured {
        let mut lines = written.lines().filter_map(|line| line.split_once(' '));
        let (_, expected) = lines.find(|(written, _)| *written == name).expect(name);
        let expected: u64 = expected.parse().unwrap();
        assert!(
            count.abs_diff(expected) * 100 <= expected * TOLERANCE,
            "{name} takes {count} instructions, not {expected}; if that is meant, run this test again with \
             {UPDATE}=1"
        );
    }
}

/// Fails if valgrind does not run: instructions that nobody counts must not look like a pass.
fn require_valgrind() {
    let version = Command::new("valgrind").arg("--version").output();
    assert!(
        version.is_ok_and(|it| it.status.success()),
        "valgrind is not installed, and this test needs it; `scripts/test setup` installs it, and \
         `cargo test --no-fail-fast` also runs the tests after this one"
    );
}

/// Builds all programs with optimisations and gives the path of one.
fn build(program: &Program) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let built = cargo_build()
        .arg("--release")
        .args(ALL.lines())
        .arg("--target-dir")
        .arg(target)
        .status()
        .unwrap();
    assert!(built.success(), "the programs do not build");
    let folder = match program.target {
        ["--example", _] => "release/examples",
        _ => "release",
    };
    target.join(folder).join(program.target[1])
}

/// The instructions of doing it once.
fn count(built: &Path, program: &Program, workload: &Workload) -> u64 {
    let Program {
        function, times, ..
    } = program;
    let out = format!("callgrind.{}", workload.name);
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(out);
    let output = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(format!("--toggle-collect=*{function}*"))
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(built)
        .args(workload.arguments)
        .arg(times.to_string())
        .output()
        .unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(stdout, workload.says, "{stderr}");
    let profile = fs::read_to_string(&out).unwrap();
    let mut lines = profile.lines();
    let totals = lines.find_map(|line| line.strip_prefix("totals: "));
    let total: u64 = totals.expect("callgrind sums up").trim().parse().unwrap();
    total / times
}
