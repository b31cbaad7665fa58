//! The page of metrics, and the table of them in the documents.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use tidegate_limiter::report::{
    Breaker, CallErrors, EventualReport, Latencies, RegionReport, ServerInfo, ServerReport,
    SharingReport, StandbyReport, StoreReport,
};
use tidegate_observe::{
    GatewayGauges, Gauges, MetricNames, ObserveConfig, Protocol, ReloadSubject, StateGauges,
    TargetGauges, UpstreamGauges,
};
use tidegate_store::StoreStats;

use crate::fixture::watched;

const YAML: &str = "
domain: test
descriptors:
  - key: 'a\"b'
    rate_limit: { unit: minute, requests_per_unit: 1 }
";

fn gauges() -> Gauges {
    Gauges {
        rules: 1,
        gateway: Some(GatewayGauges {
            responses: vec![("upstream", [0, 5, 0, 1, 0]), ("gateway", [0; 5])],
            upstreams: vec![UpstreamGauges {
                name: "api".to_owned(),
                requests: 6,
                failures: vec![("broken", 2)],
                targets: vec![TargetGauges {
                    name: "http://127.0.0.1:9000".to_owned(),
                    is_up: true,
                    in_progress: 1,
                }],
                ..UpstreamGauges::default()
            }],
        }),
        store: StoreReport {
            memory: StoreStats {
                used_bytes: 10,
                max_bytes: 20,
                evicted: 3,
                untracked: 4,
                unfolded: 5,
                is_full: true,
            },
            servers: vec![server("127.0.0.1:1")],
            regions: vec![RegionReport {
                name: "us".into(),
                servers: vec![server("127.0.0.2:1"), ServerReport::default()],
            }],
            disagreements: 1,
            sharing: Some(SharingReport {
                members: 5,
                eventual: EventualReport {
                    is_full: true,
                    ..EventualReport::default()
                },
                standby: StandbyReport {
                    requests: 8,
                    refused: 2,
                    divided_by: 5,
                    ..StandbyReport::default()
                },
                ..SharingReport::default()
            }),
            ..StoreReport::default()
        },
        state: Some(StateGauges {
            written_at: Some(Duration::from_secs(50)),
            bytes: 6,
            failures: 7,
        }),
    }
}

fn server(address: &str) -> ServerReport {
    let mut latencies = Latencies::default();
    latencies.buckets[6] = 9;
    ServerReport {
        address: address.into(),
        breaker: Breaker::Open,
        calls: 11,
        errors: CallErrors {
            timeout: 12,
            ..CallErrors::default()
        },
        latencies,
        info: Some(ServerInfo {
            used_memory: 13,
            cpu: Duration::from_millis(1_500),
            ..ServerInfo::default()
        }),
        ..ServerReport::default()
    }
}

/// A page with all metrics there are.
fn page() -> String {
    let config = ObserveConfig {
        names: MetricNames::WithReference,
        ..ObserveConfig::default()
    };
    let watched = watched(YAML, config);
    watched.ask(&[("a\"b", "client's own")], 1);
    watched.ask(&[("a\"b", "client's own")], 1);
    watched.observatory.reloaded(Some(17));
    watched.observatory.reload_failed(ReloadSubject::Rules);
    let open = watched.recorder.opened(Protocol::Grpc);
    drop(watched.recorder.opened(Protocol::Grpc));
    let page = watched.observatory.prometheus(&gauges());
    drop(open);
    page
}

fn names_on_the_page() -> BTreeSet<String> {
    let page = page();
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types.map(|line| line.replace(' ', " | ")).collect()
}

#[test]
fn shows_what_was_counted() {
    let page = page();
    for line in [
        "tidegate_decisions_total{outcome=\"allowed\"} 1",
        "tidegate_decisions_total{outcome=\"refused\"} 1",
        "tidegate_decision_duration_seconds_bucket{le=\"0.0000005\"} 0",
        "tidegate_decision_duration_seconds_bucket{le=\"0.000001\"} 2",
        "tidegate_decision_duration_seconds_sum 0.000001400",
        "tidegate_rule_requests_total{domain=\"test\",rule=\"a\\\"b\",outcome=\"refused\"} 1",
        "tidegate_rule_hits_total{domain=\"test\",rule=\"a\\\"b\"} 2",
        "tidegate_reloads_total{result=\"success\"} 1",
        "tidegate_reloads_total{result=\"failure\"} 1",
        "tidegate_last_reload_successful{subject=\"rules\"} 0",
        "tidegate_last_reload_successful{subject=\"settings\"} 1",
        "tidegate_rules 1",
        "tidegate_connections{protocol=\"grpc\"} 1",
        "tidegate_connections_opened_total{protocol=\"grpc\"} 2",
        "tidegate_store_used_bytes 10",
        "tidegate_store_untracked_total 4",
        "tidegate_store_unfolded_total 5",
        "tidegate_store_full 1",
        "tidegate_state_bytes 6",
        "tidegate_state_write_failures_total 7",
        "tidegate_store_degraded 1",
        "tidegate_store_servers 1",
        "tidegate_store_disagreements_total 1",
        "tidegate_store_breaker{server=\"127.0.0.1:1\",state=\"closed\"} 0",
        "tidegate_store_breaker{server=\"127.0.0.1:1\",state=\"open\"} 1",
        "tidegate_store_calls_total{server=\"127.0.0.1:1\"} 11",
        "tidegate_store_call_errors_total{server=\"127.0.0.1:1\",kind=\"timeout\"} 12",
        "tidegate_store_call_duration_seconds_bucket{server=\"127.0.0.1:1\",le=\"0.000064\"} 9",
        "tidegate_store_call_duration_seconds_count{server=\"127.0.0.1:1\"} 9",
        "tidegate_redis_used_memory_bytes{server=\"127.0.0.1:1\"} 13",
        "tidegate_redis_cpu_seconds_total{server=\"127.0.0.1:1\"} 1.500000000",
        "tidegate_members 5",
        "tidegate_eventual_full 1",
        "tidegate_standby_requests_total{outcome=\"allowed\"} 6",
        "tidegate_standby_divisor 5",
        "tidegate_region_reached{region=\"us\"} 0",
        "tidegate_region_call_errors_total{region=\"us\"} 12",
        "ratelimit_service_total_requests{grpc_method=\"ShouldRateLimit\"} 2",
    ] {
        assert!(page.lines().any(|it| it == line), "no {line} in {page}");
    }
}

#[test]
fn a_memory_store_has_no_servers_to_tell_of() {
    let watched = watched(YAML, ObserveConfig::default());
    let page = watched.observatory.prometheus(&Gauges::default());
    assert!(page.contains("tidegate_store_degraded 0"));
    for prefix in [
        "tidegate_store_breaker",
        "tidegate_redis",
        "tidegate_members",
        "tidegate_region",
    ] {
        assert!(!page.contains(prefix), "{prefix}");
    }
}

#[test]
fn the_servers_shown_are_bounded() {
    let mut gauges = gauges();
    let name = |index| server(&format!("10.0.0.{index}:6379"));
    gauges.store.servers = (0..500).map(name).collect();
    let watched = watched(YAML, ObserveConfig::default());
    let page = watched.observatory.prometheus(&gauges);
    assert_eq!(page.matches("tidegate_store_calls_total{").count(), 128);
    assert!(page.contains("tidegate_store_servers 500"));
}

#[test]
fn no_word_of_a_client_is_on_the_page() {
    assert!(!page().contains("client"));
}

#[test]
fn every_series_is_of_a_metric_that_was_introduced() {
    let page = page();
    let mut current = "";
    for line in page.lines() {
        if let Some(introduced) = line.strip_prefix("# TYPE ") {
            current = introduced.split(' ').next().unwrap();
        } else if !line.starts_with('#') {
            let name = line.split(['{', ' ']).next().unwrap();
            let rest = name
                .strip_prefix(current)
                .unwrap_or_else(|| panic!("{line}"));
            assert!(["", "_bucket", "_sum", "_count"].contains(&rest), "{line}");
            let value = line.rsplit(' ').next().unwrap();
            value.parse::<f64>().unwrap();
        }
    }
}

#[test]
fn the_documents_list_every_metric_and_no_other() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let text = fs::read_to_string(path).unwrap();
    let row = |line: &str| {
        let line = line.strip_prefix("| `")?;
        let (name, rest) = line.split_once('`')?;
        let kind = rest.split('|').nth(1)?.trim();
        ["counter", "gauge", "histogram"]
            .contains(&kind)
            .then(|| format!("{name} | {kind}"))
    };
    let listed: BTreeSet<String> = text.lines().filter_map(row).collect();
    assert_eq!(listed, names_on_the_page());
}
