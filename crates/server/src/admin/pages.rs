//! The pages beside the API: for people, probes and scrapers.

use std::fmt::Write;

use hyper::StatusCode;
use serde::Serialize;
use tidegate_limiter::report::StoreHealth;
use tidegate_limiter::{RuleSet, Store};
use tidegate_observe::{FailedReloads, Gauges, ReloadSubject, StateGauges};
use tidegate_rules::{Domain, Rule, RuleMode};

use super::Admin;
use super::reply::{self, Reply};
use super::route::ROUTES;
use crate::answer;
use crate::drain::{Drain, Health};

/// Whether requests may be sent here.
#[derive(Debug, Serialize)]
struct Readiness {
    ready: bool,
    /// Why not.
    reasons: Vec<&'static str>,
    /// Whether the store fails: requests are answered all the same.
    degraded: bool,
    /// Whether this node enforces whole limits meanwhile, because it does not know the number of members.
    unshared: bool,
    /// Faults that keep no request from its answer, each with what to do about it.
    warnings: Vec<&'static str>,
}

/// The names of the files and their faults are for operators; a probe needs no token.
const RULES_FAILED: &str = "the last reload of the rules failed, and the rules before it stay in force: \
    GET /api/v1/reload and the log name the faults; mend them, and the rules are read again";
const SETTINGS_FAILED: &str = "the last reload of the settings failed, and the settings before it stay in \
    force: the log names the faults; mend them, and the settings are read again";

/// What there is.
pub(super) fn index() -> Reply {
    let mut page = String::from(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>tidegate</title>\
         <h1>tidegate</h1><table>\n",
    );
    for route in ROUTES {
        let (method, path, purpose) = (&route.method, route.path, route.purpose);
        let path = if *method == hyper::Method::GET {
            format!("<a href=\"{path}\">{path}</a>")
        } else {
            path.to_owned()
        };
        // Writing to a string cannot fail.
        let _ = writeln!(page, "<tr><td>{method}<td>{path}<td>{purpose}");
    }
    page.push_str("</table></html>\n");
    reply::with(StatusCode::OK, reply::HTML, page)
}

/// For load balancers.
pub(super) fn health(drain: &Drain, store: StoreHealth) -> Reply {
    let (status, text) = answer::health_words(drain.health(), store);
    reply::with(status, reply::TEXT, text)
}

/// For orchestrators.
pub(super) fn ready<S: Store>(admin: &Admin<S>, drain: &Drain) -> Reply {
    let store = admin.limiter.store().health();
    let mut reasons = Vec::new();
    if drain.health() == Health::Draining {
        reasons.push("the server drains");
    }
    if admin.limiter.rules().domains().next().is_none() {
        reasons.push("no rules are loaded");
    }
    let ready = reasons.is_empty();
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let readiness = Readiness {
        ready,
        reasons,
        degraded: store != StoreHealth::Whole,
        unshared: store == StoreHealth::Unshared,
        warnings: warnings(admin.observatory.failed_reloads()),
    };
    reply::json_as(status, reply::JSON, &readiness)
}

fn warnings(failed: FailedReloads) -> Vec<&'static str> {
    let all = [
        (ReloadSubject::Rules, RULES_FAILED),
        (ReloadSubject::Settings, SETTINGS_FAILED),
    ];
    let is_failed = |(subject, _): &(ReloadSubject, _)| failed.contains(*subject);
    let failed = all.into_iter().filter(is_failed);
    failed.map(|(_, warning)| warning).collect()
}

/// For Prometheus.
pub(super) fn metrics<S: Store>(admin: &Admin<S>) -> Reply {
    let gauges = Gauges {
        rules: u64::try_from(admin.limiter.rules().rules().count()).unwrap_or(u64::MAX),
        store: admin.limiter.store().report(),
        gateway: admin.gateway.as_ref().map(|gateway| gateway.gauges()),
        state: admin.hooks.state().map(|state| StateGauges {
            written_at: state.written_at,
            bytes: state.bytes,
            failures: state.failures,
        }),
    };
    let page = admin.observatory.prometheus(&gauges);
    reply::with(StatusCode::OK, reply::METRICS, page)
}

/// For who knows envoyproxy/ratelimit.
pub(super) fn stats<S: Store>(admin: &Admin<S>) -> Reply {
    let page = admin.observatory.reference_stats();
    reply::with(StatusCode::OK, reply::TEXT, page)
}

/// The rules in force, a limit to a line.
pub(super) fn rules_text(rules: &RuleSet) -> Reply {
    let mut page = String::new();
    for domain in rules.domains() {
        for rule in domain.rules() {
            describe(domain, rule, &mut page);
        }
    }
    reply::with(StatusCode::OK, reply::TEXT, page)
}

fn describe(domain: &Domain, rule: &Rule, page: &mut String) {
    let mode = match rule.mode() {
        RuleMode::Enforce => "",
        RuleMode::Quota => ", quota mode",
        RuleMode::Shadow => ", shadow mode",
    };
    let place = rule.location();
    let mut line = |what: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(
            page,
            "{} | {}: {what}{mode} ({}:{})",
            // A path is escaped already; a domain with a line break would pass for several limits.
            domain.name().escape_debug(),
            rule.path(),
            place.file,
            place.line
        );
    };
    if rule.limits().is_empty() {
        line("no limit");
    }
    for limit in rule.limits() {
        line(limit.description());
    }
}
