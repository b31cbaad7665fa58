//! From files to a [`RuleSet`].

use std::collections::HashMap;

use tidegate_algorithms::Quota;

use crate::build::build;
use crate::code::Code;
use crate::draft::{DraftDomain, DraftRule};
use crate::findings::{Finding, Findings, quote};
use crate::limit::Consistency;
use crate::report::Report;
use crate::rule_set::RuleSet;
use crate::span::Span;
use crate::yaml::Tree;
use crate::{check, read, yaml};

/// The most bytes of all files together.
const MAX_TOTAL_BYTES: usize = 16 << 20;

/// The most rules of all files together.
const MAX_RULES: usize = 100_000;

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
    /// What a refusal counts where a rule does not say.
    pub refusals: Refusals,
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

/// What a refusal counts where a rule has neither `shadow_mode` nor `quota_mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Refusals {
    /// It refuses the request.
    #[default]
    Enforce,
    /// It refuses the request only if every other such rule does, as under `quota_mode`.
    Quota,
}

/// Rules that can be used.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The rules.
    pub rules: RuleSet,
    /// What is odd about them.
    pub warnings: Report,
}

/// What the store that the rules are for says of a limit that nodes share in this way: why it cannot
/// count it, or nothing. Half a sentence, lowercase.
pub type Fit<'f> = &'f dyn Fn(&Quota, Option<Consistency>) -> Result<(), String>;

/// Compiles all `sources` into one set, or says everything that is wrong with them.
///
/// No source makes it panic, recurse without bound, or take memory out of proportion.
///
/// # Errors
///
/// The report of every fault of every source, with the warnings among them.
pub fn compile(sources: &[Source], options: &CompileOptions) -> Result<Compiled, Report> {
    compile_for(sources, options, &|_, _| Ok(()))
}

/// The same for a store that does not count every limit: one that does not `fit` is a fault.
///
/// # Errors
///
/// As [`compile`].
pub fn compile_for(
    sources: &[Source],
    options: &CompileOptions,
    fit: Fit<'_>,
) -> Result<Compiled, Report> {
    let mut findings = Findings::default();
    let files = read_all(sources, &mut findings);
    let mut domains = gather(files, options.merge_domains, &mut findings);
    check::faults(&domains, &mut findings);
    check::fits(&domains, fit, &mut findings);
    if findings.has_errors() {
        return Err(findings.into_report());
    }
    check::oddities(&domains, &mut findings);
    if options.refusals == Refusals::Quota {
        let rules = domains.iter_mut().flat_map(|domain| &mut domain.rules);
        rules.for_each(DraftRule::make_quota);
    }
    let rules = build(domains, &findings);
    Ok(Compiled {
        rules,
        warnings: findings.into_report(),
    })
}

fn read_all(sources: &[Source], findings: &mut Findings) -> Vec<DraftDomain> {
    let mut domains = Vec::with_capacity(sources.len());
    let mut bytes_left = MAX_TOTAL_BYTES;
    let mut nodes_left = yaml::MAX_NODES;
    let mut rules_left = MAX_RULES;
    for source in sources {
        // A file that is too large is not read, so there is nothing to show of it.
        let bytes = yaml::without_byte_order_mark(&source.bytes);
        let shown = if bytes.len() <= yaml::MAX_FILE_BYTES {
            bytes
        } else {
            &[]
        };
        let file = findings.add_source(&source.name, shown);
        let start = Span::start_of(file);
        let Some(left) = bytes_left.checked_sub(bytes.len()) else {
            let message = format!("the files have more than {MAX_TOTAL_BYTES} bytes in all");
            findings.push(Finding::error(Code::TooLarge, start, message));
            break;
        };
        bytes_left = left;
        let root = match yaml::parse(file, bytes, &mut nodes_left, findings) {
            Some(Tree::Root(root)) => root,
            Some(Tree::Empty) => {
                findings.push(no_rules(start));
                continue;
            }
            None => continue,
        };
        let Some(domain) = read::domain(&root, findings) else {
            continue;
        };
        let rules = domain.rules.iter().map(DraftRule::count).sum();
        let Some(left) = rules_left.checked_sub(rules) else {
            let message = format!("the files have more than {MAX_RULES} rules in all");
            findings.push(Finding::error(Code::TooLarge, start, message));
            break;
        };
        rules_left = left;
        domains.push(domain);
    }
    domains
}

fn no_rules(start: Span) -> Finding {
    Finding::error(Code::EmptyFile, start, "the file holds no rules")
        .hint("a file begins with `domain: some_name`")
}

/// One draft for each domain.
fn gather(
    files: Vec<DraftDomain>,
    merge: MergeDomains,
    findings: &mut Findings,
) -> Vec<DraftDomain> {
    let mut domains: Vec<DraftDomain> = Vec::with_capacity(files.len());
    let mut places: HashMap<String, usize> = HashMap::new();
    for file in files {
        match places.get(&file.name.inner) {
            None => {
                places.insert(file.name.inner.clone(), domains.len());
                domains.push(file);
            }
            Some(place) => join(&mut domains[*place], file, merge, findings),
        }
    }
    domains
}

fn join(domain: &mut DraftDomain, file: DraftDomain, merge: MergeDomains, findings: &mut Findings) {
    if merge == MergeDomains::Refuse {
        let message = format!(
            "another file defines the domain {}",
            quote(&file.name.inner)
        );
        let hint = format!(
            "it stands at {}; files of one domain are taken together only with `--merge-domains`",
            findings.place(domain.name.span),
        );
        findings.push(Finding::error(Code::DuplicateDomain, file.name.span, message).hint(hint));
        // Held against each other the two would repeat the fault rule by rule; checked alone, the
        // second still says what else is wrong with it.
        check::faults(&[file], findings);
        return;
    }
    match (&domain.charging, file.charging) {
        (Some(ours), Some(theirs)) if ours.inner != theirs.inner => {
            let message = "the files of the domain disagree about `charging`";
            let hint = format!("it is set otherwise at {}", findings.place(ours.span));
            findings.push(Finding::error(Code::Conflict, theirs.span, message).hint(hint));
        }
        (None, theirs) => domain.charging = theirs,
        _ => {}
    }
    domain.rules.extend(file.rules);
}
