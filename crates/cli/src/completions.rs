//! `tidegate completions`: a script for a shell.

use std::process::ExitCode;

use clap::CommandFactory;

use crate::args::{Args, CompletionsArgs};
use crate::terminal;

/// Prints the script.
pub(crate) fn run(args: &CompletionsArgs) -> ExitCode {
    let mut command = Args::command();
    let name = command.get_name().to_owned();
    // Not straight to stdout: the generator panics if that is closed early, as by `| head`.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    terminal::print(&String::from_utf8_lossy(&script));
    ExitCode::SUCCESS
}
