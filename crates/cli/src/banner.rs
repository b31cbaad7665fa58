//! What a server says when it starts.

use std::fmt::{self, Write};

use tidegate_rules::{Domain, Report, RuleSet};
use tidegate_server::{Address, Bound, Front};

use crate::args::VERSION;
use crate::config::{Config, Engine, Loaded, StandIn, word_of};
use crate::{gateway, sample};

/// How much there is in a set of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inventory {
    pub(crate) domains: usize,
    pub(crate) rules: usize,
    pub(crate) limits: usize,
}

/// The greeting: what is loaded, where it listens, and a line to try.
pub(crate) fn banner(
    loaded: &Loaded,
    source: &str,
    rules: &RuleSet,
    findings: &Report,
    bound: &[Bound],
) -> String {
    let config = &loaded.config;
    let mut banner = format!("tidegate {VERSION}\n");
    let mut line = |name: &str, value: &dyn fmt::Display| {
        // Writing to a string does not fail.
        let _ = writeln!(banner, "  {name:<11}{value}");
    };
    if let Some(file) = &loaded.file {
        line("config", &file.display());
    }
    if loaded.stand_in == StandIn::Yes {
        let told =
            "envoyproxy/ratelimit, because a RUNTIME_… variable is set; see `tidegate config`";
        line("instead of", &told);
    }
    line("rules", &source);
    line(
        "loaded",
        &format_args!("{}{}", Inventory::of(rules), warnings(findings)),
    );
    line("domains", &domains(rules));
    line("charging", &word_of(config.charging));
    line("counters", &counters(config));
    if config.has_gateway() {
        line("gateway", &gateway::describe(config));
        for limit in gateway::built_in_limits(config, rules) {
            line("limit", &limit);
        }
    }
    for bound in bound {
        line("listening", &listening(bound));
    }
    if let Some(curl) = bound.iter().find_map(|bound| sample::curl(rules, bound)) {
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

/// Where a listener is, and what to say to it.
fn listening(bound: &Bound) -> String {
    let Bound { front, address, .. } = bound;
    let secure = if bound.is_secure { "s" } else { "" };
    match (front, address) {
        (Front::Http, Address::Tcp(address)) => format!("http{secure}://{address}"),
        (Front::Gateway | Front::Admin | Front::Metrics, Address::Tcp(address)) => {
            format!("http{secure}://{address} ({front})")
        }
        (Front::Grpc, Address::Tcp(address)) => format!("grpc{secure}://{address}"),
        (_, Address::Unix(_)) if bound.is_secure => format!("{address} ({front}, TLS)"),
        (_, Address::Unix(_)) => format!("{address} ({front})"),
    }
}

fn counters(config: &Config) -> String {
    let store = &config.store;
    let memory = match &store.engine {
        Engine::Memory => format!("in memory, at most {}", store.max_memory),
        Engine::Redis(url) => format!(
            "at {url}, {} unless a rule says otherwise; beside it at most {} of memory",
            word_of(store.sharing.consistency),
            store.max_memory
        ),
    };
    match &store.state.file {
        Some(file) => format!("{memory}, kept in {}", file.display()),
        None => memory,
    }
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

fn warnings(findings: &Report) -> String {
    match findings.len() {
        0 => String::new(),
        1 => ", 1 warning (see above)".to_owned(),
        count => format!(", {count} warnings (see above)"),
    }
}
