//! Cargo, run by a test for a program that it starts.

use std::env;
use std::process::Command;

/// `cargo build --quiet --locked`, with the environment of a shell.
///
/// Cargo gives a test variables that name its package. Build scripts of some dependencies (ring) read variables of these names, so a
/// Cargo with other values builds them, and all that depends on them, anew.
pub(crate) fn cargo_build() -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args(["build", "--quiet", "--locked"]);
    for (name, _) in env::vars_os() {
        let is_of_package = |prefix| name.to_str().is_some_and(|name| name.starts_with(prefix));
        if is_of_package("CARGO_PKG_") || is_of_package("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}
