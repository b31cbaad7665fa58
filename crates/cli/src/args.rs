//! The command line as it is typed. What the commands make of it is theirs.

mod rules;
mod settings;

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub(crate) use rules::{
    AboutArgs, HistoryArgs, PushArgs, RollbackArgs, RulesArgs, RulesCommand, ShowArgs,
};
pub(crate) use settings::{NodeArgs, SettingArgs};

/// A rate limiter: it answers, for every request, may this caller do this now?
#[derive(Debug, Parser)]
#[command(name = "tidegate", version = VERSION, after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Answer rate limit requests over gRPC and HTTP
    Serve(ServeArgs),
    /// Show the settings in force, and who set them
    Config(ConfigArgs),
    /// Ask a running server how it is
    Health(HealthArgs),
    /// Say everything that is wrong with rules
    Check(CheckArgs),
    /// Show which limits apply to a descriptor or a request, and why
    Explain(ExplainArgs),
    /// Hash API keys for the table of API keys
    HashKey(HashKeyArgs),
    /// Explain a denial by its decision id
    Why(WhyArgs),
    /// Push rules to Redis for all servers at once, look back, go back
    Rules(RulesArgs),
    /// Print a script that completes commands and flags in a shell
    Completions(CompletionsArgs),
}

#[derive(Debug, Parser)]
#[command(after_help = SERVE_EXAMPLES)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,

    /// Taken only to say what is meant.
    #[arg(hide = true)]
    pub(crate) stray: Vec<String>,
}

#[derive(Debug, Parser)]
#[command(after_help = CONFIG_EXAMPLES)]
pub(crate) struct ConfigArgs {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,

    /// What the answer looks like
    #[arg(long, value_enum, default_value_t = ConfigFormat::Yaml)]
    pub(crate) format: ConfigFormat,

    /// Print the JSON schema of the config file, or of rules, instead
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) schema: Option<Schema>,
}

#[derive(Debug, Parser)]
#[command(after_help = HEALTH_EXAMPLES)]
pub(crate) struct HealthArgs {
    /// The config file of the server; without it, where `serve` looks for one
    #[arg(long, value_name = "PATH")]
    config: Option<PathBuf>,

    /// The HTTP listener of the server: IP:PORT, unix:PATH or off [default: that of the settings, 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    http: Option<String>,

    /// The admin listener of the server, which is asked if HTTP is off or has TLS [default: that of the settings,
    /// 127.0.0.1:6070]
    #[arg(long, value_name = "ADDRESS")]
    admin: Option<String>,
}

#[derive(Debug, Parser)]
#[command(after_help = CHECK_EXAMPLES)]
pub(crate) struct CheckArgs {
    /// A file of rules, or a folder of *.yaml and *.yml files
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,

    /// What the answer looks like
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    #[command(flatten)]
    pub(crate) compile: CompileArgs,

    #[command(flatten)]
    pub(crate) node: NodeArgs,
}

#[derive(Debug, Parser)]
#[command(after_help = EXPLAIN_EXAMPLES)]
pub(crate) struct ExplainArgs {
    /// A file of rules, a folder of *.yaml and *.yml files, or the Redis they were pushed to:
    /// redis://HOST:PORT and the like; may be repeated; without it, the rules of the settings, else an
    /// example inside the binary
    #[arg(long, value_name = "PATH")]
    pub(crate) rules: Vec<String>,

    /// Which rules, where several sets of them are in one Redis [default: default]
    #[arg(long, value_name = "NAME")]
    rules_name: Option<String>,

    /// The domain of the descriptors, or the one that a proxy names to /v1/authorize
    #[arg(long, required_unless_present = "request")]
    pub(crate) domain: Option<String>,

    /// A descriptor as key=value,key=value; quote a value with "…" or put \ before , " and \
    #[arg(
        value_name = "DESCRIPTOR",
        required_unless_present = "request",
        conflicts_with = "request"
    )]
    pub(crate) descriptors: Vec<String>,

    /// A request such as 'GET /login', to the gateway, or if there is none, behind a proxy that asks /v1/authorize
    #[arg(long, value_name = "REQUEST")]
    pub(crate) request: Option<String>,

    /// A header of the request, such as 'x-user: 7'; may be repeated
    #[arg(
        short = 'H',
        long = "header",
        value_name = "HEADER",
        requires = "request"
    )]
    pub(crate) headers: Vec<String>,

    /// The address of the client that sends the request [default: 127.0.0.1]
    #[arg(long, value_name = "IP", requires = "request")]
    pub(crate) client_address: Option<IpAddr>,

    /// The subject of the client certificate, such as 'CN=robot', to the gateway
    #[arg(long, value_name = "SUBJECT", requires = "request")]
    pub(crate) certificate: Option<String>,

    #[command(flatten)]
    pub(crate) compile: CompileArgs,

    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Debug, Parser)]
#[command(after_help = HASH_KEY_EXAMPLES)]
pub(crate) struct HashKeyArgs {
    /// The file with the key of the hashes: `identity.api_keys.hash_key_file`
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: PathBuf,
}

#[derive(Debug, Parser)]
#[command(after_help = WHY_EXAMPLES)]
pub(crate) struct WhyArgs {
    /// The id in the header x-tidegate-decision of a denial, or the `instance` of its problem details
    #[arg(value_name = "ID")]
    pub(crate) id: String,

    /// The admin listener of the server: IP:PORT or unix:PATH [default: that of the settings, 127.0.0.1:6070]
    #[arg(long, value_name = "ADDRESS")]
    admin: Option<String>,

    /// The config file of the server, for its address and its token; without it, where `serve` looks for one
    #[arg(long, value_name = "PATH")]
    config: Option<PathBuf>,
}

#[derive(Debug, Parser)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell that the script is for
    pub(crate) shell: Shell,
}

#[derive(Clone, Copy, Debug, Parser)]
pub(crate) struct CompileArgs {
    /// Take the rules of a domain that several files define together
    #[arg(long)]
    pub(crate) merge_domains: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// For programs
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ConfigFormat {
    /// A config file with the same settings; comments say who set what
    Yaml,
    /// For programs
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Schema {
    /// tidegate.yaml
    Config,
    /// A file of rules
    Rules,
}

/// The version, with the commit where the build script knows it.
pub(crate) const VERSION: &str = env!("TIDEGATE_VERSION");

const EXAMPLES: &str = "\
Examples:
  tidegate serve                          try it with the rules inside the binary
  tidegate serve --upstream http://127.0.0.1:9000
                                          a gateway in front of your API
  tidegate serve --rules rules.yaml       limit by your own rules
  tidegate serve --rules rules.yaml --store redis://127.0.0.1:6379
                                          the same, over several nodes
  tidegate check rules/                   before you deploy them
  tidegate rules push rules/ --to redis://127.0.0.1:6379
                                          give them to every server at once
  tidegate config                         every setting, and who set it
  tidegate explain --rules rules.yaml --domain api user_id=42
                                          which limits hold user 42?
  tidegate why 3f9a0c1b2d4e5f60           why was this request denied?

`tidegate help COMMAND` says more about a command.";

// === impl HealthArgs ===

impl HealthArgs {
    /// The same as flags of what a server is told.
    pub(crate) fn settings(&self) -> SettingArgs {
        let settings = SettingArgs::with_config(self.config.clone());
        settings.with_listeners(self.http.clone(), self.admin.clone())
    }
}

// === impl ExplainArgs ===

impl ExplainArgs {
    /// The same as flags of what a server is told.
    pub(crate) fn settings(&self) -> SettingArgs {
        SettingArgs::from(&self.node).with_rules_at(self.rules.clone(), self.rules_name.clone())
    }
}

// === impl WhyArgs ===

impl WhyArgs {
    /// The same as flags of what a server is told.
    pub(crate) fn settings(&self) -> SettingArgs {
        // The address as a browser shows it is as good.
        let admin = self.admin.as_deref();
        let admin = admin.map(|it| it.trim_start_matches("http://").trim_end_matches('/'));
        SettingArgs::with_config(self.config.clone()).with_listeners(None, admin.map(str::to_owned))
    }
}

const SERVE_EXAMPLES: &str = "\
Examples:
  tidegate serve
  tidegate serve --upstream http://127.0.0.1:9000 --gateway 0.0.0.0:8000
                                          a gateway: clients ask it, and it asks the server at 9000
  tidegate serve --rules rules/ --http 0.0.0.0:8080 --max-memory 1GiB
  tidegate serve --config tidegate.yaml --grpc unix:/run/tidegate.sock --admin off
  tidegate serve --rules rules/ --store redis://127.0.0.1:6379
                                          one of several nodes that share limits through a Redis
  tidegate serve --store redis+cluster://a:6379,b:6379 --consistency strict
                                          with every decision made there; further URLs:
                                          rediss:// for TLS, redis+unix:///PATH,
                                          redis+sentinel://HOST:26379/MASTER
  RUNTIME_ROOT=/data RUNTIME_SUBDIRECTORY=ratelimit tidegate serve
                                          in the place of envoyproxy/ratelimit

Ask it:
  curl -i http://127.0.0.1:8080/json -d \\
    '{\"domain\": \"example\", \"descriptors\": [{\"entries\": [{\"key\": \"user_id\", \"value\": \"42\"}]}]}'

  With rules of your own, ask for a domain and a key of theirs: one without limits always gets 200.
  200 the request may pass; 429 it may not, and Retry-After says when; 400 the question makes no sense.

Rules can be in Redis, for all servers at once: see `tidegate rules --help`.
Change the rules while it runs: good ones come into force and counters live on; bad ones are refused \
with all that is wrong with them, and the old ones stay. SIGHUP has them read at once.
Stop it with Ctrl-C or SIGTERM: requests under way are answered first.
Start it before Redis is there, and let Redis come and go: until it is back each rule's `on_failure` says \
who decides. A password that Redis refuses, or a server that is no Redis, is told at once.

Every other setting is in the config file or the environment: `tidegate config` shows them all.";

const CONFIG_EXAMPLES: &str = "\
Examples:
  tidegate config
  tidegate config --config tidegate.yaml > effective.yaml
  TIDEGATE_STORE_MAX_MEMORY=1GiB tidegate config --format json
  tidegate config --schema rules > rules.schema.json

Flags have the last word, then the environment, then the file. A setting's variable is its path in \
capitals: store.max_memory is TIDEGATE_STORE_MAX_MEMORY.

Exit code: 0 the settings are good, 1 they have faults, 2 the file could not be read.";

const HEALTH_EXAMPLES: &str = "\
Examples:
  tidegate health
  tidegate health --http 127.0.0.1:8080

The settings are those of the server: it is asked where they say it listens, over HTTP without TLS.

Exit code: 0 it takes requests, 1 it does not, 2 the settings could not be read.";

const CHECK_EXAMPLES: &str = "\
Examples:
  tidegate check rules.yaml
  tidegate check rules/ more/api.yaml --merge-domains
  tidegate check rules/ --format json
  tidegate check rules/ --store redis://127.0.0.1:6379
                                          also: can Redis count every limit, and which are not leased?

The store is that of the server's settings, unless --store says another; it is not connected to.

Exit code: 0 the rules are valid (there may be warnings), 1 they have faults, 2 they could not be read.";

const HASH_KEY_EXAMPLES: &str = "\
Examples:
  openssl rand -hex 32 > hash.key         once, and keep it where only the server reads it
  tidegate hash-key --key-file hash.key < api-keys.txt
                                          a hash for each line

API keys are read from stdin, a line each, because everybody on a machine sees the arguments of a process.

Exit code: 0 hashed, 2 the file or stdin could not be read.";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  tidegate explain --rules rules.yaml --domain api user_id=42
  tidegate explain --rules rules.yaml --domain api path=/login,remote_address=10.0.0.1 user_id=42
  tidegate explain --config tidegate.yaml --domain api user_id=42
                                          by the rules and the store of that file
  tidegate explain --domain example 'user_id=\"a,b\"' 'user_id=a\\,b'
  tidegate explain --domain example user_id=42 --store redis://127.0.0.1:6379 --consistency strict
                                          how nodes share the limit, and what holds without Redis
  tidegate explain --rules redis://127.0.0.1:6379 --domain api user_id=42
                                          by the newest rules that were pushed there
  tidegate explain --config tidegate.yaml --request 'POST /login' -H 'x-user: 7'
                                          which route, which limits?

Exit code: 0 explained, 1 the rules have faults or no such domain, 2 they could not be read.";

const WHY_EXAMPLES: &str = "\
Examples:
  tidegate why 3f9a0c1b2d4e5f60
  tidegate why 3f9a0c1b2d4e5f60 --admin 127.0.0.1:6070
  tidegate why urn:tidegate:decision:3f9a0c1b2d4e5f60 --config tidegate.yaml

A server keeps its latest decisions in memory: every denial and a sample of the other requests.
`observing.decisions` sets how many.

Exit code: 0 explained, 1 the decision is unknown or no server answers, 2 the id or the settings make no sense.";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  source <(tidegate completions bash)     for this session
  tidegate completions bash > /etc/bash_completion.d/tidegate
  tidegate completions zsh > \"${fpath[1]}/_tidegate\"
  tidegate completions fish > ~/.config/fish/completions/tidegate.fish";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Args::command().debug_assert();
    }
}
