//! An outside harness: starts real nodes on a real Redis, drives traffic at given times, breaks things,
//! and compares what callers got with what is promised.

mod client;
mod clock;
mod drive;
mod fault;
mod fleet;
mod grpc;
mod http;
mod judge;
mod matrix;
mod node;
mod plan;
mod probe;
mod record;
mod redis;
mod report;
mod results;
mod rules;
mod scenario;
mod schedule;
mod signals;
mod traffic;
mod yaml;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

use clap::Parser;
use serde::de::DeserializeOwned;

use crate::matrix::Matrix;
use crate::scenario::{Consistency, FleetSpec};

/// Measures from outside whether a fleet of nodes keeps the promises of its limits.
///
/// Without an option it runs the short selection of CI. Exits with 0 only if every promise was
/// measured and kept.
#[derive(Debug, Parser)]
#[command(bin_name = "tests/fleet/run")]
struct Arguments {
    /// Run all scenarios and the matrix instead of the short selection
    #[arg(long)]
    all: bool,
    /// Record the table in bench/RESULTS.md; with --only, the rows of these scenarios in it
    #[arg(long, conflicts_with_all = ["consistency", "scenarios"])]
    write: bool,
    /// Run only fleets and scenarios whose name contains NAME; may be given several times
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// List fleets and scenarios and run nothing
    #[arg(long)]
    list: bool,
    /// Set a variable of the nodes' environment, such as `TIDEGATE_STORE_TIMEOUT=100ms`; the results are
    /// then not those of the default settings
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_setting)]
    set: Vec<(String, String)>,
    /// Share all judged limits by this consistency, whatever the scenarios say: `strict` shows what the
    /// judges say of a product that keeps every promise
    #[arg(long, value_name = "HOW", value_parser = parse_consistency)]
    consistency: Option<Consistency>,
    /// Read scenarios from this file instead of those of the repository
    #[arg(long, value_name = "FILE")]
    scenarios: Option<PathBuf>,
    /// Repeat everything so many times
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    repeat: u32,
    /// Run a fleet again, up to so many times, if noise made its results invalid
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    retries: u32,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    signals::end_children_on_signals();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<bool, String> {
    let mut fleets = select(read_all(arguments)?, arguments);
    if let Some(consistency) = arguments.consistency {
        let scenarios = fleets.iter_mut().flat_map(|spec| &mut spec.scenarios);
        scenarios.for_each(|scenario| scenario.consistency = consistency);
    }
    if fleets.is_empty() {
        return Err("no scenario has that name; see --list".to_owned());
    }
    if arguments.list {
        list(&fleets);
        return Ok(true);
    }
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into);
    let executable = node::find_executable(&target)?;
    println!("nodes are {}", executable.display());
    let measure = |spec: &FleetSpec| {
        let reports = fleet::run(spec, &executable, &arguments.set);
        println!("{}", report::text(spec, &reports));
        reports
    };
    let mut reports = Vec::new();
    for _ in 0..arguments.repeat {
        reports.extend(schedule::run_all(&fleets, arguments.retries, measure));
    }
    println!("\n{}", report::table(&reports));
    let count = report::count(&reports);
    println!("{count}");
    if arguments.write {
        let settings: Vec<String> = arguments.set.iter().map(setting_text).collect();
        results::write(&root(), &reports, &settings, arguments.only.is_empty())?;
    }
    Ok(count.is_all_kept())
}

/// The folder of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read_all(arguments: &Arguments) -> Result<Vec<FleetSpec>, String> {
    if let Some(file) = &arguments.scenarios {
        return read(file);
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let entries = fs::read_dir(&folder).map_err(|error| error.to_string())?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let mut fleets = Vec::new();
    for file in files {
        fleets.extend(read::<Vec<FleetSpec>>(&file)?);
    }
    if !(arguments.all || arguments.list || !arguments.only.is_empty()) {
        return Ok(fleets);
    }
    let matrix: Matrix = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("matrix.yaml"))?;
    fleets.extend(matrix.fleets());
    Ok(fleets)
}

fn read<T: DeserializeOwned>(file: &Path) -> Result<T, String> {
    let faulty = |error: String| format!("{}: {error}", file.display());
    let text = fs::read_to_string(file).map_err(|error| faulty(error.to_string()))?;
    let value = yaml::parse(&text).map_err(faulty)?;
    serde_json::from_value(value).map_err(|error| faulty(error.to_string()))
}

/// The fleets to run, each with the scenarios to run.
fn select(fleets: Vec<FleetSpec>, arguments: &Arguments) -> Vec<FleetSpec> {
    let is_named = |name: &str| {
        arguments
            .only
            .iter()
            .any(|only| name.contains(only.as_str()))
    };
    let keep = |mut spec: FleetSpec| {
        if arguments.only.is_empty() {
            return (arguments.all || arguments.list || spec.ci).then_some(spec);
        }
        if !is_named(&spec.fleet) {
            spec.scenarios.retain(|scenario| is_named(&scenario.name));
        }
        (!spec.scenarios.is_empty()).then_some(spec)
    };
    fleets.into_iter().filter_map(keep).collect()
}

fn list(fleets: &[FleetSpec]) {
    for spec in fleets {
        println!("{}", spec.describe());
        for scenario in &spec.scenarios {
            println!("  {}: {}", scenario.name, scenario.subject());
        }
    }
    let seconds = |fleets: &[FleetSpec]| schedule::estimate(fleets);
    let ci: Vec<FleetSpec> = fleets.iter().filter(|spec| spec.ci).cloned().collect();
    println!(
        "\nabout {:.0} minutes in all; the short selection of CI about {:.0} seconds",
        (seconds(fleets) / 60.0).ceil(),
        seconds(&ci)
    );
}

fn parse_consistency(text: &str) -> Result<Consistency, String> {
    serde_json::from_value(text.into()).map_err(|error| error.to_string())
}

fn setting_text((name, value): &(String, String)) -> String {
    format!("{name}={value}")
}

fn parse_setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
