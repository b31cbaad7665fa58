//! The settings: every name, what it is for and what it is where nobody sets it.

mod observing;

use std::path::PathBuf;
use std::time::Duration;

use tidegate_answer::{Dialect, HeaderNames, Headers};
use tidegate_limiter::Charging;
use tidegate_rules::document::Code;

use super::reader::Section;
use super::value::{Address, Bytes, Count, Ratio, Secret, Words};

pub(crate) use observing::Observing;

/// The settings, understood.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// Where requests and operators come in.
    pub(crate) listeners: Listeners,
    /// Where the rules are.
    pub(crate) rules: Rules,
    /// Where counters are kept.
    pub(crate) store: Store,
    /// How a request with several limits is charged, where its domain does not say.
    pub(crate) charging: Charging,
    /// Whether refusals are only reported.
    pub(crate) shadow: bool,
    /// From which share of a limit on its use is near.
    pub(crate) near_ratio: Ratio,
    /// How answers look.
    pub(crate) answers: Answers,
    /// What is told about the work.
    pub(crate) observing: Observing,
    /// What clients are allowed.
    pub(crate) limits: Limits,
    /// How the end goes.
    pub(crate) drain: Drain,
    /// Who may change things.
    pub(crate) admin: Admin,
    /// How many threads answer; by default one for each core.
    pub(crate) threads: Option<Count<1>>,
}

/// Where requests and operators come in.
#[derive(Clone, Debug)]
pub(crate) struct Listeners {
    pub(crate) http: Listener,
    pub(crate) grpc: Listener,
    pub(crate) admin: Listener,
}

/// One listener.
#[derive(Clone, Debug)]
pub(crate) struct Listener {
    pub(crate) address: Address,
    pub(crate) tls: Option<Tls>,
}

/// How a listener proves who it is, and has clients prove it.
#[derive(Clone, Debug)]
pub(crate) struct Tls {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) client_ca: Option<PathBuf>,
    pub(crate) client_san: Vec<String>,
}

/// Where the rules are.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) files: RulesFiles,
    pub(crate) merge_domains: bool,
    pub(crate) watch: bool,
}

/// Which files of a folder are rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RulesFiles {
    /// Those named `*.yaml` and `*.yml`, directly in it.
    Yaml,
    /// All of them, those of folders inside included.
    Every,
}

/// Where counters are kept.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(crate) engine: Option<Engine>,
    pub(crate) max_memory: Bytes,
    pub(crate) state: State,
}

/// Which store it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// The memory of this process.
    Memory,
}

/// Where counters outlive the process.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) file: Option<PathBuf>,
    pub(crate) interval: Duration,
}

/// How answers look.
#[derive(Clone, Debug)]
pub(crate) struct Answers {
    pub(crate) headers: Headers,
    pub(crate) dynamic_metadata: bool,
}

/// In which headers clients are told about limits, as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeaderChoice {
    /// Those of a dialect.
    Dialect(Dialect),
    /// Those of the operator's own names.
    Named,
}

/// What clients are allowed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) connections: Count<1>,
    pub(crate) head_bytes: Bytes,
    pub(crate) body_bytes: Bytes,
    pub(crate) head_timeout: Duration,
    pub(crate) body_timeout: Duration,
    pub(crate) write_timeout: Duration,
    pub(crate) idle_timeout: Duration,
    pub(crate) connection_age: Option<Duration>,
}

/// How the end goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drain {
    pub(crate) delay: Duration,
    pub(crate) grace: Duration,
}

/// Who may change things.
#[derive(Clone, Debug)]
pub(crate) struct Admin {
    pub(crate) token: Option<Secret>,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) reads: bool,
}

/// The least memory that the embedded store works with.
const LEAST_MEMORY: Bytes = Bytes(1 << 20);

// === impl Config ===

impl Config {
    /// Reads all settings.
    pub(crate) fn read(root: &mut Section<'_, '_>) -> Self {
        Self {
            listeners: Listeners::read(
                root.block("listeners", "Where requests and operators come in"),
            ),
            rules: Rules::read(root.block_or("rules", "Where the rules are", "paths")),
            store: Store::read(root.block("store", "Where counters are kept")),
            charging: root.value(
                "charging",
                "How a request with several limits is charged, where its domain does not say",
                Charging::AllOrNone,
            ),
            shadow: root.value(
                "shadow",
                "Count and report refusals, but let every request pass",
                false,
            ),
            near_ratio: root.value(
                "near_ratio",
                "From which share of a limit on its use is reported as near",
                Ratio::NEAR,
            ),
            answers: Answers::read(root.block("answers", "What clients are told")),
            observing: Observing::read(
                root.block("observing", "What operators are told: log, metrics, traces"),
            ),
            limits: Limits::read(root.block("limits", "What clients are allowed")),
            drain: Drain::read(root.block("drain", "How the server stops")),
            admin: Admin::read(root.block("admin", "Who may change things while it runs")),
            threads: root.optional(
                "threads",
                "How many threads answer; by default one for each core",
            ),
        }
    }
}

// === impl Listeners ===

impl Listeners {
    fn read(mut section: Section<'_, '_>) -> Self {
        let mut listener = |name, about, port| {
            Listener::read(
                section.block_or(name, about, "address"),
                Address::loopback(port),
            )
        };
        Self {
            http: listener("http", "Decisions over HTTP: /json and /v1", 8080),
            grpc: listener("grpc", "Envoy's rate limit service over gRPC", 8081),
            admin: listener(
                "admin",
                "Metrics, health and the admin API, for operators",
                6070,
            ),
        }
    }
}

// === impl Listener ===

impl Listener {
    fn read(mut section: Section<'_, '_>, default: Address) -> Self {
        let address = section.value(
            "address",
            "IP:PORT, unix:PATH or off; port 0 takes a free one",
            default,
        );
        let tls = Tls::read(section.block("tls", "Certificates; none means no TLS"));
        Self { address, tls }
    }
}

// === impl Tls ===

impl Tls {
    fn read(mut section: Section<'_, '_>) -> Option<Self> {
        let cert = section.optional("cert", "The certificate chain as PEM, read again on SIGHUP");
        let key = section.optional("key", "Its private key as PEM");
        let client_ca = section.optional(
            "client_ca",
            "Who signs the certificates of clients, as PEM; clients then need one",
        );
        let client_san: Vec<String> = section.list(
            "client_san",
            "Names of which a client's certificate must carry one",
        );
        match (cert, key) {
            (Some(cert), Some(key)) => Some(Self {
                cert,
                key,
                client_ca,
                client_san,
            }),
            (cert, key) => {
                let alone = [
                    (
                        "cert",
                        cert.is_some(),
                        "name the private key too, with `key`",
                    ),
                    (
                        "key",
                        key.is_some(),
                        "name the certificate too, with `cert`",
                    ),
                    (
                        "client_ca",
                        client_ca.is_some(),
                        "clients can be asked for a certificate only with TLS: set `cert` and `key`",
                    ),
                    (
                        "client_san",
                        !client_san.is_empty(),
                        "clients can be asked for a certificate only with TLS: set `cert` and `key`",
                    ),
                ];
                for (name, is_set, hint) in alone {
                    if is_set {
                        let message = format!("`{name}` does nothing alone");
                        section.fault(name, Code::NotApplicable, message, hint);
                    }
                }
                None
            }
        }
    }
}

// === impl Rules ===

impl Rules {
    fn read(mut section: Section<'_, '_>) -> Self {
        Self {
            paths: section.list(
                "paths",
                "Files of rules and folders of them; none means an example inside the binary",
            ),
            files: section.value(
                "files",
                "Which files of a folder are rules",
                RulesFiles::Yaml,
            ),
            merge_domains: section.value(
                "merge_domains",
                "Take the rules of a domain that several files define together",
                false,
            ),
            watch: section.value("watch", "Reload when a file changes", true),
        }
    }

    /// Whether there are files to be watched.
    pub(crate) fn is_watched(&self) -> bool {
        self.watch && !self.paths.is_empty()
    }
}

impl Words for RulesFiles {
    const EXPECTED: &'static str = "a kind of files";
    const WORDS: &'static [(&'static str, Self)] = &[("yaml", Self::Yaml), ("every", Self::Every)];
}

// === impl Store ===

impl Store {
    fn read(mut section: Section<'_, '_>) -> Self {
        let engine = section.optional(
            "engine",
            "Where counters are kept; say memory to start though REDIS_URL or MEMCACHE_HOST_PORT is set",
        );
        let max_memory = section.value(
            "max_memory",
            "The most memory for counters",
            Bytes(256 << 20),
        );
        if max_memory.0 < LEAST_MEMORY.0 {
            let message = format!("{max_memory} of memory are too little");
            section.fault(
                "max_memory",
                Code::BadValue,
                message,
                "the store needs at least 1MiB",
            );
        }
        let mut state = section.block_or("state", "Where counters outlive the process", "file");
        Self {
            engine,
            max_memory,
            state: State {
                file: state.optional(
                    "file",
                    "Written while it runs and on its end, read at start",
                ),
                interval: state.value(
                    "interval",
                    "How often it is written",
                    Duration::from_secs(10),
                ),
            },
        }
    }
}

impl Words for Engine {
    const EXPECTED: &'static str = "a store";
    const WORDS: &'static [(&'static str, Self)] = &[("memory", Self::Memory)];
}

// === impl Charging ===

impl Words for Charging {
    const EXPECTED: &'static str = "a way of charging";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("all_or_none", Self::AllOrNone),
        ("every_match", Self::EveryMatch),
    ];
}

// === impl Answers ===

impl Answers {
    fn read(mut section: Section<'_, '_>) -> Self {
        let choice = section.value(
            "headers",
            "In which headers clients are told about limits, where a rule does not say",
            HeaderChoice::Dialect(Dialect::default()),
        );
        let names = header_names(section.block("names", "The names of headers: named"));
        let dynamic_metadata = section.value(
            "dynamic_metadata",
            "Tell Envoy which rule decided, in dynamic_metadata",
            true,
        );
        let headers = match choice {
            HeaderChoice::Dialect(dialect) => Headers::Dialect(dialect),
            HeaderChoice::Named => Headers::Named(names),
        };
        Self {
            headers,
            dynamic_metadata,
        }
    }
}

fn header_names(mut section: Section<'_, '_>) -> HeaderNames {
    let mut name = |name, about, default: &str| section.value(name, about, default.to_owned());
    let limit = name("limit", "The header of the limit", "RateLimit-Limit");
    let remaining = name(
        "remaining",
        "The header of what remains",
        "RateLimit-Remaining",
    );
    let reset = name(
        "reset",
        "The header of the seconds to the end of the window",
        "RateLimit-Reset",
    );
    for (field, name) in [
        ("limit", &limit),
        ("remaining", &remaining),
        ("reset", &reset),
    ] {
        if let Err(bad) = HeaderNames::new(name, name, name) {
            section.fault(
                field,
                Code::BadValue,
                bad.to_string(),
                "choose another name",
            );
        }
    }
    HeaderNames::new(&limit, &remaining, &reset).unwrap_or_default()
}

impl Words for HeaderChoice {
    const EXPECTED: &'static str = "a dialect";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("x-ratelimit", Self::Dialect(Dialect::XRateLimit)),
        ("ietf", Self::Dialect(Dialect::Ietf)),
        ("ietf-06", Self::Dialect(Dialect::Ietf06)),
        ("github", Self::Dialect(Dialect::GitHub)),
        ("envoy", Self::Dialect(Dialect::Envoy)),
        ("none", Self::Dialect(Dialect::None)),
        ("named", Self::Named),
    ];
}

// === impl Limits ===

impl Limits {
    fn read(mut section: Section<'_, '_>) -> Self {
        Self {
            connections: section.value(
                "connections",
                "Connections open at once on a listener; further ones wait",
                Count(4096),
            ),
            head_bytes: section.value(
                "head_bytes",
                "Bytes of an HTTP request's head, at least 8KiB",
                Bytes(16 << 10),
            ),
            body_bytes: section.value(
                "body_bytes",
                "Bytes of a request's body or message",
                Bytes(64 << 10),
            ),
            head_timeout: section.value(
                "head_timeout",
                "How long a client may take over a head, the idle time before it included",
                Duration::from_mins(1),
            ),
            body_timeout: section.value(
                "body_timeout",
                "How long a client may take over a body",
                Duration::from_secs(10),
            ),
            write_timeout: section.value(
                "write_timeout",
                "How long a client may take nothing of an answer",
                Duration::from_secs(10),
            ),
            idle_timeout: section.value(
                "idle_timeout",
                "How long a gRPC connection may stay without a call",
                Duration::from_mins(60),
            ),
            connection_age: section.optional(
                "connection_age",
                "After how long a gRPC connection is asked to leave; never, if not set",
            ),
        }
    }
}

// === impl Drain ===

impl Drain {
    fn read(mut section: Section<'_, '_>) -> Self {
        Self {
            delay: section.value(
                "delay",
                "How long health checks fail before connections are closed",
                Duration::ZERO,
            ),
            grace: section.value(
                "grace",
                "How long requests under way may take to finish",
                Duration::from_secs(10),
            ),
        }
    }
}

// === impl Admin ===

impl Admin {
    fn read(mut section: Section<'_, '_>) -> Self {
        let token = section.optional("token", "What a change must bring as a bearer token");
        let token_file: Option<PathBuf> =
            section.optional("token_file", "A file that holds the token");
        if token.is_some() && token_file.is_some() {
            section.fault(
                "token_file",
                Code::Conflict,
                "`token` and `token_file` are both set".to_owned(),
                "keep one of them",
            );
        }
        Self {
            token,
            token_file,
            reads: section.value("protect_reads", "Ask for the token for reading too", false),
        }
    }
}
