//! How this node shares limits with others.

use std::time::Duration;

use tidegate_limiter::report::{EventualReport, LeaseReport, SharingReport, SplitReport};

use super::family::Family;
use super::page::{Page, Seconds};

const MEMBERS: Family = Family::gauge(
    "tidegate_members",
    "Nodes that share limits, this one included, as far as it knows.",
);
const LEASES: Family = Family::gauge("tidegate_lease_keys", "Keys for which permits are in hand.");
const DRAWS: Family = Family::counter(
    "tidegate_lease_draws_total",
    "Times that permits were asked for.",
);
const PERMITS: Family = Family::counter(
    "tidegate_lease_permits_total",
    "Permits that were drawn, and what became of them.",
);
const REMEMBERED: Family = Family::gauge(
    "tidegate_refusals_remembered",
    "Refusals in memory, so that the store need not repeat them.",
);
const ANSWERED: Family = Family::counter(
    "tidegate_refusals_answered_total",
    "Requests that were refused by a refusal in memory.",
);
const EVENTUAL_COUNTERS: Family = Family::gauge(
    "tidegate_eventual_counters",
    "Counters whose totals nodes exchange.",
);
const EVENTUAL_MEMORY: Family = Family::gauge(
    "tidegate_eventual_memory_bytes",
    "Memory of the counters whose totals nodes exchange.",
);
const EVENTUAL_EVICTED: Family = Family::counter(
    "tidegate_eventual_evicted_total",
    "Eventual counters that were evicted because memory was full.",
);
const EVENTUAL_UNTRACKED: Family = Family::counter(
    "tidegate_eventual_untracked_hits_total",
    "Hits on eventual limits that were decided by `on_full` because memory was full.",
);
const EVENTUAL_FULL: Family = Family::gauge(
    "tidegate_eventual_full",
    "1 if `on_full` decided on an eventual limit in the last minute, else 0.",
);
const SYNCS: Family = Family::counter(
    "tidegate_eventual_syncs_total",
    "Exchanges of totals, by result.",
);
const SYNC_AGE: Family = Family::gauge(
    "tidegate_eventual_sync_age_seconds",
    "How long ago totals were last exchanged.",
);
const PENDING: Family = Family::gauge(
    "tidegate_eventual_pending_hits",
    "Hits that some region does not know yet.",
);
const OVERSHOOT: Family = Family::counter(
    "tidegate_eventual_overshoot_hits_total",
    "Hits that all nodes together admitted above a limit, as far as this one knows.",
);
const WORST_OVERSHOOT: Family = Family::gauge(
    "tidegate_eventual_worst_overshoot_hits",
    "The most hits above one limit at one time, as far as this node knows.",
);
const EVENTUAL_ALONE: Family = Family::counter(
    "tidegate_eventual_alone_hits_total",
    "Hits that were decided by this node's share because some region could not be reached.",
);
const SPLIT_COUNTERS: Family = Family::gauge(
    "tidegate_split_counters",
    "Counters of which this node has a share.",
);
const HEARTBEATS: Family = Family::counter(
    "tidegate_heartbeats_total",
    "Heartbeats that were heard, or came to nothing.",
);
const HEARTBEAT_AGE: Family = Family::gauge(
    "tidegate_heartbeat_age_seconds",
    "How long ago the last heartbeat was heard.",
);
const STANDBY: Family = Family::counter(
    "tidegate_standby_requests_total",
    "Requests that this node decided alone, by what became of them.",
);
const DIVISOR: Family = Family::gauge(
    "tidegate_standby_divisor",
    "By how many a limit is divided for what this node decides alone.",
);

/// Adds all that is known of it.
pub(super) fn add(page: &mut Page, sharing: &SharingReport) {
    page.single(&MEMBERS, sharing.members);
    add_leases(page, &sharing.leases);
    page.single(&REMEMBERED, sharing.refusals.remembered);
    page.single(&ANSWERED, sharing.refusals.answered);
    add_eventual(page, &sharing.eventual);
    add_split(page, &sharing.split);
    let standby = &sharing.standby;
    let allowed = standby.requests.saturating_sub(standby.refused);
    let mut series = page.family(&STANDBY);
    series.add(&[("outcome", "allowed")], allowed);
    series.add(&[("outcome", "refused")], standby.refused);
    page.single(&DIVISOR, standby.divided_by);
}

fn add_leases(page: &mut Page, leases: &LeaseReport) {
    page.single(&LEASES, leases.keys);
    page.single(&DRAWS, leases.draws);
    let mut series = page.family(&PERMITS);
    for (fate, count) in [
        ("drawn", leases.drawn),
        ("spent", leases.spent),
        ("given_back", leases.given_back),
        ("lapsed", leases.lapsed),
    ] {
        series.add(&[("fate", fate)], count);
    }
}

fn add_eventual(page: &mut Page, eventual: &EventualReport) {
    page.single(&EVENTUAL_COUNTERS, eventual.counters);
    add_results(page, &SYNCS, eventual.syncs, eventual.failures);
    add_age(page, &SYNC_AGE, eventual.age);
    page.single(&PENDING, eventual.pending);
    page.single(&OVERSHOOT, eventual.overshoot);
    page.single(&WORST_OVERSHOOT, eventual.worst_overshoot);
    page.single(&EVENTUAL_ALONE, eventual.alone);
    page.single(&EVENTUAL_MEMORY, eventual.bytes);
    page.single(&EVENTUAL_EVICTED, eventual.evicted);
    page.single(&EVENTUAL_UNTRACKED, eventual.untracked);
    page.single(&EVENTUAL_FULL, u8::from(eventual.is_full));
}

fn add_split(page: &mut Page, split: &SplitReport) {
    page.single(&SPLIT_COUNTERS, split.counters);
    add_results(page, &HEARTBEATS, split.heartbeats, split.failures);
    add_age(page, &HEARTBEAT_AGE, split.age);
}

fn add_results(page: &mut Page, family: &Family, successes: u64, failures: u64) {
    let mut series = page.family(family);
    series.add(&[("result", "success")], successes);
    series.add(&[("result", "failure")], failures);
}

fn add_age(page: &mut Page, family: &Family, age: Option<Duration>) {
    let mut series = page.family(family);
    if let Some(age) = age {
        series.add(&[], Seconds(age));
    }
}
