//! Puts the commit into `tidegate --version`: that of `TIDEGATE_COMMIT`, else in release builds that of the checkout.
//! Debug builds do not look at the checkout, because every commit would compile the crate again.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=TIDEGATE_COMMIT");
    let package = env::var("CARGO_PKG_VERSION").expect("Cargo sets it");
    let version = match given().or_else(checked_out) {
        Some(commit) => format!("{package} ({commit})"),
        None => package,
    };
    println!("cargo::rustc-env=TIDEGATE_VERSION={version}");
}

fn given() -> Option<String> {
    env::var("TIDEGATE_COMMIT")
        .ok()
        .filter(|commit| !commit.is_empty())
}

fn checked_out() -> Option<String> {
    if env::var("PROFILE").as_deref() != Ok("release") {
        println!("cargo::rerun-if-changed=build.rs");
        return None;
    }
    // Git appends to this file whenever HEAD moves.
    let log = git(&[
        "rev-parse",
        "--path-format=absolute",
        "--git-path",
        "logs/HEAD",
    ])?;
    println!("cargo::rerun-if-changed={log}");
    git(&["rev-parse", "--short=10", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
