//! From files to a [`RuleSet`].

use crate::report::Report;
use crate::rule_set::RuleSet;

/// One file of rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// What diagnostics call it.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// How to compile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompileOptions {
    /// Whether several files may speak of one domain.
    pub merge_domains: MergeDomains,
}

/// What to do with a domain that several files define.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MergeDomains {
    /// It is a fault.
    #[default]
    Refuse,
    /// Their top-level descriptors are taken together.
    Merge,
}

/// Rules that can be used.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The rules.
    pub rules: RuleSet,
    /// What is odd about them.
    pub warnings: Report,
}

/// Compiles all `sources` into one set, or says everything that is wrong with them.
pub fn compile(_sources: &[Source], _options: &CompileOptions) -> Result<Compiled, Report> {
    unimplemented!()
}
