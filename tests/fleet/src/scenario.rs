//! Scenarios as data: the files in `scenarios/`.
//!
//! A file is a list of fleets. A fleet is a number of nodes and a Redis that are started together, the
//! faults that happen to them, and the scenarios that run on them at the same time. A scenario is one
//! limit, the traffic on it, and the judges that compare what was measured with what is promised.

use serde::Deserialize;

use crate::clock::{SECOND, micros};
use crate::fault::FaultStep;
use crate::judge::Judge;
pub use crate::traffic::{ProbeSpec, Role, Spread, Stream};

/// Nodes and a Redis that are started together.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetSpec {
    /// Its name; `--only` finds it.
    pub fleet: String,
    /// Whether it is part of the short selection for CI.
    #[serde(default)]
    pub ci: bool,
    /// Whether it may run at the same time as others for which that is true.
    #[serde(default)]
    pub beside: bool,
    /// How often it runs. A promise is judged by the median of the runs; one about too many by every run.
    #[serde(default = "one")]
    pub runs: u32,
    /// How many nodes there are at the start.
    #[serde(default = "default_nodes")]
    pub nodes: usize,
    /// The kind of Redis.
    #[serde(default)]
    pub redis: RedisKind,
    /// The round trip to Redis in milliseconds, by a proxy; without it nodes connect directly.
    pub round_trip: Option<f64>,
    /// Whether the last node counts in its memory and has no Redis.
    #[serde(default)]
    pub memory_node: bool,
    /// How limits are charged: the domain's `charging`, if not the default.
    pub charging: Option<String>,
    /// How long traffic lasts, in seconds.
    pub seconds: f64,
    /// Traffic begins at a multiple of so many seconds of the clock, if given.
    pub align: Option<f64>,
    /// Settings of the nodes beyond the default ones, as variables of the environment.
    #[serde(default)]
    pub settings: Vec<(String, String)>,
    /// What goes wrong, and when.
    #[serde(default)]
    pub faults: Vec<FaultStep>,
    /// What runs on it at the same time.
    pub scenarios: Vec<Scenario>,
}

/// The kind of Redis that nodes share.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum RedisKind {
    /// One server.
    #[default]
    Single,
    /// A master, a replica and three Sentinels.
    Sentinel,
    /// Three masters.
    Cluster,
    /// Two regions with a server each; nodes are in them in turn.
    Regions,
}

/// One limit, the traffic on it, and the judges.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name; `--only` finds it.
    pub name: String,
    /// The limit that is judged.
    pub limit: LimitSpec,
    /// How nodes share it.
    #[serde(default)]
    pub consistency: Consistency,
    /// Whether a `strict` limit gets the same demand at the same times.
    #[serde(default = "yes")]
    pub twin: bool,
    /// A limit of each caller in the same request, shared in the same way.
    pub own_limit: Option<LimitSpec>,
    /// Further limits of the same request, shared in the same way and counted for all callers together.
    #[serde(default)]
    pub also: Vec<LimitSpec>,
    /// Whether each caller has a counter of its own.
    #[serde(default)]
    pub per_caller: bool,
    /// Requests at given times, if any.
    #[serde(default)]
    pub traffic: Vec<Stream>,
    /// Callers that stop at a denial and probe, if any.
    pub probe: Option<ProbeSpec>,
    /// The interface that requests are sent by.
    #[serde(default)]
    pub by: Interface,
    /// How many seconds a caller waits for an answer. One that comes later, or never, counts as degraded.
    pub waits: Option<f64>,
    /// Seconds at the start that are not judged.
    #[serde(default = "default_warm_up")]
    pub warm_up: f64,
    /// What is judged.
    pub judges: Vec<Judge>,
}

/// The interface that requests are sent by.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Interface {
    /// `/v1/check` by HTTP.
    #[default]
    Http,
    /// Envoy's service by gRPC.
    Grpc,
    /// The same. Requests bring the limit along, and the rule allows twice as much.
    GrpcOverride,
}

/// A limit as a rule has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitSpec {
    /// How many.
    pub limit: u64,
    /// The window, in seconds.
    pub window: f64,
    /// The algorithm.
    #[serde(default)]
    pub algorithm: Algorithm,
    /// Of a token bucket: how many at once.
    pub burst: Option<u64>,
    /// Of a sliding counter: into how many parts the window is cut.
    pub sub_windows: Option<u64>,
    /// What happens while Redis is away.
    pub on_failure: Option<String>,
    /// Of a further limit: whether its rule is in `shadow_mode` or `quota_mode`.
    pub mode: Option<String>,
}

/// The algorithm of a limit.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Algorithm {
    /// Counts per window of the clock.
    #[default]
    FixedWindow,
    /// A token bucket that is refilled at each window's edge.
    IntervalBucket,
    /// A token bucket that is refilled all the time.
    TokenBucket,
    /// A queue with a constant outflow.
    LeakyBucket,
    /// Remembers each request.
    SlidingLog,
    /// An estimate from two windows, or from sub-windows.
    SlidingCounter,
}

/// How nodes share a limit.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Consistency {
    /// By loans of permits: the default with Redis.
    #[default]
    Leased,
    /// Redis decides each request.
    Strict,
    /// Nodes exchange totals.
    Eventual,
    /// Each node has a share.
    Split,
}

fn default_nodes() -> usize {
    4
}

fn default_warm_up() -> f64 {
    2.0
}

pub fn one() -> u32 {
    1
}

fn yes() -> bool {
    true
}

// === impl FleetSpec ===

impl FleetSpec {
    /// Its name, its size and its time.
    pub fn describe(&self) -> String {
        let runs = match self.runs {
            1 => String::new(),
            runs => format!(", {runs} times"),
        };
        let beside = if self.beside { ", beside others" } else { "" };
        let ci = if self.ci { ", in CI" } else { "" };
        let (name, nodes, seconds) = (&self.fleet, self.nodes, self.seconds);
        format!("{name} ({nodes} nodes, {seconds} s{runs}{beside}{ci})")
    }
}

// === impl Scenario ===

impl Scenario {
    /// Its limit and how nodes share it.
    pub fn subject(&self) -> String {
        format!("{}, {}", self.consistency.name(), self.limit.describe())
    }
}

// === impl LimitSpec ===

impl LimitSpec {
    /// The window in microseconds.
    pub fn window(&self) -> u64 {
        micros(self.window)
    }

    /// The limit in permits a second.
    pub fn rate(&self) -> f64 {
        self.limit as f64 / self.window
    }

    /// How many a bucket holds; of other algorithms the limit.
    pub fn capacity(&self) -> u64 {
        self.burst.unwrap_or(self.limit)
    }

    /// Whether permits come back at the edges of windows of the clock only.
    pub fn resets_at_edges(&self) -> bool {
        matches!(
            self.algorithm,
            Algorithm::FixedWindow | Algorithm::IntervalBucket
        )
    }

    /// The limit as people say it: `100 per 10 s`.
    pub fn describe(&self) -> String {
        let window = self.window() as f64 / SECOND as f64;
        let per = match self.window() / SECOND {
            1 => "1 s".to_owned(),
            60 => "min".to_owned(),
            3600 => "h".to_owned(),
            _ => format!("{window} s"),
        };
        let parts = self.sub_windows.map(|parts| format!("/{parts}"));
        let parts = parts.unwrap_or_default();
        format!("{}{parts} {} per {per}", self.algorithm.name(), self.limit)
    }
}

// === impl Algorithm ===

impl Algorithm {
    /// A short name for the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::FixedWindow => "fixed window",
            Self::IntervalBucket => "interval bucket",
            Self::TokenBucket => "token bucket",
            Self::LeakyBucket => "leaky bucket",
            Self::SlidingLog => "log",
            Self::SlidingCounter => "counter",
        }
    }
}

// === impl Consistency ===

impl Consistency {
    /// Its name in a rule.
    pub fn name(self) -> &'static str {
        match self {
            Self::Leased => "leased",
            Self::Strict => "strict",
            Self::Eventual => "eventual",
            Self::Split => "split",
        }
    }
}
