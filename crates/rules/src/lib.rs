//! MATCH: YAML to a compiled [`RuleSet`], and descriptors to the limits that apply.
//!
//! Does no IO, reads no clock and keeps no counter: files come in as bytes, and a [`Limit`] only
//! says what to count. YAML ends in `yaml.rs`; no other file of any crate sees the parser.

mod compile;
mod limit;
mod metadata;
mod report;
mod rule;
mod rule_set;
mod trace;

pub use compile::{CompileOptions, Compiled, MergeDomains, Source, compile};
pub use limit::{Consistency, Limit, OnFailure, OnFull, OverLimit, Terms};
pub use metadata::MetadataValue;
pub use report::{Color, Diagnostic, Report, Severity};
pub use rule::{Location, MetricDetail, Rule, RuleId, RuleMode};
pub use rule_set::{Charging, Domain, Entry, RuleSet};
pub use trace::{Candidate, Fate, Step, Trace};
