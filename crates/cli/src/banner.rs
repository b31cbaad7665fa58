//! What a server says when it starts.

use std::fmt::{self, Write};
use std::net::SocketAddr;

use tidegate_rules::{Compiled, Domain, RuleSet};

use crate::args::ServeArgs;
use crate::sample;

/// How much there is in a set of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inventory {
    domains: usize,
    rules: usize,
    limits: usize,
}

/// The greeting: what is loaded, where it listens, and a line to try.
pub(crate) fn banner(args: &ServeArgs, compiled: &Compiled, address: SocketAddr) -> String {
    let rules = &compiled.rules;
    let mut banner = format!("tidegate {}\n", env!("CARGO_PKG_VERSION"));
    let mut line = |name: &str, value: &dyn fmt::Display| {
        // Writing to a string does not fail.
        let _ = writeln!(banner, "  {name:<11}{value}");
    };
    line("rules", &source(args));
    line(
        "loaded",
        &format_args!("{}{}", Inventory::of(rules), warnings(compiled)),
    );
    line("domains", &domains(rules));
    line("charging", &charging(args));
    line(
        "counters",
        &format_args!("in memory, at most {}", args.max_memory),
    );
    line("listening", &format_args!("http://{address}"));
    if let Some(curl) = sample::curl(rules, address) {
        let _ = write!(banner, "\nTry it:\n  {curl}\n");
    }
    banner
}

// === impl Inventory ===

impl Inventory {
    pub(crate) fn of(rules: &RuleSet) -> Self {
        Self {
            domains: rules.domains().count(),
            rules: rules.rules().count(),
            limits: rules.rules().map(|rule| rule.limits().len()).sum(),
        }
    }
}

impl fmt::Display for Inventory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            domains,
            rules,
            limits,
        } = self;
        let s = |count: &usize| if *count == 1 { "" } else { "s" };
        write!(
            formatter,
            "{domains} domain{}, {rules} rule{}, {limits} limit{}",
            s(domains),
            s(rules),
            s(limits)
        )
    }
}

fn source(args: &ServeArgs) -> String {
    if args.rules.is_empty() {
        return "an example inside the binary; bring your own with --rules PATH".to_owned();
    }
    let paths: Vec<String> = args
        .rules
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    paths.join(", ")
}

/// The domains by name, but no more than fit a line or two.
fn domains(rules: &RuleSet) -> String {
    const MOST: usize = 8;
    let mut names: Vec<&str> = rules.domains().map(Domain::name).take(MOST).collect();
    if rules.domains().count() > MOST {
        names.push("…");
    }
    names.join(", ")
}

fn warnings(compiled: &Compiled) -> String {
    match compiled.warnings.len() {
        0 => String::new(),
        1 => ", 1 warning (see above)".to_owned(),
        count => format!(", {count} warnings (see above)"),
    }
}

fn charging(args: &ServeArgs) -> String {
    use clap::ValueEnum;
    args.charging
        .to_possible_value()
        .map(|value| value.get_name().to_owned())
        .unwrap_or_default()
}
