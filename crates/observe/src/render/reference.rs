//! The names of envoyproxy/ratelimit, for dashboards that know them.
//!
//! On the page of metrics they are those that its default mapping for Prometheus makes, with the
//! labels `domain`, `key1` and `key2`; rules on deeper levels are added to their ancestor on the second.
//! A dot within a name does not move the labels.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::Ipv4Addr;

use super::MetricsSnapshot;
use super::family::Family;
use super::page::{Label, Page};
use crate::MetricNames;
use crate::counts::Counts;

const TOTAL_HITS: Family = Family::counter(
    "ratelimit_service_rate_limit_total_hits",
    "Hits that were asked of a rule.",
);
const OVER_LIMIT: Family = Family::counter(
    "ratelimit_service_rate_limit_over_limit",
    "Hits above the limit of a rule.",
);
const NEAR_LIMIT: Family = Family::counter(
    "ratelimit_service_rate_limit_near_limit",
    "Hits above the near ratio of a rule and up to its limit.",
);
const WITHIN_LIMIT: Family = Family::counter(
    "ratelimit_service_rate_limit_within_limit",
    "Hits of requests that a rule admitted.",
);
const SHADOW_MODE: Family = Family::counter(
    "ratelimit_service_rate_limit_shadow_mode",
    "Hits of requests that a rule in shadow mode would have refused.",
);
const ERRORS: Family = Family::counter(
    "ratelimit_service_should_rate_limit_error",
    "Requests that the store could not decide (redis_error) or that made no sense (service_error).",
);
const TOTAL_REQUESTS: Family = Family::counter(
    "ratelimit_service_total_requests",
    "Requests, over gRPC and HTTP.",
);
const RESPONSE_TIME: Family = Family::histogram(
    "ratelimit_service_response_time_seconds",
    "How long it took to judge a request.",
);
const LOAD_SUCCESS: Family = Family::counter(
    "ratelimit_service_config_load_success",
    "Rule sets that were put in force.",
);
const LOAD_ERROR: Family = Family::counter(
    "ratelimit_service_config_load_error",
    "Rule sets that were refused.",
);

/// The one method there is.
const METHOD: Label<'static> = ("grpc_method", "ShouldRateLimit");

/// A counter of rules: its metric, its name in the path of a stat, and where it is found.
type RuleStat = (Family, &'static str, fn(&Counts) -> u64);

const RULE_STATS: [RuleStat; 5] = [
    (TOTAL_HITS, "total_hits", |counts| counts.own.hits),
    (OVER_LIMIT, "over_limit", |counts| {
        counts.reference.over_limit
    }),
    (NEAR_LIMIT, "near_limit", |counts| {
        counts.reference.near_limit
    }),
    (WITHIN_LIMIT, "within_limit", |counts| {
        counts.reference.within_limit
    }),
    (SHADOW_MODE, "shadow_mode", |counts| {
        counts.reference.shadow_mode
    }),
];

/// The labels that the reference has for a rule: domain, first key, second key if there is one.
type Labels<'a> = (&'a str, String, Option<String>);

/// The page of metrics.
pub(crate) fn page(snapshot: &MetricsSnapshot) -> String {
    let mut page = Page::default();
    let mut rules: BTreeMap<Labels<'_>, Counts> = BTreeMap::new();
    for ((domain, path), counts) in &snapshot.rules.by_name {
        *rules.entry(labels(domain, path)).or_default() += *counts;
    }
    for (family, _, value) in &RULE_STATS {
        let mut series = page.family(family);
        for ((domain, key1, key2), counts) in &rules {
            let mut labels = vec![("domain", *domain), ("key1", key1.as_str())];
            labels.extend(key2.as_deref().map(|key2| ("key2", key2)));
            series.add(&labels, value(counts));
        }
    }
    let mut series = page.family(&ERRORS);
    series.add(
        &[("err_type", "redis_error")],
        snapshot.totals.store_failures,
    );
    series.add(&[("err_type", "service_error")], snapshot.totals.rejected);
    page.family(&TOTAL_REQUESTS)
        .add(&[METHOD], requests(snapshot));
    page.times(&RESPONSE_TIME, &[METHOD], &snapshot.times);
    page.single(&LOAD_SUCCESS, snapshot.totals.reloads);
    page.single(&LOAD_ERROR, snapshot.totals.failed_reloads);
    page.into_text()
}

/// The counters as the reference's own page of them has it, sorted by name. Those of rules are left out
/// where nobody counts by these names.
pub(crate) fn stats(snapshot: &MetricsSnapshot, names: MetricNames) -> String {
    let totals = &snapshot.totals;
    let mut stats: BTreeMap<String, u64> = BTreeMap::new();
    let call = "ratelimit.service.call.should_rate_limit";
    stats.insert(format!("{call}.redis_error"), totals.store_failures);
    stats.insert(format!("{call}.service_error"), totals.rejected);
    let service = "ratelimit.service";
    stats.insert(format!("{service}.config_load_success"), totals.reloads);
    stats.insert(
        format!("{service}.config_load_error"),
        totals.failed_reloads,
    );
    stats.insert(format!("{service}.global_shadow_mode"), totals.shadowed);
    let method = "ratelimit_server.ShouldRateLimit";
    stats.insert(format!("{method}.total_requests"), requests(snapshot));
    let rules = match names {
        MetricNames::Own => None,
        MetricNames::WithReference => Some(&snapshot.rules.by_name),
    };
    for ((domain, path), counts) in rules.into_iter().flatten() {
        let keys: Vec<String> = levels(path).collect();
        let rule = format!("{service}.rate_limit.{}.{}", clean(domain), keys.join("."));
        for (_, name, value) in &RULE_STATS {
            *stats.entry(format!("{rule}.{name}")).or_default() += value(counts);
        }
    }
    let mut text = String::new();
    for (name, value) in stats {
        // A string takes all that is written.
        let _ = writeln!(text, "{name}: {value}");
    }
    text
}

fn requests(snapshot: &MetricsSnapshot) -> u64 {
    let judged = snapshot.answered.iter().copied().fold(0, u64::wrapping_add);
    judged.wrapping_add(snapshot.totals.rejected)
}

fn labels<'a>(domain: &'a str, path: &str) -> Labels<'a> {
    let mut levels = levels(path);
    let key1 = levels.next().unwrap_or_default();
    (domain, key1, levels.next())
}

/// The levels of a path, as the reference writes them: `key` or `key_value`.
fn levels(path: &str) -> impl Iterator<Item = String> {
    path.split(" > ").map(|level| match level.split_once('=') {
        Some((key, value)) => clean(&format!("{key}_{value}")),
        None => clean(level),
    })
}

/// Colons and bars are replaced, and the dots of IPv4 addresses.
fn clean(text: &str) -> String {
    let is_of_address = |character: char| character.is_ascii_digit() || character == '.';
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|character| !is_of_address(character));
        let (run, after) = rest.split_at(end.unwrap_or(rest.len()));
        if run.parse::<Ipv4Addr>().is_ok() {
            clean.push_str(&run.replace('.', "_"));
        } else {
            clean.push_str(run);
        }
        rest = after;
        if run.is_empty() {
            clean.push(if matches!(first, ':' | '|') {
                '_'
            } else {
                first
            });
            rest = &rest[first.len_utf8()..];
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: &[&str]) {
        let levels: Vec<String> = levels(path).collect();
        assert_eq!(levels, expected);
    }

    #[test]
    fn levels_are_named_as_the_reference_names_them() {
        check("user_id", &["user_id"]);
        check("user_id > plan=free", &["user_id", "plan_free"]);
        check("path=/a:b|c", &["path_/a_b_c"]);
        check("ip=10.1.2.3", &["ip_10_1_2_3"]);
        check("host=a.example > v=1.2", &["host_a.example", "v_1.2"]);
        check("q=a=b", &["q_a=b"]);
    }
}
