//! MATCH: YAML to a compiled [`RuleSet`], and descriptors to the limits that apply.
//!
//! Does no IO, reads no clock and keeps no counter: files come in as bytes, and a [`Limit`] only
//! says what to count. YAML ends in `yaml.rs`; no other file of any crate sees the parser.
//!
//! ```
//! use tidegate_rules::{CompileOptions, Entry, Source, compile};
//!
//! let yaml = "
//! domain: api
//! descriptors:
//!   - key: user_id
//!     rate_limit: { unit: minute, requests_per_unit: 100 }
//! ";
//! let source = Source { name: "rules.yaml".to_owned(), bytes: yaml.into() };
//! let rules = compile(&[source], &CompileOptions::default())?.rules;
//!
//! let domain = rules.domain("api").expect("it is in the file");
//! let rule = domain.find(&[Entry { key: "user_id", value: "42" }]).expect("any user matches");
//! assert_eq!(rule.limits()[0].description(), "100 per minute, fixed_window");
//! assert_eq!(rule.counted_values(), [0], "a counter for each value of `user_id`");
//! # Ok::<(), tidegate_rules::Report>(())
//! ```
//!
//! The stages, each in a file or folder of its name: `yaml` makes a bounded tree of nodes that know
//! their places, `read` makes drafts of it field by field, `check` holds the drafts against each
//! other, `build` lays out the set. None stops at the first fault: `findings` collects them.

mod build;
mod check;
mod code;
mod compile;
mod dialect;
pub mod document;
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
mod pattern_index;
mod read;
mod report;
mod rule;
mod rule_set;
mod span;
mod status_set;
mod style;
mod table;
mod trace;
mod yaml;

pub use compile::{
    CompileOptions, Compiled, Fit, MergeDomains, Refusals, Source, compile, compile_for,
};
pub use dialect::{Dialect, UnknownDialect};
pub use limit::{Announcement, Consistency, Limit, OnFailure, OnFull, OverLimit, Terms};
pub use metadata::MetadataValue;
pub use network::{Network, NetworkFault, Networks};
pub use report::{Diagnostic, Report, Severity};
pub use rule::{Location, MetricDetail, Rule, RuleId, RuleMode};
pub use rule_set::{Charging, Domain, Entry, RuleSet};
pub use status_set::StatusSet;
pub use style::Color;
pub use trace::{Candidate, Ending, Fate, Rank, Step, Trace};
