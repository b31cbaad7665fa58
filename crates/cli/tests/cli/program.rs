//! Runs the executable and compares what it says with a file.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Set it to write the snapshots instead of comparing them.
const UPDATE: &str = "TIDEGATE_UPDATE_FIXTURES";

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Run {
    command: String,
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The executable, in the folder of the fixtures so that what it prints has no path of a machine, and
/// with none of the variables that tell it something.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args(args).current_dir(here("fixtures")).env_clear();
    command
}

pub(crate) fn run(args: &[&str]) -> Run {
    Run::of(args, command(args).output().unwrap())
}

/// Runs the executable and compares all that it says with the snapshot `name`.
#[track_caller]
pub(crate) fn check(name: &str, args: &[&str]) {
    check_with(name, args, &[]);
}

/// Likewise, with variables in its environment.
#[track_caller]
pub(crate) fn check_with(name: &str, args: &[&str], variables: &[(&str, &str)]) {
    let output = command(args).envs(variables.iter().copied()).output();
    let actual = Run::of(args, output.unwrap()).text();
    let path = here("snapshots").join(name).with_extension("txt");
    if std::env::var_os(UPDATE).is_some() {
        fs::write(&path, actual).unwrap();
        return;
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        actual, expected,
        "if this is right, run the test again with {UPDATE}=1"
    );
}

/// A folder for one test, empty.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("cli")
        .join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cli")
        .join(name)
}

// === impl Run ===

impl Run {
    fn of(args: &[&str], output: Output) -> Self {
        Self {
            command: args.join(" "),
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    fn text(&self) -> String {
        let code = self.code.map_or("none".to_owned(), |code| code.to_string());
        let mut text = format!("$ tidegate {}\nexit code {code}\n", self.command);
        for (name, said) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !said.is_empty() {
                let _ = write!(text, "--- {name}\n{said}");
            }
        }
        text
    }
}
