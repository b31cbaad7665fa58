//! Flags that are settings, as they are typed.

use std::path::PathBuf;

use clap::Args;

use crate::config::{Page, Written};

/// The flags of what a server is told. Their values are read with those of the file and the environment,
/// so that all faults are told at once.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SettingArgs {
    /// The config file; without it, ./tidegate.yaml or /etc/tidegate/tidegate.yaml if there is one
    #[arg(long, value_name = "PATH")]
    pub(crate) config: Option<PathBuf>,

    /// A file of rules, a folder of *.yaml and *.yml files, or the Redis they were pushed to: redis://HOST:PORT and the like; without it, an example inside the binary
    #[arg(long, value_name = "PATH", num_args = 1..)]
    rules: Vec<String>,

    /// Take the rules of a domain that several files define together
    #[arg(long)]
    merge_domains: bool,

    /// Which rules, where several sets of them are in one Redis [default: default]
    #[arg(long, value_name = "NAME")]
    rules_name: Option<String>,

    /// Where a copy of the rules in Redis is kept, for a start without it, or off [default: in the state folder]
    #[arg(long, value_name = "FILE")]
    rules_cache: Option<String>,

    /// What `tidegate rules` calls `--rules`.
    #[arg(skip)]
    to: Option<String>,

    /// Where to listen for HTTP: IP:PORT, unix:PATH or off; port 0 takes a free one [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    http: Option<String>,

    /// Where to listen for gRPC, Envoy's rate limit service [default: 127.0.0.1:8081]
    #[arg(long, value_name = "ADDRESS")]
    grpc: Option<String>,

    /// Where to listen as a gateway in front of --upstream [default: 127.0.0.1:8000 with --upstream, else off]
    #[arg(long, value_name = "ADDRESS")]
    gateway: Option<String>,

    /// A server behind the gateway: http://HOST:PORT or https://HOST:PORT; may be repeated
    #[arg(long, value_name = "URL")]
    upstream: Vec<String>,

    /// Where operators come in: metrics, health, the admin API [default: 127.0.0.1:6070]
    #[arg(long, value_name = "ADDRESS")]
    admin: Option<String>,

    /// How a request with several limits is charged, where its domain does not say.
    #[arg(long, value_name = "HOW", help = CHARGING)]
    charging: Option<String>,

    #[command(flatten)]
    store: StoreArgs,

    /// The most memory for counters: bytes, or with a unit such as KiB, MiB, GiB [default: 256MiB]
    #[arg(long, value_name = "SIZE")]
    max_memory: Option<String>,

    /// Where counters outlive the process; without it, they do not
    #[arg(long, value_name = "FILE")]
    state: Option<String>,

    /// How many threads answer [default: one for each core]
    #[arg(long, value_name = "COUNT")]
    threads: Option<String>,

    /// How much is logged: off, error, warn, info, debug or trace [default: info]
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,

    /// How lines of the log look: text or json [default: text]
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
}

/// The settings of the server that rules are for, as far as they say what a limit means there.
#[derive(Clone, Debug, Args)]
pub(crate) struct NodeArgs {
    /// The config file of the server that the rules are for; without it, where `serve` looks for one
    #[arg(long, value_name = "PATH")]
    config: Option<PathBuf>,

    #[command(flatten)]
    store: StoreArgs,
}

/// The flags of where counters are kept, which say what a limit promises too.
#[derive(Clone, Debug, Default, Args)]
struct StoreArgs {
    /// Where counters are kept: memory, or redis://HOST:PORT and its like for nodes to share [default: memory]
    #[arg(long, value_name = "URL")]
    store: Option<String>,

    /// How nodes share a limit, where its rule does not say.
    #[arg(long, value_name = "HOW", help = CONSISTENCY)]
    consistency: Option<String>,
}

const CONSISTENCY: &str = "How nodes that have a Redis in common share a limit, where its rule does not say: \
    strict, leased, eventual, split or node [default: leased]";

const CHARGING: &str = "How a request with several limits is charged, where its domain does not say: \
    all_or_none, or every_match as envoyproxy/ratelimit does [default: all_or_none]";

// === impl SettingArgs ===

impl SettingArgs {
    /// The flags of a server that is told nothing but its config file.
    pub(super) fn with_config(config: Option<PathBuf>) -> Self {
        Self {
            config,
            ..Self::default()
        }
    }

    /// The same flags, and which rules `tidegate rules` is to work on.
    pub(super) fn with_rules(self, to: Option<String>, rules_name: Option<String>) -> Self {
        Self {
            rules_name,
            to,
            ..self
        }
    }

    /// The same flags, and these listeners.
    pub(super) fn with_listeners(self, http: Option<String>, admin: Option<String>) -> Self {
        Self {
            http,
            admin,
            ..self
        }
    }

    /// The same flags, and these rules.
    pub(super) fn with_rules_at(self, rules: Vec<String>, rules_name: Option<String>) -> Self {
        Self {
            rules,
            rules_name,
            ..self
        }
    }

    /// What was typed, setting by setting.
    pub(crate) fn written(&self, page: &mut Page) -> Vec<Written> {
        let single = [
            ("listeners.http.address", "--http", &self.http),
            ("listeners.grpc.address", "--grpc", &self.grpc),
            ("listeners.gateway.address", "--gateway", &self.gateway),
            ("listeners.admin.address", "--admin", &self.admin),
            ("rules.paths", "--to", &self.to),
            ("rules.name", "--rules-name", &self.rules_name),
            ("rules.cache", "--rules-cache", &self.rules_cache),
            ("charging", "--charging", &self.charging),
            ("store.engine", "--store", &self.store.store),
            (
                "store.consistency",
                "--consistency",
                &self.store.consistency,
            ),
            ("store.max_memory", "--max-memory", &self.max_memory),
            ("store.state.file", "--state", &self.state),
            ("threads", "--threads", &self.threads),
            ("observing.log.level", "--log-level", &self.log_level),
            ("observing.log.format", "--log-format", &self.log_format),
        ];
        let mut written: Vec<Written> = single
            .into_iter()
            .filter_map(|(path, flag, value)| Some(page.flag(path, flag, vec![value.clone()?])))
            .collect();
        if !self.rules.is_empty() {
            written.push(page.flag("rules.paths", "--rules", self.rules.clone()));
        }
        if !self.upstream.is_empty() {
            written.push(page.flag("gateway.upstream", "--upstream", self.upstream.clone()));
        }
        if self.merge_domains {
            let on = vec!["true".to_owned()];
            written.push(page.flag("rules.merge_domains", "--merge-domains", on));
        }
        written
    }
}

impl From<&NodeArgs> for SettingArgs {
    fn from(node: &NodeArgs) -> Self {
        Self {
            config: node.config.clone(),
            store: node.store.clone(),
            ..Self::default()
        }
    }
}
