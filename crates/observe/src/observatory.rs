//! Where what the cores recorded is read.

use std::sync::Arc;

use crate::clock;
use crate::{
    Exporter, Gauges, ObserveConfig, Recorder, RuleCounts, RuleReport, TopQuery, TopReport, Totals,
};

/// Reads what all recorders wrote.
#[derive(Debug, Default)]
pub struct Observatory {
    config: ObserveConfig,
}

// === impl Observatory ===

impl Observatory {
    /// An observatory, and what sends its spans away if it is to trace.
    pub fn new(config: ObserveConfig) -> (Self, Option<Exporter>) {
        let exporter = config.traces.as_ref().map(|_| Exporter {});
        (Self { config }, exporter)
    }

    /// A recorder for one more core.
    pub fn recorder(self: &Arc<Self>) -> Recorder {
        Recorder::new(Arc::clone(self))
    }

    /// Rules were put in force.
    pub fn reloaded(&self) {
        let _ = clock::since_epoch();
    }

    /// Rules were refused for their faults; the old ones stay.
    pub fn reload_failed(&self) {}

    /// The sums over all requests.
    pub fn totals(&self) -> Totals {
        Totals::default()
    }

    /// The counts of every rule that was ever met, by domain and path.
    pub fn rules(&self) -> Vec<RuleReport> {
        Vec::new()
    }

    /// The counts of one rule, by its domain and path.
    pub fn rule(&self, domain: &str, path: &str) -> RuleCounts {
        let _ = (domain, path);
        RuleCounts::default()
    }

    /// The busiest or the most refused keys.
    pub fn top(&self, query: &TopQuery<'_>) -> TopReport {
        let _ = (query, &self.config);
        TopReport::default()
    }

    /// The page of metrics in Prometheus' text format (0.0.4).
    pub fn prometheus(&self, gauges: &Gauges) -> String {
        let _ = gauges;
        String::new()
    }

    /// The counters under the names of envoyproxy/ratelimit, one `name: value` to a line.
    pub fn reference_stats(&self) -> String {
        String::new()
    }
}
