//! Checks one hot key as often as asked, and says how many passed: `checks 1000`. The test of the
//! instruction count runs it under callgrind.

mod workload;

use std::env;
use std::hint::black_box;
use std::process::ExitCode;

use tidegate_limiter::Descriptor;
use tidegate_store::{EmbeddedStore, StoreConfig};

fn main() -> ExitCode {
    let Some(n_checks) = env::args().nth(1).and_then(|text| text.parse().ok()) else {
        eprintln!("usage: checks NUMBER");
        return ExitCode::from(2);
    };
    let limiter = workload::limiter(EmbeddedStore::new(StoreConfig::default()));
    let entries = workload::entries("user_id", "8c1f0b6e-3f59-4c1e-9d59-1c0b7f5a2e44");
    let descriptors = [Descriptor::new(&entries)];
    let passes = |_: &u64| {
        let verdict = limiter.check_now(black_box("api"), black_box(&descriptors), 1);
        verdict.is_ok_and(|verdict| verdict.is_allowed())
    };
    println!(
        "{} of {n_checks} passed",
        (0..n_checks).filter(passes).count()
    );
    ExitCode::SUCCESS
}
