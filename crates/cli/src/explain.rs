//! `tidegate explain`: which limits apply to a descriptor, and why.

use std::io;
use std::process::ExitCode;

use tidegate_rules::{Domain, Entry, Refusals, RuleSet, explain};

use crate::args::ExplainArgs;
use crate::config::{Rules, RulesFiles};
use crate::descriptor::{self, TypedEntry};
use crate::failure::Failure;
use crate::sharing::Sharing;
use crate::{rules_files, terminal};

/// Explains each descriptor on stdout.
pub(crate) fn run(args: &ExplainArgs) -> Result<ExitCode, Failure> {
    let descriptors = args
        .descriptors
        .iter()
        .map(|text| parse(text))
        .collect::<Result<Vec<_>, _>>()?;
    let sharing = Sharing::load(&args.node)?;
    let rules = rules_files::load(&rules_of(args, sharing))?.rules;
    let domain = rules
        .domain(&args.domain)
        .ok_or_else(|| no_such_domain(&args.domain, &rules))?;
    let color = terminal::color(&io::stdout());
    let explained: Vec<String> = descriptors
        .iter()
        .map(|typed| typed.iter().map(Entry::from).collect::<Vec<_>>())
        .map(|entries| explain::render(domain, &entries, &|limit| sharing.explain(limit), color))
        .collect();
    terminal::print(&explained.join("\n"));
    Ok(ExitCode::SUCCESS)
}

fn rules_of(args: &ExplainArgs, sharing: Sharing) -> Rules {
    Rules {
        paths: args.rules.clone(),
        files: RulesFiles::Yaml,
        merge_domains: args.compile.merge_domains,
        refusals: Refusals::Enforce,
        watch: false,
        sharing,
        pushed: None,
    }
}

impl<'a> From<&'a TypedEntry> for Entry<'a> {
    fn from(entry: &'a TypedEntry) -> Self {
        Self {
            key: &entry.key,
            value: &entry.value,
        }
    }
}

fn parse(text: &str) -> Result<Vec<TypedEntry>, Failure> {
    descriptor::parse(text).map_err(|reason| Failure::BadDescriptor {
        text: text.to_owned(),
        reason,
    })
}

fn no_such_domain(asked: &str, rules: &RuleSet) -> Failure {
    let known: Vec<&str> = rules.domains().map(Domain::name).collect();
    Failure::NoSuchDomain {
        asked: asked.to_owned(),
        known: known.join(", "),
    }
}
