//! The gateway: its responses and its upstreams.

use super::family::Family;
use super::page::Page;
use crate::gauges::{GatewayGauges, UpstreamGauges};

const RESPONSES: Family = Family::counter(
    "tidegate_gateway_responses_total",
    "Responses of the gateway, by origin and class of status.",
);
const REQUESTS: Family = Family::counter(
    "tidegate_upstream_requests_total",
    "Requests that were forwarded to an upstream, retries not counted.",
);
const RETRIES: Family = Family::counter(
    "tidegate_upstream_retries_total",
    "Attempts after the first.",
);
const RETRIES_DENIED: Family = Family::counter(
    "tidegate_upstream_retries_denied_total",
    "Retries that the budget did not allow.",
);
const CONNECTIONS: Family = Family::counter(
    "tidegate_upstream_connections_opened_total",
    "Connections opened to the targets of an upstream.",
);
const FAILURES: Family = Family::counter(
    "tidegate_upstream_failures_total",
    "Attempts without a whole response, by kind of failure.",
);
const UP: Family = Family::gauge(
    "tidegate_upstream_target_up",
    "1 for a target that gets requests, 0 for one that failed its health checks or was ejected.",
);
const IN_PROGRESS: Family = Family::gauge(
    "tidegate_upstream_target_requests_in_progress",
    "Requests in progress at a target.",
);

/// Writes the metrics of a gateway.
pub(super) fn add(page: &mut Page, gateway: &GatewayGauges) {
    let mut responses = page.family(&RESPONSES);
    for (origin, classes) in &gateway.responses {
        for (class, count) in ["1xx", "2xx", "3xx", "4xx", "5xx"].iter().zip(classes) {
            responses.add(&[("origin", origin), ("class", class)], count);
        }
    }
    let upstreams = &gateway.upstreams;
    let mut each = |family: &Family, value: fn(&UpstreamGauges) -> u64| {
        let mut series = page.family(family);
        for upstream in upstreams {
            series.add(&[("upstream", &upstream.name)], value(upstream));
        }
    };
    each(&REQUESTS, |it| it.requests);
    each(&RETRIES, |it| it.retries);
    each(&RETRIES_DENIED, |it| it.retries_denied);
    each(&CONNECTIONS, |it| it.connections);
    let mut failures = page.family(&FAILURES);
    for upstream in upstreams {
        for (kind, count) in &upstream.failures {
            failures.add(&[("upstream", &upstream.name), ("kind", kind)], count);
        }
    }
    let mut up = page.family(&UP);
    for (upstream, target) in targets(gateway) {
        let labels = [("upstream", upstream), ("target", target.name.as_str())];
        up.add(&labels, u8::from(target.is_up));
    }
    let mut in_progress = page.family(&IN_PROGRESS);
    for (upstream, target) in targets(gateway) {
        let labels = [("upstream", upstream), ("target", target.name.as_str())];
        in_progress.add(&labels, target.in_progress);
    }
}

fn targets(gateway: &GatewayGauges) -> impl Iterator<Item = (&str, &crate::gauges::TargetGauges)> {
    let upstreams = gateway.upstreams.iter();
    upstreams.flat_map(|it| it.targets.iter().map(|target| (it.name.as_str(), target)))
}
