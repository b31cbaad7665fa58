//! What is decided from memory allocates nothing, refusals included.

#[path = "../examples/decisions/workload.rs"]
mod workload;

use allocation_counter::measure;
use workload::{Workload, decide};

#[track_caller]
fn check(name: &str, is_admitted: bool) {
    let workload = Workload::named(name).expect("a workload");
    workload.warm_up();
    let allocated = measure(|| {
        for _ in 0..100 {
            assert_eq!(decide(&workload), is_admitted, "{name}");
        }
    });
    assert_eq!(allocated.count_total, 0, "allocations in 100 of {name}");
}

#[test]
fn a_decision_from_memory_allocates_nothing() {
    check("node", true);
    check("leased", true);
    check("several", true);
}

#[test]
fn a_remembered_refusal_allocates_nothing() {
    check("refused", false);
}

/// A counter that counts nothing would prove nothing.
#[test]
fn the_counter_counts() {
    let boxed = measure(|| drop(std::hint::black_box(Box::new(1))));
    assert_eq!(boxed.count_total, 1);
}
