//! `tidegate explain`: the limits that apply to a descriptor or a request, and why.

mod authorize;
mod request;

use std::io;
use std::process::ExitCode;

use tidegate_rules::{Compiled, Domain, Entry, RuleSet, explain};

use crate::args::ExplainArgs;
use crate::config::{self, Config, PushedPlace};
use crate::descriptor::{self, TypedEntry};
use crate::failure::Failure;
use crate::rules_source::RulesSource;
use crate::{rules_files, runtime, terminal};

/// Explains each descriptor, or a request, on stdout.
pub(crate) fn run(args: &ExplainArgs) -> Result<ExitCode, Failure> {
    if let Some(line) = &args.request {
        return request::run(args, line);
    }
    let asked = args.domain.as_deref().unwrap_or_default();
    let descriptors = args
        .descriptors
        .iter()
        .map(|text| parse(text))
        .collect::<Result<Vec<_>, _>>()?;
    let loaded = config::load(&args.settings())?;
    terminal::eprint(&loaded.typed_in_vain());
    let sharing = loaded.config.rules.sharing;
    let rules = read_rules(args, &loaded.config)?.rules;
    let domain = rules
        .domain(asked)
        .ok_or_else(|| no_such_domain(asked, &rules))?;
    let color = terminal::color(&io::stdout());
    let explained: Vec<String> = descriptors
        .iter()
        .map(|typed| typed.iter().map(Entry::from).collect::<Vec<_>>())
        .map(|entries| explain::render(domain, &entries, &|limit| sharing.explain(limit), color))
        .collect();
    terminal::print(&explained.join("\n"));
    Ok(ExitCode::SUCCESS)
}

/// Reads the rules of the server, unless others are named.
fn read_rules(args: &ExplainArgs, config: &Config) -> Result<Compiled, Failure> {
    let mut rules = config.rules.clone();
    rules.merge_domains |= args.compile.merge_domains;
    // The copy belongs to a server: no other process writes it or relies on it.
    rules.pushed = rules.pushed.map(PushedPlace::without_cache);
    if rules.pushed.is_none() {
        return rules_files::load(&rules);
    }
    runtime::start()?.block_on(async { RulesSource::of(&rules)?.read().await })
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
