//! Checks one hot key as often as asked, and says how many passed: `checks user_id 1000`. The test of
//! the instruction count runs it under callgrind.

mod workload;

use std::env;
use std::hint::black_box;
use std::process::ExitCode;

use tidegate_limiter::{Descriptor, Limiter};
use tidegate_store::{EmbeddedStore, StoreConfig};

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let [key, n_checks] = args.as_slice() else {
        return usage();
    };
    let Ok(n_checks) = n_checks.parse::<u64>() else {
        return usage();
    };
    let limiter = workload::limiter(EmbeddedStore::new(StoreConfig::default()));
    let entries = workload::entries(key, "8c1f0b6e-3f59-4c1e-9d59-1c0b7f5a2e44");
    let descriptors = [Descriptor::new(&entries)];
    // The first one makes the counter.
    check_repeatedly(&limiter, &descriptors, 1);
    let n_passed = check_repeatedly(&limiter, &descriptors, n_checks);
    println!("{n_passed} of {n_checks} passed");
    ExitCode::SUCCESS
}

/// What is measured: the tool counts from entering this function until it returns.
#[inline(never)]
fn check_repeatedly(
    limiter: &Limiter<EmbeddedStore>,
    descriptors: &[Descriptor<'_>],
    n_checks: u64,
) -> usize {
    let passes = |_: &u64| {
        let verdict = limiter.check_now(black_box("api"), black_box(descriptors), 1);
        matches!(&verdict, Ok(verdict) if verdict.is_allowed())
    };
    (0..n_checks).filter(passes).count()
}

fn usage() -> ExitCode {
    eprintln!("usage: checks user_id|path|remote_address NUMBER");
    ExitCode::from(2)
}
