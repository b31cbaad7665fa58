//! MATCH: YAML to a compiled [`RuleSet`], and descriptors to the limits that apply.
//!
//! Does no IO, reads no clock and keeps no counter: files come in as bytes, and a [`Limit`] only
//! says what to count. YAML ends in `yaml.rs`; no other file of any crate sees the parser.

mod build;
mod check;
mod code;
mod compile;
mod draft;
mod duration;
pub mod explain;
mod findings;
mod hint;
mod identity;
mod limit;
mod metadata;
mod network;
mod node;
mod pattern;
mod read;
mod report;
mod rule;
mod rule_set;
mod span;
mod style;
mod table;
mod trace;
mod yaml;

pub use compile::{CompileOptions, Compiled, MergeDomains, Source, compile};
pub use limit::{Consistency, Limit, OnFailure, OnFull, OverLimit, Terms};
pub use metadata::MetadataValue;
pub use report::{Diagnostic, Report, Severity};
pub use rule::{Location, MetricDetail, Rule, RuleId, RuleMode};
pub use rule_set::{Charging, Domain, Entry, RuleSet};
pub use style::Color;
pub use trace::{Candidate, Ending, Fate, Rank, Step, Trace};
