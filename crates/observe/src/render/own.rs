//! The page under our own names.

use tidegate_limiter::report::StoreReport;

use super::MetricsSnapshot;
use super::family::Family;
use super::page::{Page, Seconds};
use super::{gateway, regions, server, sharing};
use crate::connections::Protocol;
use crate::core::{Answered, Failure, Rejection, StandIn};
use crate::counts::Counts;
use crate::{Observatory, ReloadSubject, RuleCounts, StateGauges};

const BUILD_INFO: Family = Family::gauge("tidegate_build_info", "The version that runs; always 1.");
const START_TIME: Family = Family::gauge(
    "process_start_time_seconds",
    "When the process began, in seconds since the epoch.",
);
const DECISIONS: Family = Family::counter(
    "tidegate_decisions_total",
    "Requests that were judged, by what became of them.",
);
const DURATION: Family = Family::histogram(
    "tidegate_decision_duration_seconds",
    "How long it took to judge a request, from its parsed message to the verdict.",
);
const UNKNOWN_DOMAIN: Family = Family::counter(
    "tidegate_unknown_domain_requests_total",
    "Requests that named a domain without rules; they pass.",
);
const REJECTED: Family = Family::counter(
    "tidegate_rejected_requests_total",
    "Requests that made no sense and were answered with an error.",
);
const FAILURES: Family = Family::counter(
    "tidegate_store_failures_total",
    "Requests that the store could not decide; on_failure answered them.",
);
const STAND_INS: Family = Family::counter(
    "tidegate_limits_without_store_total",
    "Limits that the store could not decide, by who answered for them.",
);
const RULE_REQUESTS: Family = Family::counter(
    "tidegate_rule_requests_total",
    "Descriptors that a rule applied to, by what the rule said.",
);
const RULE_HITS: Family = Family::counter(
    "tidegate_rule_hits_total",
    "Hits that were asked of a rule, admitted or not.",
);
const OVERRIDES: Family = Family::counter(
    "tidegate_override_requests_total",
    "Descriptors that brought a limit along, by what that limit said.",
);
const RULES: Family = Family::gauge("tidegate_rules", "Rules in force.");
const RELOADS: Family = Family::counter(
    "tidegate_reloads_total",
    "Rule sets that were put in force or refused, the first one included.",
);
const LAST_RELOAD: Family = Family::gauge(
    "tidegate_last_reload_timestamp_seconds",
    "When rules were last put in force, in seconds since the epoch.",
);
const LAST_SUCCESSFUL: Family = Family::gauge(
    "tidegate_last_reload_successful",
    "1 if the last reload succeeded, 0 if it failed and everything stays in force as it was.",
);
const RULES_VERSION: Family = Family::gauge(
    "tidegate_rules_version",
    "The version of the rules in force, where they come from Redis.",
);
const CONNECTIONS: Family = Family::gauge("tidegate_connections", "Connections that are open.");
const CONNECTIONS_OPENED: Family = Family::counter(
    "tidegate_connections_opened_total",
    "Connections that were opened.",
);
const STORE_USED: Family = Family::gauge(
    "tidegate_store_used_bytes",
    "Memory of the embedded store that is in use.",
);
const STORE_MAX: Family = Family::gauge(
    "tidegate_store_max_bytes",
    "Memory that the embedded store may use.",
);
const STORE_EVICTED: Family = Family::counter(
    "tidegate_store_evicted_total",
    "Live counters that made way for new ones.",
);
const STORE_UNTRACKED: Family = Family::counter(
    "tidegate_store_untracked_total",
    "Charges that found no room for their counter and were decided by on_full.",
);
const STORE_UNFOLDED: Family = Family::counter(
    "tidegate_store_unfolded_total",
    "Evicted counters that were not added to their shared counter, because it was in use.",
);
const STORE_FULL: Family = Family::gauge(
    "tidegate_store_full",
    "1 if on_full decided in the last minute because memory was full, else 0.",
);
const STORE_DEGRADED: Family = Family::gauge(
    "tidegate_store_degraded",
    "1 while a server of the store fails and is not asked, else 0.",
);
const DISAGREEMENTS: Family = Family::counter(
    "tidegate_store_disagreements_total",
    "Decisions of the store that the core would have made otherwise.",
);
const STATE_WRITTEN: Family = Family::gauge(
    "tidegate_state_written_timestamp_seconds",
    "When the state file was last written, in seconds since the epoch.",
);
const STATE_BYTES: Family = Family::gauge("tidegate_state_bytes", "The size of the state file.");
const STATE_FAILURES: Family = Family::counter(
    "tidegate_state_write_failures_total",
    "How often the state file could not be written.",
);
const SPANS_LOST: Family = Family::counter(
    "tidegate_spans_lost_total",
    "Spans that were dropped because they could not be sent.",
);

/// The page.
pub(crate) fn page(snapshot: &MetricsSnapshot) -> String {
    let mut page = Page::default();
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    page.family(&BUILD_INFO).add(&version, 1);
    page.single(&START_TIME, Seconds(snapshot.started));
    add_requests(&mut page, snapshot);
    add_rules(&mut page, snapshot);
    add_reloads(&mut page, snapshot);
    add_connections(&mut page, snapshot);
    add_store(&mut page, &snapshot.gauges.store);
    if let Some(gateway) = &snapshot.gauges.gateway {
        gateway::add(&mut page, gateway);
    }
    if let Some(state) = &snapshot.gauges.state {
        add_state(&mut page, state);
    }
    page.single(&SPANS_LOST, snapshot.totals.lost_spans);
    page.into_text()
}

fn add_requests(page: &mut Page, snapshot: &MetricsSnapshot) {
    let mut series = page.family(&DECISIONS);
    for (outcome, count) in Answered::ALL.iter().zip(snapshot.answered) {
        series.add(&[("outcome", outcome.name())], count);
    }
    page.times(&DURATION, &[], &snapshot.times);
    page.single(&UNKNOWN_DOMAIN, snapshot.totals.unknown_domains);
    let mut series = page.family(&REJECTED);
    for (reason, count) in Rejection::ALL.iter().zip(snapshot.rejected) {
        series.add(&[("reason", reason.name())], count);
    }
    let mut series = page.family(&FAILURES);
    for (kind, count) in Failure::ALL.iter().zip(snapshot.failures) {
        series.add(&[("kind", kind.name())], count);
    }
    let mut series = page.family(&STAND_INS);
    for (stand_in, count) in StandIn::ALL.iter().zip(snapshot.stand_ins) {
        series.add(&[("by", stand_in.name())], count);
    }
}

fn add_rules(page: &mut Page, snapshot: &MetricsSnapshot) {
    let mut series = page.family(&RULE_REQUESTS);
    for (domain, rule, counts) in rules(snapshot) {
        for (outcome, count) in outcomes(&counts.own) {
            let labels = [("domain", domain), ("rule", rule), ("outcome", outcome)];
            series.add(&labels, count);
        }
    }
    let mut series = page.family(&RULE_HITS);
    for (domain, rule, counts) in rules(snapshot) {
        series.add(&[("domain", domain), ("rule", rule)], counts.own.hits);
    }
    let mut series = page.family(&OVERRIDES);
    for (outcome, count) in outcomes(&snapshot.overrides) {
        series.add(&[("outcome", outcome)], count);
    }
}

fn add_reloads(page: &mut Page, snapshot: &MetricsSnapshot) {
    page.single(&RULES, snapshot.gauges.rules);
    let mut series = page.family(&RELOADS);
    series.add(&[("result", "success")], snapshot.totals.reloads);
    series.add(&[("result", "failure")], snapshot.totals.failed_reloads);
    let mut series = page.family(&LAST_RELOAD);
    if let Some(last) = snapshot.totals.last_reload {
        series.add(&[], Seconds(last));
    }
    let mut series = page.family(&LAST_SUCCESSFUL);
    for subject in ReloadSubject::ALL {
        let is_successful = !snapshot.totals.failing.contains(subject);
        series.add(&[("subject", subject.name())], u64::from(is_successful));
    }
    if let Some(version) = snapshot.totals.rules_version {
        page.family(&RULES_VERSION).add(&[], version);
    }
}

fn add_connections(page: &mut Page, snapshot: &MetricsSnapshot) {
    let mut series = page.family(&CONNECTIONS);
    for (protocol, (open, _)) in Protocol::ALL.iter().zip(snapshot.connections) {
        series.add(&[("protocol", protocol.name())], open);
    }
    let mut series = page.family(&CONNECTIONS_OPENED);
    for (protocol, (_, total)) in Protocol::ALL.iter().zip(snapshot.connections) {
        series.add(&[("protocol", protocol.name())], total);
    }
}

fn add_store(page: &mut Page, store: &StoreReport) {
    page.single(&STORE_USED, store.memory.used_bytes);
    page.single(&STORE_MAX, store.memory.max_bytes);
    page.single(&STORE_EVICTED, store.memory.evicted);
    page.single(&STORE_UNTRACKED, store.memory.untracked);
    page.single(&STORE_UNFOLDED, store.memory.unfolded);
    page.single(&STORE_FULL, u8::from(store.memory.is_full));
    page.single(&STORE_DEGRADED, u8::from(store.is_degraded()));
    if !store.servers.is_empty() {
        server::add(page, &store.servers);
        page.single(&DISAGREEMENTS, store.disagreements);
    }
    if let Some(report) = &store.sharing {
        sharing::add(page, report);
    }
    if !store.regions.is_empty() {
        regions::add(page, &store.regions);
    }
}

fn add_state(page: &mut Page, state: &StateGauges) {
    let mut series = page.family(&STATE_WRITTEN);
    if let Some(written_at) = state.written_at {
        series.add(&[], Seconds(written_at));
    }
    page.single(&STATE_BYTES, state.bytes);
    page.single(&STATE_FAILURES, state.failures);
}

/// The rules that were ever met, and then all others together.
fn rules(snapshot: &MetricsSnapshot) -> impl Iterator<Item = (&str, &str, &Counts)> {
    let named = snapshot.rules.by_name.iter();
    let named = named.map(|((domain, rule), counts)| (&**domain, &**rule, counts));
    let other = &snapshot.rules.other;
    let other = (*other != Counts::default()).then_some(other);
    named.chain(other.map(|other| (Observatory::OTHER, Observatory::OTHER, other)))
}

fn outcomes(counts: &RuleCounts) -> [(&'static str, u64); 5] {
    [
        ("allowed", counts.allowed),
        ("near", counts.near),
        ("over", counts.over),
        ("shadowed", counts.shadowed),
        ("refused", counts.refused),
    ]
}
