//! Tidegate beside its peers, in one table. `scripts/bench --help` says how to run it.

mod allocator;
mod arguments;
mod child;
mod contender;
mod flood;
mod growth;
mod key;
mod machine;
mod parts;
mod plan;
mod report;
mod speed;
mod statistic;

use std::error::Error;
use std::process::ExitCode;

use arguments::{Arguments, Command};

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
        Command::Help => print!("{}", arguments::HELP),
        Command::Measure(measurement) => child::answer(&measurement.take()?),
        Command::Table(arguments) => table(&arguments)?,
    }
    Ok(())
}

fn table(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let rows = plan::run(arguments)?;
    let page = report::page(&rows, arguments.scale);
    println!("{page}");
    if let Some(path) = &arguments.write {
        std::fs::write(path, page)?;
    }
    Ok(())
}
