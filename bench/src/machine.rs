//! What this machine is, and how much memory this process has of it.

use std::fs;
use std::process::Command;

/// Bytes of a page, as Linux gives them on the platforms we build for.
const PAGE: u64 = 4_096;

/// Resident bytes of this process.
///
/// # Panics
///
/// Without Linux's `/proc`.
pub fn resident_bytes() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").expect("Linux has /proc/self/statm");
    let pages = statm
        .split_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok());
    pages.expect("the second word of statm is a number of pages") * PAGE
}

/// One line on the processor, the cores, the kernel, the compiler, the commit and the day.
pub fn description() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!(
        "{}, {cores} cores, Linux {}, {}, commit {}, {}",
        processor(),
        said("uname", &["-r"]),
        said("rustc", &["--version"]),
        said("git", &["describe", "--always", "--dirty"]),
        said("date", &["-u", "+%Y-%m-%d %H:%M UTC"]),
    )
}

fn processor() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    model.unwrap_or("unknown processor").to_owned()
}

fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.ok()
        .filter(|text| !text.is_empty())
        .unwrap_or_else(|| "unknown".to_owned())
}
