//! Tidegate beside its peers, in one table. `scripts/bench --help` says how to run it.

mod allocator;
mod arguments;
mod child;
mod contender;
mod day;
mod fleet;
mod flood;
mod gateway;
mod growth;
mod key;
mod machine;
mod page;
mod parts;
mod plan;
mod redis;
mod report;
mod service;
mod soak;
mod speed;
mod statistic;
mod table;

use std::error::Error;
use std::process::ExitCode;

use arguments::{Arguments, Command, Group, Write};
use fleet::Verdict;
use page::Page;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    match arguments::parse(std::env::args().skip(1))? {
        Command::NullServer => service::null::run()?,
        Command::BareServer(server) => server.run()?,
        Command::Help => print!("{}", arguments::HELP),
        Command::Measure(measurement) => child::answer(&measurement.take()?),
        Command::Table(arguments) => table(&arguments)?,
        Command::Day(trial) => show_trial(day::run(trial.scale)?, trial.write)?,
        Command::Soak(trial) => show_trial(soak::run(trial.scale)?, trial.write)?,
    }
    Ok(())
}

fn table(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let mut page = Page::default();
    if !matches!(
        arguments.only,
        Some(Group::Service | Group::Redis | Group::Gateway)
    ) {
        let rows = plan::run(arguments)?;
        page.add(report::page(&rows, arguments.scale));
    }
    if arguments.wants(Group::Service) {
        let table = service::run(arguments.scale)?;
        page.add(table.section(&machine::description()));
    }
    if arguments.wants(Group::Redis) {
        let table = redis::run(arguments.scale)?;
        page.add(table.section(&machine::description()));
    }
    if arguments.wants(Group::Gateway) {
        let table = gateway::run(arguments.scale)?;
        page.add(table.section(&machine::description()));
    }
    show(page, arguments.write)
}

/// Prints what was measured and, if asked to, puts it in the page of results.
fn show(page: Page, write: Write) -> Result<(), Box<dyn Error>> {
    println!("{page}");
    if write == Write::Results {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/RESULTS.md");
        let before = std::fs::read_to_string(path).unwrap_or_default();
        std::fs::write(path, page.over(&before).to_string())?;
    }
    Ok(())
}

/// Shows a trial, and fails if it did: a verdict that nobody reads is none.
fn show_trial(verdict: Verdict, write: Write) -> Result<(), Box<dyn Error>> {
    let mut page = Page::default();
    page.add(verdict.section);
    show(page, write)?;
    match verdict.failures.as_slice() {
        [] => Ok(()),
        failures => Err(failures.join("; ").into()),
    }
}
