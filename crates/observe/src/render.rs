//! Metrics, as pages of text.

mod family;
mod gateway;
pub(crate) mod own;
mod page;
pub(crate) mod reference;
mod regions;
mod server;
mod sharing;

use std::sync::Arc;
use std::time::Duration;

use crate::connections::Protocol;
use crate::core::{Answered, Core, Failure, Rejection, StandIn};
use crate::histogram::Times;
use crate::ledger::Sums;
use crate::observatory::sum;
use crate::{Gauges, Observatory, RuleCounts, Totals};

/// The metrics of a page, all read at one time.
#[derive(Debug)]
pub(crate) struct MetricsSnapshot {
    started: Duration,
    gauges: Gauges,
    totals: Totals,
    answered: [u64; Answered::ALL.len()],
    rejected: [u64; Rejection::ALL.len()],
    failures: [u64; Failure::ALL.len()],
    stand_ins: [u64; StandIn::ALL.len()],
    /// For each protocol those that are open, and those that ever were.
    connections: [(u64, u64); Protocol::ALL.len()],
    overrides: RuleCounts,
    times: Times,
    rules: Sums,
}

// === impl MetricsSnapshot ===

impl MetricsSnapshot {
    pub(crate) fn of(observatory: &Observatory, gauges: &Gauges) -> Self {
        let cores = observatory.cores();
        let connections = observatory.connections();
        Self {
            started: observatory.started(),
            gauges: gauges.clone(),
            totals: observatory.totals(),
            answered: Answered::ALL.map(|of| sum(&cores, |core| &core.answered[of as usize])),
            rejected: Rejection::ALL.map(|of| sum(&cores, |core| &core.rejected[of as usize])),
            failures: Failure::ALL.map(|of| sum(&cores, |core| &core.failures[of as usize])),
            stand_ins: StandIn::ALL.map(|of| sum(&cores, |core| &core.stand_ins[of as usize])),
            connections: Protocol::ALL.map(|of| (connections.open_now(of), connections.total(of))),
            overrides: overrides(&cores),
            times: times(&cores),
            rules: observatory.sums(),
        }
    }
}

fn overrides(cores: &[Arc<Core>]) -> RuleCounts {
    let mut counts = RuleCounts::default();
    for core in cores {
        counts += core.overrides.counts();
    }
    counts
}

fn times(cores: &[Arc<Core>]) -> Times {
    let mut times = Times::default();
    for core in cores {
        times.add(&core.times);
    }
    times
}
