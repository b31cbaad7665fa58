//! The tidegate executable: the only place that joins a concrete store to the front doors.

mod args;
mod banner;
mod check;
mod config;
mod descriptor;
mod explain;
mod failure;
mod health;
mod hooks;
mod log;
mod reload;
mod rules_files;
mod sample;
mod serve;
mod show_config;
mod state;
mod terminal;
mod watch;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};

fn main() -> ExitCode {
    let finished = match Args::parse().command {
        Command::Serve(args) => serve::run(&args),
        Command::Config(args) => show_config::run(&args),
        Command::Health(args) => health::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Explain(args) => explain::run(&args),
    };
    finished.unwrap_or_else(|failure| failure.report())
}
