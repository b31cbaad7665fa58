//! `tidegate rules …` as it is typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use super::{CompileArgs, Format, NodeArgs, SettingArgs};

#[derive(Debug, Parser)]
#[command(after_help = RULES_EXAMPLES)]
pub(crate) struct RulesArgs {
    #[command(subcommand)]
    pub(crate) command: RulesCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RulesCommand {
    /// Check rules and make them the newest version
    Push(PushArgs),
    /// List the versions that are kept
    History(HistoryArgs),
    /// Print the files of a version
    Show(ShowArgs),
    /// Make an older version the newest again
    Rollback(RollbackArgs),
}

/// Which Redis is meant.
#[derive(Clone, Debug, Args)]
pub(crate) struct PlaceArgs {
    /// The Redis: redis://HOST:PORT and the like; without it, the one that `rules` is set to
    #[arg(long, visible_alias = "from", value_name = "URL")]
    to: Option<String>,

    /// Which rules, where several sets of them are in one Redis [default: default]
    #[arg(long, value_name = "NAME")]
    rules_name: Option<String>,
}

/// Which Redis is looked into.
#[derive(Clone, Debug, Args)]
pub(crate) struct LookArgs {
    #[command(flatten)]
    place: PlaceArgs,

    /// The config file; without it, ./tidegate.yaml or /etc/tidegate/tidegate.yaml if there is one
    #[arg(long, value_name = "PATH")]
    config: Option<PathBuf>,
}

/// What is said about a version.
#[derive(Clone, Debug, Args)]
pub(crate) struct AboutArgs {
    /// Why, for the history
    #[arg(long, short, value_name = "TEXT")]
    pub(crate) message: Option<String>,

    /// Who, for the history [default: the user's name and the machine's]
    #[arg(long, value_name = "NAME")]
    pub(crate) author: Option<String>,
}

#[derive(Debug, Parser)]
#[command(after_help = PUSH_EXAMPLES, mut_arg("store", |arg| arg.help(STORE)))]
pub(crate) struct PushArgs {
    /// A file of rules, or a folder of *.yaml and *.yml files; all of them are one version
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,

    #[command(flatten)]
    place: PlaceArgs,

    #[command(flatten)]
    pub(crate) about: AboutArgs,

    /// Push only if this version is the newest; 0 if there must be none
    #[arg(long, value_name = "VERSION")]
    pub(crate) expect: Option<u64>,

    #[command(flatten)]
    pub(crate) compile: CompileArgs,

    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Debug, Parser)]
pub(crate) struct HistoryArgs {
    #[command(flatten)]
    pub(crate) look: LookArgs,

    /// What the answer looks like
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Debug, Parser)]
#[command(after_help = SHOW_EXAMPLES)]
pub(crate) struct ShowArgs {
    /// Which version; without it, the newest
    pub(crate) version: Option<u64>,

    /// Write the files into this folder, where none of these names may be taken
    #[arg(long, value_name = "FOLDER")]
    pub(crate) into: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) look: LookArgs,
}

#[derive(Debug, Parser)]
#[command(after_help = ROLLBACK_EXAMPLES, mut_arg("store", |arg| arg.help(STORE)))]
pub(crate) struct RollbackArgs {
    /// Which version is to come back; without it, the one before the newest
    pub(crate) version: Option<u64>,

    #[command(flatten)]
    place: PlaceArgs,

    #[command(flatten)]
    pub(crate) about: AboutArgs,

    #[command(flatten)]
    node: NodeArgs,
}

/// Rules in Redis are for several nodes, which have their counters there too.
const STORE: &str = "Where the servers that the rules are for keep counters: memory, or redis://HOST:PORT and its like \
    [default: that of the settings, else a Redis]";

// === impl PlaceArgs ===

impl PlaceArgs {
    fn settings(&self, node: SettingArgs) -> SettingArgs {
        node.with_rules(self.to.clone(), self.rules_name.clone())
    }
}

// === impl LookArgs ===

impl LookArgs {
    /// The same as flags of what a server is told.
    pub(crate) fn settings(&self) -> SettingArgs {
        let node = SettingArgs::with_config(self.config.clone());
        self.place.settings(node)
    }
}

// === impl PushArgs ===

impl PushArgs {
    /// The same as flags of what a server is told.
    pub(crate) fn settings(&self) -> SettingArgs {
        self.place.settings(SettingArgs::from(&self.node))
    }
}

// === impl RollbackArgs ===

impl RollbackArgs {
    /// The same as flags of what a server is told.
    pub(crate) fn settings(&self) -> SettingArgs {
        self.place.settings(SettingArgs::from(&self.node))
    }
}

const RULES_EXAMPLES: &str = "\
Examples:
  tidegate rules push rules/ --to redis://127.0.0.1:6379 --message 'more logins'
  tidegate serve --rules redis://127.0.0.1:6379
                                          every server like this has them within a second
  tidegate rules history --from redis://127.0.0.1:6379
  tidegate rules rollback --to redis://127.0.0.1:6379

Rules in Redis are kept in versions, the last 100 of them. Each server keeps a copy of the version it \
has in force, and starts with that if Redis is away.";

const PUSH_EXAMPLES: &str = "\
Examples:
  tidegate rules push rules.yaml --to redis://127.0.0.1:6379
  tidegate rules push rules/ --to redis+cluster://a:6379,b:6379 --message 'more logins'
  tidegate rules push rules/ --expect 17  only if nobody pushed since version 17
  TIDEGATE_RULES=redis://127.0.0.1:6379 tidegate rules push rules/

The rules are checked first, as `tidegate check` does, for servers with that --config, --store and \
--consistency, by default for counters in Redis; rules with faults are not pushed. Pushing what is the newest \
version already changes nothing.

Exit code: 0 pushed, or there already; 1 the rules have faults, or another version is the newest than \
expected; 2 the files could not be read, or Redis does not answer.";

const SHOW_EXAMPLES: &str = "\
Examples:
  tidegate rules show --from redis://127.0.0.1:6379
  tidegate rules show 16 --from redis://127.0.0.1:6379 --into rules/

A line `# --- NAME` comes before each file, if there are several.";

const ROLLBACK_EXAMPLES: &str = "\
Examples:
  tidegate rules rollback --to redis://127.0.0.1:6379
  tidegate rules rollback 12 --to redis://127.0.0.1:6379 --message 'too many refusals'

The old files become a new version; nothing is lost from the history. They are checked first, by this \
release. Somebody who pushes at the same moment is not overwritten.";
