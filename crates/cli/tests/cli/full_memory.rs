//! A server whose memory for counters is full, seen from outside.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::faults::page::Page;
use crate::program::scratch;
use crate::server::Server;

/// The log of one caller is larger than the smallest memory, so that no pause of the machine lets it fit.
const RULES: &str = "domain: shop\ndescriptors:\n  - key: user_id\n    rate_limit: {unit: year, requests_per_unit: \
                     240000, algorithm: sliding_log}\n";

/// The part of that limit that one request costs.
const COST: u32 = 60_000;

/// Asks for a caller, and returns true if it is allowed.
fn is_allowed(server: &Server, caller: u32) -> bool {
    let entries = format!(r#"[{{"key": "user_id", "value": "{caller}"}}]"#);
    let descriptor = format!(r#"{{"entries": {entries}, "hitsAddend": {COST}}}"#);
    let answer = server.ask(&format!(
        r#"{{"domain": "shop", "descriptors": [{descriptor}]}}"#
    ));
    let status = answer.split(' ').nth(1);
    assert!(matches!(status, Some("200" | "429")), "{answer}");
    status == Some("200")
}

fn metrics(server: &Server) -> Page {
    Page::new(server.operate("GET /metrics", ""))
}

/// The metrics that the line about full memory in the table of alarms names.
fn metrics_of_alarm() -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/failure.md");
    let text = fs::read_to_string(path).unwrap();
    let line = text
        .lines()
        .find(|line| line.starts_with("| `tidegate_store_full"));
    let (alarm, _) = line.unwrap()[2..].split_once(" | ").unwrap();
    let names = alarm.split(|part: char| part != '_' && !part.is_ascii_alphanumeric());
    names
        .filter(|name| name.starts_with("tidegate_"))
        .map(ToOwned::to_owned)
        .collect()
}

/// A flood of callers fills the memory. Then `on_full` decides, which the log, the health and the metrics of the alarm
/// say, and every caller is limited all the same.
#[test]
fn a_flood_that_fills_the_memory_is_seen_and_limited() {
    let rules = scratch("full_memory").join("rules.yaml");
    fs::write(&rules, RULES).unwrap();
    let args = ["--max-memory", "1MiB", "--rules", rules.to_str().unwrap()];
    let mut server = Server::start(&args);
    let alarm = metrics_of_alarm();
    assert_eq!(alarm.len(), 2, "{alarm:?}");
    let page = metrics(&server);
    for name in &alarm {
        assert_eq!(page.values(name, "").collect::<Vec<_>>(), ["0"], "{name}");
    }
    assert!(server.operate("GET /healthcheck", "").ends_with("OK"));

    for caller in 0..8 {
        let allowed = (0..10).filter(|_| is_allowed(&server, caller)).count();
        // At most twice its quota: once in its own counter and once in a shared one.
        assert!(allowed <= 8, "{allowed}");
    }

    let line = server.next_line("memory for counters is full");
    assert!(line.contains("decided.count="), "{line}");
    let health = server.operate("GET /healthcheck", "");
    assert!(
        health.contains("degraded: memory for counters is full"),
        "{health}"
    );
    let page = metrics(&server);
    assert_eq!(page.sum("tidegate_store_full", ""), 1);
    for name in &alarm {
        assert!(page.sum(name, "") > 0, "{name}");
    }
    // One line for many requests.
    let decided = page.sum("tidegate_store_untracked_total", "");
    let others = server.end();
    let others = others.iter().filter(|line| line.contains("is full"));
    assert!(others.count() as u64 + 1 < decided, "{decided}");
}
