//! A limiter on a clock that stands still, and an observatory that watches it.

use std::sync::Arc;
use std::time::Duration;

use tidegate_limiter::{
    Descriptor, Entry, Hits, Limiter, LimiterConfig, LimiterError, Time, Verdict,
};
use tidegate_observe::{
    Exporter, LimiterRequest, Observatory, ObserveConfig, Recorder, RuleCounts, RuleReport,
    TraceHeaders,
};
use tidegate_rules::{CompileOptions, RuleSet, Source, compile};
use tidegate_store::{EmbeddedStore, ManualClock, StoreConfig};

/// 2026-11-15 12:00:00 UTC, which is a multiple of a minute.
pub(crate) const NOON: Time = Time::from_micros(1_794_744_000_000_000);

/// How long every decision is said to have taken.
pub(crate) const TOOK: Duration = Duration::from_nanos(700);

/// A limiter, and one core that writes down what it says.
pub(crate) struct Watched {
    pub(crate) limiter: Limiter<EmbeddedStore<ManualClock>>,
    pub(crate) observatory: Arc<Observatory>,
    pub(crate) recorder: Recorder,
    pub(crate) exporter: Option<Exporter>,
}

pub(crate) fn rules(yaml: &str) -> RuleSet {
    let source = Source {
        name: "test.yaml".to_owned(),
        bytes: yaml.into(),
    };
    match compile(&[source], &CompileOptions::default()) {
        Ok(compiled) => compiled.rules,
        Err(report) => panic!("{report}"),
    }
}

pub(crate) fn watched(yaml: &str, config: ObserveConfig) -> Watched {
    watched_with(yaml, config, LimiterConfig::default())
}

pub(crate) fn watched_with(yaml: &str, config: ObserveConfig, limits: LimiterConfig) -> Watched {
    let store = EmbeddedStore::with_clock(StoreConfig::default(), ManualClock::at(NOON));
    let (observatory, exporter) = Observatory::new(config);
    let observatory = Arc::new(observatory);
    Watched {
        limiter: Limiter::new(store, rules(yaml), limits),
        recorder: observatory.recorder(),
        observatory,
        exporter,
    }
}

// === impl Watched ===

impl Watched {
    /// Asks in domain `test` for one descriptor with `hits`.
    pub(crate) fn ask(&self, entries: &[(&str, &str)], hits: u64) -> Verdict {
        self.ask_as(&self.recorder, "test", &[(entries, Hits::OfRequest)], hits)
            .unwrap()
    }

    /// Asks on behalf of another core, domain or several descriptors.
    pub(crate) fn ask_as(
        &self,
        recorder: &Recorder,
        domain: &str,
        asks: &[(&[(&str, &str)], Hits)],
        hits: u64,
    ) -> Result<Verdict, LimiterError> {
        self.judge(recorder, domain, asks, hits, TraceHeaders::default())
    }

    /// Asks in domain `test` as part of a trace.
    pub(crate) fn ask_traced(&self, entries: &[(&str, &str)], trace: TraceHeaders<'_>) -> Verdict {
        let asks = [(entries, Hits::OfRequest)];
        self.judge(&self.recorder, "test", &asks, 1, trace).unwrap()
    }

    fn judge(
        &self,
        recorder: &Recorder,
        domain: &str,
        asks: &[(&[(&str, &str)], Hits)],
        hits: u64,
        trace: TraceHeaders<'_>,
    ) -> Result<Verdict, LimiterError> {
        let entry = |&(key, value): &_| Entry { key, value };
        let entries: Vec<Vec<Entry<'_>>> = asks
            .iter()
            .map(|(entries, _)| entries.iter().map(entry).collect())
            .collect();
        let descriptors: Vec<Descriptor<'_>> = entries
            .iter()
            .zip(asks)
            .map(|(entries, (_, hits))| Descriptor {
                hits: *hits,
                ..Descriptor::new(entries)
            })
            .collect();
        let judged = self.limiter.check_now(domain, &descriptors, hits);
        match &judged {
            Ok(verdict) => {
                let request = LimiterRequest {
                    domain,
                    descriptors: &descriptors,
                    hits,
                    route: None,
                    trace,
                };
                recorder.judged(&request, verdict, TOOK);
            }
            Err(error) => recorder.rejected(error),
        }
        judged
    }

    /// The counts of a rule in domain `test`.
    pub(crate) fn counts(&self, path: &str) -> RuleCounts {
        self.observatory.rule("test", path)
    }

    /// The names of the rules that were met, with their requests.
    pub(crate) fn met(&self) -> Vec<(String, u64)> {
        let short = |report: RuleReport| (report.rule, report.counts.requests());
        self.observatory.rules().into_iter().map(short).collect()
    }
}
