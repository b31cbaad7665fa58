//! A check allocates nothing: neither the match in 200 rules on three levels, nor the key, nor the
//! decision, nor the verdict, for up to eight limits in a request.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../examples/checks/workload.rs"]
mod workload;

use allocation_counter::measure;
use tidegate_limiter::{Descriptor, Entry, Hits, Limiter, Verdict};
use tidegate_store::{EmbeddedStore, StoreConfig};

const USER: &str = "8c1f0b6e-3f59-4c1e-9d59-1c0b7f5a2e44";

fn limiter() -> Limiter<EmbeddedStore> {
    workload::limiter(EmbeddedStore::new(StoreConfig {
        max_memory: 8 << 20,
    }))
}

/// Checks the request twice, so that its counters exist, and counts what further checks allocate.
#[track_caller]
fn check(domain: &str, descriptors: &[Descriptor<'_>], n_limits: usize, is_allowed: bool) {
    let limiter = limiter();
    let judge = || -> Verdict { limiter.check_now(domain, descriptors, 1).unwrap() };
    judge();
    let verdict = judge();
    assert_eq!(
        (verdict.limits().len(), verdict.is_allowed()),
        (n_limits, is_allowed)
    );
    let allocated = measure(|| {
        for _ in 0..100 {
            let verdict = judge();
            assert_eq!(verdict.statuses().len(), descriptors.len());
            assert_eq!(verdict.deciding().is_some(), n_limits > 0);
        }
    });
    assert_eq!(
        allocated.count_total, 0,
        "allocations in 100 checks of {descriptors:?}"
    );
}

fn check_one(entries: &[Entry<'_>], n_limits: usize, is_allowed: bool) {
    check("api", &[Descriptor::new(entries)], n_limits, is_allowed);
}

#[test]
fn one_descriptor_allocates_nothing() {
    check_one(&workload::entries("user_id", USER), 1, true);
    check_one(&workload::entries("path", "/v1/search?q=tide"), 1, true);
    check_one(&workload::entries("remote_address", "203.0.113.7"), 2, true);
    check_one(&workload::entries("unknown", "x"), 0, true);
}

#[test]
fn a_refusal_allocates_nothing() {
    check_one(&workload::entries("path", "/v1/login"), 1, false);
}

#[test]
fn an_unknown_domain_allocates_nothing() {
    check(
        "unheard_of",
        &[Descriptor::new(&workload::entries("user_id", USER))],
        0,
        true,
    );
}

#[test]
fn eight_limits_allocate_nothing() {
    let addresses = ["203.0.113.7", "203.0.113.8", "203.0.113.9", "203.0.113.10"];
    let entries = addresses.map(|address| workload::entries("remote_address", address));
    let descriptors = entries.each_ref().map(|entries| Descriptor::new(entries));
    check("api", &descriptors, 8, true);
}

#[test]
fn looks_and_refunds_allocate_nothing() {
    let entries = workload::entries("user_id", USER);
    for hits in [Hits::Take(0), Hits::Refund(1)] {
        let descriptor = Descriptor {
            hits,
            ..Descriptor::new(&entries)
        };
        let limiter = limiter();
        let judge = || {
            limiter
                .check_now("api", &[descriptor], 1)
                .unwrap()
                .is_allowed()
        };
        assert!(judge());
        assert_eq!(measure(|| assert!(judge())).count_total, 0, "{hits:?}");
    }
}

/// A counter that counts nothing would prove nothing.
#[test]
fn the_counter_counts() {
    assert_eq!(
        measure(|| drop(std::hint::black_box(Box::new(1)))).count_total,
        1
    );
}
