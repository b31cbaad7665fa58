//! The tidegate executable: the only place that joins a concrete store to the front doors.

mod args;
mod authorize;
mod banner;
mod check;
mod completions;
mod config;
mod descriptor;
mod explain;
mod failure;
mod gateway;
mod hash_key;
mod health;
mod hooks;
mod identity;
mod log;
mod plain_get;
mod reload;
mod restart;
mod rules;
mod rules_files;
mod rules_source;
mod runtime;
mod sample;
mod serve;
mod sharing;
mod show_config;
mod state;
mod stores;
mod terminal;
mod timestamp;
mod version;
mod watch;
mod why;

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};

fn main() -> ExitCode {
    let finished = match Args::parse_from(typed()).command {
        Command::Serve(args) => serve::run(&args),
        Command::Config(args) => show_config::run(&args),
        Command::Health(args) => health::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::HashKey(args) => hash_key::run(&args),
        Command::Why(args) => why::run(&args),
        Command::Rules(args) => rules::run(&args),
        Command::Completions(args) => Ok(completions::run(&args)),
    };
    finished.unwrap_or_else(|failure| failure.report())
}

/// The command line. The executable of envoyproxy/ratelimit has no commands, so its name stands for `serve`: the name that
/// this program is called by, or a first argument, because `command: /bin/ratelimit` of a compose file comes after the
/// entry point of our image.
fn typed() -> Vec<OsString> {
    let mut typed: Vec<OsString> = env::args_os().collect();
    let is_reference = |argument: &OsString| {
        Path::new(argument)
            .file_name()
            .is_some_and(|name| name == "ratelimit")
    };
    let is_argument = typed.get(1).is_some_and(is_reference);
    if is_argument {
        typed.remove(1);
    }
    if is_argument || typed.first().is_some_and(is_reference) {
        typed.insert(1, "serve".into());
    }
    typed
}
