//! OBSERVE: what came of it all.
//!
//! Every core has a [`Recorder`] of its own and writes to nobody else's memory; the [`Observatory`] adds
//! them up when somebody asks: as metrics, as counts of each rule, as the busiest keys. Decisions are
//! traced, and refusals logged, only if [`ObserveConfig`] says so; the latest denials are kept
//! by id. Nothing here decides, and nothing a client sent becomes the label of a metric.

mod clock;
mod config;
mod connections;
mod core;
mod counter;
mod counts;
mod decision;
mod dice;
mod gauges;
mod histogram;
mod ledger;
mod log_sampler;
mod observatory;
mod recorder;
mod refusals;
mod reloads;
mod render;
mod rule_table;
mod ruled;
mod top;
mod trace;

pub use config::{DecisionConfig, KeyLogging, MetricNames, ObserveConfig, RefusalLog, TopConfig};
pub use connections::{OpenConnection, Protocol};
pub use counts::{RuleCounts, RuleReport, Totals};
pub use decision::{
    DecisionClock, DecisionId, DecisionQuery, DecisionReport, DecisionRetention,
    MalformedDecisionId, RecordedAnswer, RecordedCounter, RecordedDecision, RecordedRule,
};
pub use gauges::{GatewayGauges, Gauges, StateGauges, TargetGauges, UpstreamGauges};
pub use log_sampler::LogSampler;
pub use observatory::Observatory;
pub use recorder::{LimiterRequest, Recorder};
pub use reloads::{FailedReloads, ReloadSubject};
pub use top::{TopKey, TopKind, TopQuery, TopReport};
pub use trace::{
    BadHeader, Endpoint, EndpointError, Exporter, OtelError, Sampling, TraceConfig, TraceContext,
    TraceHeader, TraceHeaders,
};
