//! Tidegate beside its peers, in one table. `scripts/bench --help` says how to run it.

mod allocator;
mod arguments;
mod child;
mod contender;
mod flood;
mod growth;
mod key;
mod machine;
mod page;
mod parts;
mod plan;
mod report;
mod service;
mod speed;
mod statistic;
mod table;

use std::error::Error;
use std::process::ExitCode;

use arguments::{Arguments, Command, Group};
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
        Command::Help => print!("{}", arguments::HELP),
        Command::Measure(measurement) => child::answer(&measurement.take()?),
        Command::Table(arguments) => table(&arguments)?,
    }
    Ok(())
}

fn table(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let mut page = Page::default();
    if arguments.only != Some(Group::Service) {
        let rows = plan::run(arguments)?;
        page.decisions = Some(report::page(&rows, arguments.scale));
    }
    if arguments.wants(Group::Service) {
        let table = service::run(arguments.scale)?;
        page.service = Some(table.section(&machine::description()));
    }
    println!("{page}");
    if let Some(path) = &arguments.write {
        let before = std::fs::read_to_string(path).unwrap_or_default();
        std::fs::write(path, page.over(&before).to_string())?;
    }
    Ok(())
}
