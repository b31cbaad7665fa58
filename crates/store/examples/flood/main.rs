//! Floods a store with invented keys, for each algorithm, once asked for once and once driven over the limit, and
//! prints a verdict: `flood KEYS MEBIBYTES RATE [NAME]`. Time is simulated; `scripts/attack` runs it.

#![expect(clippy::print_stdout, reason = "the verdict is what it is for")]

mod attack;

use std::env;
use std::process::ExitCode;

use attack::{Attack, HONEST_CALLERS, Target};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let number = |index: usize| arguments.get(index)?.parse::<u64>().ok();
    let (Some(keys), Some(mebibytes), Some(rate)) = (number(0), number(1), number(2)) else {
        println!("flood KEYS MEBIBYTES REQUESTS_PER_SECOND [NAME]");
        return ExitCode::from(2);
    };
    let name = arguments.get(3).map(String::as_str);
    let mut is_held = true;
    println!(
        "| limit | requests per key | offender | greedy | honest | memory | exact after | on_full | verdict |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for target in Target::all() {
        if name.is_some_and(|name| name != target.name) {
            continue;
        }
        for requests_per_key in [1, target.to_be_denied()] {
            let outcome = target.attack(Attack {
                keys,
                requests_per_key,
                rounds: 1,
                rate,
                max_memory: usize::try_from(mebibytes << 20).unwrap_or(usize::MAX),
            });
            println!(
                "| {} | {requests_per_key} | {} | {} of {} | {} of {HONEST_CALLERS} | {} of {} | {} | {} | {} |",
                target.name,
                outcome.offender,
                outcome.greedy,
                outcome.quota,
                outcome.honest,
                outcome.stats.used_bytes,
                outcome.stats.max_bytes,
                if outcome.inexact.is_empty() {
                    "yes".to_owned()
                } else {
                    outcome.inexact.join(", ")
                },
                outcome.stats.untracked,
                if outcome.is_held() {
                    "held"
                } else {
                    "NOT HELD"
                },
            );
            is_held &= outcome.is_held();
        }
    }
    if is_held {
        println!("\nheld: no flood switched a limit off");
        ExitCode::SUCCESS
    } else {
        println!("\nNOT HELD");
        ExitCode::FAILURE
    }
}
