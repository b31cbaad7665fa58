//! The command line.

use crate::child::Measurement;
use crate::gateway::{BARE_SERVER, BareServer};
use crate::service::NULL_SERVER;

/// What `--help` prints.
pub const HELP: &str = "\
Measures tidegate beside its peers and prints one table.

  scripts/bench                 the whole table; takes about twenty minutes
  scripts/bench --only hot      one group of rows: hot, uniform, parts, threads, memory,
                                shapes, flood, service, redis or gateway
  scripts/bench --quick         everything, tiny: shows that it runs, the figures mean nothing
  scripts/bench --write         also writes the table to bench/RESULTS.md
  scripts/bench --before 475b30d
                                builds that commit too, for the rows of service and redis that
                                compare with one (without it those of redis compare with
                                --consistency strict); or name an executable by TIDEGATE_BEFORE
  scripts/bench --only store --before 475b30d
                                the embedded store beside that of a commit, in fifteen rounds

  bench/day                     ten minutes of a day in small: two nodes, a million users, Redis
                                killed half-way; --quick and --write as above
  bench/soak                    thirty minutes of mixed faults, and a verdict; the same
";

/// What to do.
pub enum Command {
    /// Print [`HELP`].
    Help,
    /// Measure and print the table.
    Table(Arguments),
    /// A day in small.
    Day(Trial),
    /// Mixed faults.
    Soak(Trial),
    /// Be the server that does nothing.
    NullServer,
    /// Be a bare hyper server.
    BareServer(BareServer),
    /// Take one measurement in this process of its own and print it for the process that asked.
    Measure(Measurement),
}

/// How to make the table.
pub struct Arguments {
    /// How large.
    pub scale: Scale,
    /// Which rows; `None` is all.
    pub only: Option<Group>,
    /// Where to write it as well.
    pub write: Write,
}

/// How to make a trial of many nodes.
pub struct Trial {
    /// How long.
    pub scale: Scale,
    /// Where to write it as well.
    pub write: Write,
}

/// Whether what was found is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// It is only printed.
    Nowhere,
    /// In the page of results, too.
    Results,
}

/// How large the measurements are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// As large as the figures are claimed for.
    Full,
    /// As small as shows that everything runs.
    Quick,
}

/// Rows that are measured together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// One caller.
    Hot,
    /// Many callers.
    Uniform,
    /// What a decision is made of.
    Parts,
    /// Many callers, two threads.
    Threads,
    /// Bytes for each caller.
    Memory,
    /// Bytes for each caller of the larger algorithms.
    Shapes,
    /// More callers than there is room for.
    Flood,
    /// The server, from outside: a table of its own.
    Service,
    /// Many nodes and one Redis: a table of its own.
    Redis,
    /// The gateway beside nginx and `HAProxy`: a table of its own.
    Gateway,
}

// === impl Arguments ===

impl Arguments {
    /// Whether these rows are asked for.
    pub fn wants(&self, group: Group) -> bool {
        self.only.is_none_or(|only| only == group)
    }
}

/// Parses the words after the program's name.
pub fn parse(words: impl Iterator<Item = String>) -> Result<Command, String> {
    let words: Vec<String> = words.collect();
    if let [first, measurement @ ..] = words.as_slice()
        && first == "measure"
    {
        return Measurement::parse(measurement).map(Command::Measure);
    }
    if let [first, server @ ..] = words.as_slice()
        && first == BARE_SERVER
    {
        return BareServer::parse(server).map(Command::BareServer);
    }
    if words == [NULL_SERVER] {
        return Ok(Command::NullServer);
    }
    let mut arguments = Arguments {
        scale: Scale::Full,
        only: None,
        write: Write::Nowhere,
    };
    let mut words = words.into_iter().peekable();
    let trial = words.next_if(|word| word == "day" || word == "soak");
    while let Some(word) = words.next() {
        match word.as_str() {
            "--help" | "-h" => return Ok(Command::Help),
            "--quick" => arguments.scale = Scale::Quick,
            "--only" => {
                let name = words.next().unwrap_or_default();
                arguments.only = Some(Group::parse(&name)?);
            }
            "--write" => {
                arguments.write = Write::Results;
            }
            _ => return Err(format!("unknown argument {word}; see --help")),
        }
    }
    let Arguments { scale, write, .. } = arguments;
    Ok(match trial.as_deref() {
        Some("day") => Command::Day(Trial { scale, write }),
        Some(_) => Command::Soak(Trial { scale, write }),
        None => Command::Table(arguments),
    })
}

// === impl Group ===

impl Group {
    fn parse(name: &str) -> Result<Self, String> {
        match name {
            "hot" => Ok(Self::Hot),
            "uniform" => Ok(Self::Uniform),
            "parts" => Ok(Self::Parts),
            "threads" => Ok(Self::Threads),
            "memory" => Ok(Self::Memory),
            "shapes" => Ok(Self::Shapes),
            "flood" => Ok(Self::Flood),
            "service" => Ok(Self::Service),
            "redis" => Ok(Self::Redis),
            "gateway" => Ok(Self::Gateway),
            _ => Err(format!("--only knows no rows named '{name}'; see --help")),
        }
    }
}
