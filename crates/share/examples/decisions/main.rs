//! Decides one hot key as often as asked, and says how many were admitted: `decisions leased 1000`. The
//! test of the instruction count runs it under callgrind.

mod workload;

use std::env;
use std::hint::black_box;
use std::process::ExitCode;

use workload::{Workload, decide};

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let [kind, n_decisions] = args.as_slice() else {
        return usage();
    };
    let (Some(workload), Ok(n_decisions)) = (Workload::named(kind), n_decisions.parse::<u64>())
    else {
        return usage();
    };
    workload.warm_up();
    let n_admitted = decide_repeatedly(&workload, n_decisions);
    println!("{n_admitted} of {n_decisions} admitted");
    ExitCode::SUCCESS
}

/// What is measured: the tool counts from entering this function until it returns.
#[inline(never)]
fn decide_repeatedly(workload: &Workload, n_decisions: u64) -> usize {
    let is_admitted = |_: &u64| decide(black_box(workload));
    (0..n_decisions).filter(is_admitted).count()
}

fn usage() -> ExitCode {
    eprintln!("usage: decisions node|strict|leased|refused|several NUMBER");
    ExitCode::from(2)
}
