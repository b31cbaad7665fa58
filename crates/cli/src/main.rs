//! The tidegate executable: the only place that joins a concrete store to the front doors.

mod args;
mod authorize;
mod banner;
mod check;
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
    };
    finished.unwrap_or_else(|failure| failure.report())
}

/// The command line. Called by the name of envoyproxy/ratelimit's executable, which has no commands, it
/// serves.
fn typed() -> Vec<OsString> {
    let mut typed: Vec<OsString> = env::args_os().collect();
    let name = typed.first().and_then(|path| Path::new(path).file_name());
    if name.is_some_and(|name| name == "ratelimit") {
        typed.insert(1, "serve".into());
    }
    typed
}
