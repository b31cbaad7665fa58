//! Where what the cores recorded is read.

use std::hash::RandomState;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidegate_limiter::Time;

use crate::clock;
use crate::connections::{Connections, OpenConnection, Protocol};
use crate::core::{Answered, Core};
use crate::counter::Counter;
use crate::counts::Counts;
use crate::decision::{DecisionLog, DecisionWriter};
use crate::dice::Dice;
use crate::ledger::{RuleName, Sums};
use crate::reloads::{FailedReloads, ReloadSubject, Reloads};
use crate::render;
use crate::top::{self, Sketches};
use crate::trace::{self, SpanQueue, Tracer};
use crate::{
    DecisionId, DecisionQuery, DecisionReport, Exporter, Gauges, MetricNames, ObserveConfig,
    RecordedDecision, Recorder, RuleCounts, RuleReport, TopQuery, TopReport, Totals,
};

/// Reads what all recorders wrote.
#[derive(Debug)]
pub struct Observatory {
    config: ObserveConfig,
    started: Duration,
    cores: Mutex<Vec<Arc<Core>>>,
    connections: Arc<Connections>,
    reloads: Reloads,
    /// The seed of the hashes of keys, the same for all cores: their keys are added up by it.
    seed: RandomState,
    /// The latest decisions, if any are kept.
    decisions: Option<Arc<DecisionLog>>,
    /// Where spans wait, if requests are traced.
    spans: Option<SpanQueue>,
}

// === impl Observatory ===

impl Observatory {
    /// The name under which the rules past the most that are counted apart are shown.
    pub const OTHER: &'static str = "_other";

    /// An observatory, and what sends its spans away if it is to trace.
    pub fn new(config: ObserveConfig) -> (Self, Option<Exporter>) {
        let (spans, exporter) = config.traces.clone().map(trace::exporter).unzip();
        let decisions = config.decisions.filter(|decisions| decisions.capacity > 0);
        let decisions = decisions.map(|it| Arc::new(DecisionLog::new(&it, config.max_rules)));
        let observatory = Self {
            config,
            started: clock::since_epoch(),
            cores: Mutex::default(),
            connections: Arc::default(),
            reloads: Reloads::default(),
            seed: RandomState::new(),
            decisions,
            spans,
        };
        (observatory, exporter)
    }

    /// A recorder for one more core. What it counted is kept when it is gone, so it is to live as long
    /// as the core.
    pub fn recorder(self: &Arc<Self>) -> Recorder {
        let core = Arc::new(Core::new(&self.config));
        let mut cores = self.cores.lock().unwrap_or_else(PoisonError::into_inner);
        cores.push(Arc::clone(&core));
        drop(cores);
        Recorder::new(Arc::clone(self), core)
    }

    /// A connection was opened.
    pub fn opened(&self, protocol: Protocol) -> OpenConnection {
        self.connections.open(protocol)
    }

    /// Rules were put in force; `version` is their number, if they have numbers.
    pub fn reloaded(&self, version: Option<u64>) {
        self.reloads.replace_rules(clock::since_epoch(), version);
    }

    /// Other settings were put in force.
    pub fn settings_reloaded(&self) {
        self.reloads.succeed(ReloadSubject::Settings);
    }

    /// A reload failed; everything stays in force as it was.
    pub fn reload_failed(&self, subject: ReloadSubject) {
        self.reloads.fail(subject);
    }

    /// The subjects whose last reload failed.
    pub fn failed_reloads(&self) -> FailedReloads {
        self.reloads.failing()
    }

    /// The sums over all requests.
    pub fn totals(&self) -> Totals {
        let cores = self.cores();
        let answered = |of: Answered| sum(&cores, |core| &core.answered[of as usize]);
        Totals {
            allowed: answered(Answered::Allowed),
            refused: answered(Answered::Refused),
            shadowed: answered(Answered::Shadowed),
            unmatched: answered(Answered::Unmatched),
            unknown_domains: sum(&cores, |core| &core.unknown_domains),
            rejected: sum_all(&cores, |core| &core.rejected),
            store_failures: sum_all(&cores, |core| &core.failures),
            reloads: self.reloads.succeeded(),
            failed_reloads: self.reloads.failed(),
            last_reload: self.reloads.last(),
            rules_version: self.reloads.version(),
            failing: self.reloads.failing(),
            lost_spans: self.spans.as_ref().map_or(0, SpanQueue::lost),
        }
    }

    /// The counts of every rule that was ever met, by domain and path, and at last those of the rules
    /// that are not counted apart, if there are any.
    pub fn rules(&self) -> Vec<RuleReport> {
        let Sums { by_name, other } = self.sums();
        let report = |((domain, rule), counts): (RuleName, _)| RuleReport {
            domain: domain.into(),
            rule: rule.into(),
            counts,
        };
        let named = by_name
            .into_iter()
            .map(|(name, counts)| report((name, counts.own)));
        let rest = ((Self::OTHER.into(), Self::OTHER.into()), other.own);
        let rest = (other.own != RuleCounts::default()).then(|| report(rest));
        named.chain(rest).collect()
    }

    /// The counts of one rule, by its domain and path.
    pub fn rule(&self, domain: &str, path: &str) -> RuleCounts {
        let name: RuleName = (domain.into(), path.into());
        let mut counts = Counts::default();
        for core in self.cores() {
            counts += core.ledger().of(&name);
        }
        counts.own
    }

    /// The busiest or the most refused keys, in the current window and the one before.
    pub fn top(&self, query: &TopQuery<'_>) -> TopReport {
        let nanos = u64::try_from(clock::since_epoch().as_nanos()).unwrap_or(u64::MAX);
        self.top_at(query, Time::from_nanos(nanos))
    }

    /// The same, as of `now` by the clock of the store.
    pub fn top_at(&self, query: &TopQuery<'_>, now: Time) -> TopReport {
        let Some(config) = &self.config.top else {
            return TopReport::default();
        };
        let wanted = |(domain, rule): &RuleName| {
            query.domain.is_none_or(|it| it == &**domain)
                && query.rule.is_none_or(|it| it == &**rule)
        };
        let sketches: Vec<Sketches> = self
            .cores()
            .iter()
            .filter_map(|core| Some(core.lately()?.sketches(query.kind, now, wanted)))
            .flatten()
            .collect();
        let nanos = config.window.as_nanos().max(1);
        let into_window = u64::try_from(u128::from(now.nanos()) % nanos).unwrap_or(u64::MAX);
        TopReport {
            keys: top::merge(&sketches, query.most),
            span: config.window + Duration::from_nanos(into_window),
            sampled_one_in: config.sample_one_in.get(),
        }
    }

    /// Returns the decision of this id; `None` if there was none, or if it is no longer kept.
    pub fn decision(&self, id: DecisionId) -> Option<RecordedDecision> {
        self.decisions.as_ref()?.find(id)
    }

    /// Returns the latest decisions, and how long decisions are kept.
    pub fn decisions(&self, query: DecisionQuery) -> DecisionReport {
        let log = self.decisions.as_ref();
        log.map(|log| log.report(query)).unwrap_or_default()
    }

    /// The page of metrics in Prometheus' text format (0.0.4).
    pub fn prometheus(&self, gauges: &Gauges) -> String {
        let snapshot = render::MetricsSnapshot::of(self, gauges);
        let own = render::own::page(&snapshot);
        match self.config.names {
            MetricNames::Own => own,
            MetricNames::WithReference => own + &render::reference::page(&snapshot),
        }
    }

    /// The counters under the names of envoyproxy/ratelimit, one `name: value` to a line. Those of
    /// rules are there only with [`MetricNames::WithReference`].
    pub fn reference_stats(&self) -> String {
        let snapshot = render::MetricsSnapshot::of(self, &Gauges::default());
        render::reference::stats(&snapshot, self.config.names)
    }

    pub(crate) fn config(&self) -> &ObserveConfig {
        &self.config
    }

    pub(crate) fn seed(&self) -> &RandomState {
        &self.seed
    }

    pub(crate) fn tracer(&self) -> Option<Tracer> {
        let sampling = self.config.traces.as_ref()?.sampling;
        Some(Tracer::new(self.spans.clone()?, sampling))
    }

    pub(crate) fn decision_writer(&self, dice: &Dice) -> Option<DecisionWriter> {
        let log = self.decisions.as_ref()?;
        Some(DecisionWriter::new(Arc::clone(log), dice))
    }

    pub(crate) fn started(&self) -> Duration {
        self.started
    }

    pub(crate) fn connections(&self) -> &Connections {
        &self.connections
    }

    /// The cores, without holding up who adds one.
    pub(crate) fn cores(&self) -> Vec<Arc<Core>> {
        let cores = self.cores.lock().unwrap_or_else(PoisonError::into_inner);
        cores.clone()
    }

    pub(crate) fn sums(&self) -> Sums {
        let mut sums = Sums::default();
        for core in self.cores() {
            sums.add(&core.ledger());
        }
        sums
    }
}

impl Default for Observatory {
    fn default() -> Self {
        Self::new(ObserveConfig::default()).0
    }
}

/// One counter, over all cores.
pub(crate) fn sum(cores: &[Arc<Core>], counter: impl Fn(&Core) -> &Counter) -> u64 {
    let counts = cores.iter().map(|core| counter(core).get());
    counts.fold(0, u64::wrapping_add)
}

/// Several counters, over all cores.
fn sum_all(cores: &[Arc<Core>], counters: impl Fn(&Core) -> &[Counter]) -> u64 {
    let counts = cores.iter().flat_map(|core| counters(core));
    counts.map(Counter::get).fold(0, u64::wrapping_add)
}
