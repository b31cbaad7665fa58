//! The rules file of a fleet: for each scenario its limit, its strict twin, and the callers' own limits.

use std::fmt::Write as _;

use crate::scenario::{Algorithm, Consistency, Interface, LimitSpec, Scenario};

/// The domain of all requests.
pub const DOMAIN: &str = "fleet";

/// The key of a scenario's limit, or of its twin.
pub fn key(scenario: usize, is_twin: bool) -> String {
    let twin = if is_twin { "strict" } else { "judged" };
    format!("{twin}_{scenario}")
}

/// The key of the limit that each caller has by itself.
pub fn own_key(scenario: usize, is_twin: bool) -> String {
    format!("{}_own", key(scenario, is_twin))
}

/// The key of a further limit of the same request.
pub fn further_key(scenario: usize, is_twin: bool, place: usize) -> String {
    format!("{}_also_{place}", key(scenario, is_twin))
}

/// Writes the rules; `charging` is that of the domain, if not the default.
pub fn write(scenarios: &[Scenario], charging: Option<&str>) -> String {
    let charging = charging.map(|how| format!("charging: {how}\n"));
    let charging = charging.unwrap_or_default();
    let mut text = format!("domain: {DOMAIN}\n{charging}descriptors:\n");
    for (number, scenario) in scenarios.iter().enumerate() {
        for is_twin in [false, true] {
            if is_twin && !scenario.twin {
                continue;
            }
            let consistency = if is_twin {
                Consistency::Strict
            } else {
                scenario.consistency
            };
            let mut limit = scenario.limit.clone();
            if scenario.by == Interface::GrpcOverride {
                limit.limit *= 2;
            }
            write_rule(&mut text, &key(number, is_twin), &limit, consistency);
            if let Some(own) = &scenario.own_limit {
                write_rule(&mut text, &own_key(number, is_twin), own, consistency);
            }
            for (place, limit) in scenario.also.iter().enumerate() {
                let key = further_key(number, is_twin, place);
                write_rule(&mut text, &key, limit, consistency);
            }
        }
    }
    text
}

fn write_rule(text: &mut String, key: &str, limit: &LimitSpec, consistency: Consistency) {
    let _ = writeln!(text, "  - key: {key}");
    if let Some(mode) = &limit.mode {
        let _ = writeln!(text, "    {mode}_mode: true");
    }
    let _ = writeln!(text, "    rate_limit:");
    let mut field = |name: &str, value: &str| {
        let _ = writeln!(text, "      {name}: {value}");
    };
    field("limit", &limit.limit.to_string());
    field("window", &format!("{}ms", limit.window() / 1_000));
    field("algorithm", algorithm(limit.algorithm));
    if limit.algorithm == Algorithm::IntervalBucket {
        field("refill", "interval");
    }
    // The default is named as well where it is not `leased`: a twin must be strict.
    if consistency != Consistency::Leased {
        field("consistency", consistency.name());
    }
    if let Some(burst) = limit.burst {
        field("burst", &burst.to_string());
    }
    if let Some(parts) = limit.sub_windows {
        field("sub_windows", &parts.to_string());
    }
    if let Some(on_failure) = &limit.on_failure {
        field("on_failure", on_failure);
    }
}

fn algorithm(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::FixedWindow => "fixed_window",
        Algorithm::IntervalBucket | Algorithm::TokenBucket => "token_bucket",
        Algorithm::LeakyBucket => "leaky_bucket",
        Algorithm::SlidingLog => "sliding_log",
        Algorithm::SlidingCounter => "sliding_counter",
    }
}
