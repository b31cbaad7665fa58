//! Why a command could not do what it was asked, and the exit code that says so.

use std::error::Error;
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use tidegate_gateway::GatewayError;
use tidegate_observe::{MalformedDecisionId, OtelError};
use tidegate_rules::Report;
use tidegate_server::{BindError, BindFault, Front, RunError};
use tidegate_store::{MemoryRefused, StoreError};
use tidegate_store_redis::book::Expected;
use tidegate_store_redis::client::TlsError;

use crate::descriptor::NotADescriptor;
use crate::rules_files::{Reason, Unreadable};
use crate::rules_source::PushedError;
use crate::state::StateError;
use crate::terminal;
use crate::version::NotABundle;

/// What the folder of rules is made of where the variables of envoyproxy/ratelimit name it.
const RUNTIME_HINT: &str = "  = hint: RUNTIME_ROOT, RUNTIME_SUBDIRECTORY and RUNTIME_APPDIRECTORY (`config` if not set) make the folder
          `tidegate config` shows who set `rules.paths`
";

/// A command that failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Rules that could not be read.
    #[error("{0}")]
    Unreadable(Unreadable),
    /// Rules that could not be read where envoyproxy/ratelimit would have had them.
    #[error("{0}")]
    NoRuntime(Unreadable),
    /// Rules that have faults.
    #[error("{0}")]
    BadRules(Report),
    /// Rules whose limits the store cannot count.
    #[error("{0}; use fewer different windows in the rules")]
    RulesDoNotFit(StoreError),
    /// Rules that could not be had from Redis.
    #[error("{0}")]
    Pushed(PushedError),
    /// Files of TLS to Redis that are of no use.
    #[error("cannot connect to Redis: {0}")]
    NoTls(TlsError),
    /// Files that make no version.
    #[error("these files cannot be pushed: {0}")]
    NoBundle(NotABundle),
    /// A version that is not the newest any more.
    #[error(
        "not pushed: {} in {place}; see it with `tidegate rules show --from {place}`",
        overtaken(*expected, *newest)
    )]
    Overtaken {
        expected: Expected,
        newest: Option<u64>,
        place: String,
    },
    /// Rules with faults, which have been told.
    #[error("nothing was pushed to {place}: mend the faults above, and push again")]
    NotPushed { place: String },
    /// An older version with faults, which have been told.
    #[error(
        "nothing was pushed to {place}: this release finds the faults above in version {number}; to mend them, \
         `tidegate rules show {number} --from {place} --into FOLDER`, and push that"
    )]
    NotBroughtBack { number: u64, place: String },
    /// A file of a version that could not be written.
    #[error("cannot write {}: {reason}", path.display())]
    NotWritten { path: PathBuf, reason: io::Error },
    /// Nothing to go back to.
    #[error("there is no version before {number} in {place}; see `tidegate rules history`")]
    NothingBefore { number: u64, place: String },
    /// Nobody said which Redis is meant.
    #[error(
        "which Redis? name it with --to, such as --to redis://127.0.0.1:6379, or set `rules` to it in the \
         config file or in TIDEGATE_RULES"
    )]
    NoPlace,
    /// A config file that could not be read.
    #[error("cannot read {}: {reason}; it is named with --config", path.display())]
    NoConfig { path: PathBuf, reason: Reason },
    /// Settings that have faults.
    #[error("{0}")]
    BadConfig(Report),
    /// Variables of OpenTelemetry that cannot be used.
    #[error("{0}")]
    BadVariables(#[from] OtelError),
    /// The file of a token that could not be read.
    #[error("cannot read the admin token in {}: {reason}", path.display())]
    NoToken { path: PathBuf, reason: Reason },
    /// A token that cannot be sent.
    #[error("the admin token must be visible ASCII without blanks, and not empty")]
    BadToken,
    /// The file of a password that could not be read.
    #[error("cannot read the password for Redis in {}: {reason}", path.display())]
    NoPassword { path: PathBuf, reason: Reason },
    /// A password that cannot be sent.
    #[error("the password for Redis must be UTF-8")]
    BadPassword,
    /// A file of the gateway's that cannot be used.
    #[error("cannot use {}: {reason}", path.display())]
    BadFile { path: PathBuf, reason: String },
    /// Token keys behind a new URL that cannot be fetched.
    #[error("cannot fetch token keys from {url}: {reason}")]
    NoTokenKeys { url: String, reason: String },
    /// Upstreams that cannot be used.
    #[error("{}", with_causes(.0))]
    NoGateway(GatewayError),
    /// Settings without a gateway, for a server that has one.
    #[error("they have no gateway; restart to apply that")]
    GatewayGone,
    /// Something after the command that belongs to no flag.
    #[error("serve takes flags only; did you mean --rules {0}?")]
    StrayArgument(String),
    /// A domain that the rules do not have.
    #[error("there is no domain {asked:?}; the rules have: {known}")]
    NoSuchDomain { asked: String, known: String },
    /// A descriptor that cannot be read.
    #[error("cannot read the descriptor {text:?}: {reason}")]
    BadDescriptor {
        text: String,
        reason: NotADescriptor,
    },
    /// A request or a header that cannot be read.
    #[error("cannot read {text:?}: {hint}")]
    BadRequest { text: String, hint: &'static str },
    /// A domain for a request to the gateway.
    #[error("the gateway asks the domain of its settings; leave out --domain")]
    DomainOfGateway,
    /// A domain for a request to `/v1/authorize`, whose settings let no proxy name one.
    #[error("`authorize.domain` sets the domain; leave out --domain")]
    DomainIsFixed,
    /// A request to `/v1/authorize` without a domain.
    #[error(
        "no domain: the settings have neither a gateway nor `authorize.domain`; name them with --config, or add --domain"
    )]
    NoAuthorizeDomain,
    /// Listeners that cannot be had.
    #[error("{0}")]
    CannotListen(BindError),
    /// A server that cannot go on.
    #[error("{0}")]
    CannotRun(RunError),
    /// A file for counters that cannot be had.
    #[error("{0}")]
    NoState(StateError),
    /// A Redis that does not let us in, and will not.
    #[error("{url} is of no use as a store: {reason}; {}", way_in(reason))]
    NoEntry { url: String, reason: String },
    /// Memory that cannot be had.
    #[error("{0}; choose less with --max-memory")]
    NoMemory(MemoryRefused),
    /// Settings with no listener that can be asked.
    #[error(
        "nobody to ask: no listener for HTTP or operators is without TLS; set one with --admin"
    )]
    NobodyToAsk,
    /// A server that takes no requests.
    #[error("no server takes requests at {address}: {reason}")]
    Unwell { address: String, reason: String },
    /// A text that is not the id of a decision.
    #[error(
        "{id:?} is not a decision id: {reason}; it is in the header x-tidegate-decision of a denial"
    )]
    BadDecisionId {
        id: String,
        reason: MalformedDecisionId,
    },
    /// Settings whose admin listener cannot be asked.
    #[error("the admin listener is off or has TLS; name one without TLS with --admin")]
    NoPlainAdmin,
    /// A decision that the server does not know.
    #[error("{0}; other nodes keep decisions of their own: ask the one that denied the request")]
    UnknownDecision(String),
    /// A server that does not tell about decisions.
    #[error("no answer from the admin listener at {address}: {reason}")]
    Unanswered { address: String, reason: String },
    /// An operating system that does not play along.
    #[error("cannot {what}: {reason}")]
    System {
        what: &'static str,
        reason: io::Error,
    },
}

// === impl Failure ===

impl Failure {
    /// Says on stderr what went wrong, and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        let text = match self {
            // A report names its faults by itself.
            Self::BadRules(report) | Self::BadConfig(report) => {
                report.render(terminal::color(&io::stderr()))
            }
            Self::Unreadable(unreadable) => unreadable.text(),
            Self::NoRuntime(unreadable) => unreadable.text() + RUNTIME_HINT,
            Self::BadVariables(faults) => {
                let faults = faults.to_string();
                let lines = faults.lines().map(|fault| format!("error: {fault}\n"));
                lines.collect()
            }
            Self::CannotListen(error) => error.faults.iter().map(listener_fault).collect(),
            Self::Pushed(error @ PushedError::Unreachable { .. }) => {
                let error = error.to_string();
                format!("error: {error}; {}\n", way_to_rules(&error))
            }
            other => format!("error: {other}\n"),
        };
        terminal::eprint(&text);
        self.exit_code()
    }

    fn exit_code(&self) -> ExitCode {
        match self {
            Self::Unreadable(_)
            | Self::NoRuntime(_)
            | Self::Pushed(_)
            | Self::NoTls(_)
            | Self::NoPlace
            | Self::NoConfig { .. }
            | Self::NoToken { .. }
            | Self::BadVariables(_)
            | Self::BadToken
            | Self::NoPassword { .. }
            | Self::BadFile { .. }
            | Self::NoTokenKeys { .. }
            | Self::NoGateway(_)
            | Self::GatewayGone
            | Self::BadPassword
            | Self::BadDecisionId { .. }
            | Self::StrayArgument(_)
            | Self::BadDescriptor { .. }
            | Self::BadRequest { .. }
            | Self::DomainOfGateway
            | Self::DomainIsFixed
            | Self::NoAuthorizeDomain => ExitCode::from(2),
            Self::BadRules(_)
            | Self::RulesDoNotFit(_)
            | Self::BadConfig(_)
            | Self::NoBundle(_)
            | Self::Overtaken { .. }
            | Self::NotPushed { .. }
            | Self::NotBroughtBack { .. }
            | Self::NothingBefore { .. }
            | Self::NotWritten { .. }
            | Self::NoSuchDomain { .. }
            | Self::CannotListen(_)
            | Self::CannotRun(_)
            | Self::NoState(_)
            | Self::NoMemory(_)
            | Self::NobodyToAsk
            | Self::NoEntry { .. }
            | Self::Unwell { .. }
            | Self::NoPlainAdmin
            | Self::UnknownDecision(_)
            | Self::Unanswered { .. }
            | Self::System { .. } => ExitCode::FAILURE,
        }
    }
}

/// An error with what caused it, in one line.
fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        // Writing to a string does not fail.
        let _ = write!(text, ": {next}");
        cause = next.source();
    }
    text
}

/// What is newest instead of what was expected.
fn overtaken(expected: Expected, newest: Option<u64>) -> String {
    let newest = newest.map_or("there is none".to_owned(), |newest| {
        format!("version {newest} is the newest")
    });
    match expected {
        Expected::Any => newest,
        Expected::Nothing => format!("no version was expected, but {newest}"),
        Expected::Newest(number) => format!("version {number} was expected, but {newest}"),
    }
}

/// What to do about a Redis that does not let us in, by what it says.
fn way_in(reason: &str) -> &'static str {
    let ways = [
        (
            "NOAUTH",
            "it wants a password: name the file of it in store.password_file",
        ),
        (
            "WRONGPASS",
            "see the user and the password in --store and store.password_file",
        ),
        (
            "without any password",
            "it has none: leave it out of --store and store.password_file",
        ),
        (
            "NOPERM",
            "its user lacks a right; docs/failure.md lists those it needs",
        ),
        ("DB index", "choose another database in --store"),
        (
            "cluster support disabled",
            "it is in no Cluster: write redis:// in --store",
        ),
        (
            "unknown command 'SENTINEL'",
            "it is no Sentinel: write the port of one in --store, 26379 by default, or redis:// for \
             this Redis alone",
        ),
    ];
    find_way(&ways, reason).unwrap_or("see --store")
}

/// What to do where rules in Redis cannot be had, by what it says.
fn way_to_rules(reason: &str) -> &'static str {
    let password = "a password is written redis://USER:PASSWORD@HOST, or stands in store.password_file if \
                    counters are in the same Redis";
    let ways = [
        ("NOAUTH", password),
        ("WRONGPASS", password),
        (
            "NOPERM",
            "its user lacks a right; docs/rules-in-redis.md lists those it needs",
        ),
        ("READONLY", "it is a replica; name its master, or Sentinels"),
        (
            "MOVED",
            "it is part of a Cluster; write redis+cluster:// in its URL",
        ),
        (
            "unknown command 'SENTINEL'",
            "it is no Sentinel; write the port of one, 26379 by default, or redis:// for this Redis alone",
        ),
    ];
    find_way(&ways, reason).unwrap_or("is it there, and its URL right?")
}

/// The first way whose sign is in what Redis said.
fn find_way(ways: &[(&str, &'static str)], reason: &str) -> Option<&'static str> {
    let way = ways.iter().find(|(sign, _)| reason.contains(sign));
    way.map(|(_, way)| *way)
}

fn listener_fault(fault: &BindFault) -> String {
    match fault {
        BindFault::Address {
            front: Front::Metrics,
            ..
        } => format!("error: {fault}; choose another one with listeners.metrics\n"),
        BindFault::Address { front, .. } => {
            format!("error: {fault}; choose another one with --{front}\n")
        }
        BindFault::Tls { .. } => format!("error: {fault}\n"),
    }
}
