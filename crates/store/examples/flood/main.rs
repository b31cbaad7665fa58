//! Floods a store with invented keys, in simulated time, and prints a verdict. `scripts/attack` runs it.
//!
//! - `flood keys KEYS MEBIBYTES RATE [NAME]`: ever new keys, once asked for once and once driven over the limit.
//! - `flood in-use MEBIBYTES [NAME]`: the same keys every second, up to more than there is room for.
//! - `flood mixed MEBIBYTES [NAME]`: keys of another limit than the callers', several limits in a request, `every_match`,
//!   and several threads.

#![expect(clippy::print_stdout, reason = "the verdict is what it is for")]

mod attack;
mod mixed;
mod target;

use std::env;
use std::process::ExitCode;

use attack::{Attack, HONEST_CALLERS, Outcome};
use mixed::{Mix, MixedAttack};
use target::Target;

const NOT_HELD: &str = "NOT HELD";

/// Floods by the part of the counters that a store has room for, in percent, and the requests of each key in a second. A
/// key is in use from its second request on, so two right after each other leave room for no other.
const FLOODS_IN_USE: [(u64, u64); 5] = [(90, 1), (95, 1), (100, 1), (110, 1), (110, 2)];

/// The largest part in use at which limits must hold. Above it, the table shows what others get.
const HARMLESS_PART: u64 = 90;

/// Seconds for which counters are kept in use.
const SECONDS_IN_USE: u64 = 12;

/// All kinds of mixed floods.
const MIXES: [Mix; 6] = [
    Mix::OtherLimit,
    Mix::OtherLimitDenied,
    Mix::SeveralLimits,
    Mix::SeveralLimitsEveryMatch,
    Mix::EveryMatch,
    Mix::Threads,
];

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let is_held = match arguments.as_slice() {
        ["keys", keys, mebibytes, rate, name @ ..] => numbers([keys, mebibytes, rate])
            .map(|[keys, mebibytes, rate]| flood_with_keys(keys, bytes(mebibytes), rate, name)),
        ["in-use", mebibytes, name @ ..] => {
            numbers([mebibytes]).map(|[mebibytes]| keep_in_use(bytes(mebibytes), name))
        }
        ["mixed", mebibytes, name @ ..] => {
            numbers([mebibytes]).map(|[mebibytes]| flood_mixed(mebibytes, name))
        }
        _ => None,
    };
    match is_held {
        Some(true) => {
            println!("\nheld");
            ExitCode::SUCCESS
        }
        Some(false) => {
            println!("\n{NOT_HELD}");
            ExitCode::FAILURE
        }
        None => {
            println!("flood keys KEYS MEBIBYTES REQUESTS_PER_SECOND [NAME]");
            println!("flood in-use MEBIBYTES [NAME]");
            println!("flood mixed MEBIBYTES [NAME]");
            ExitCode::from(2)
        }
    }
}

/// Floods with ever new keys, and says whether all limits held.
fn flood_with_keys(keys: u64, max_memory: usize, rate: u64, name: &[&str]) -> bool {
    let mut is_held = true;
    println!(
        "| limit | requests per key | offender | greedy | honest | memory | exact after | on_full | verdict |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for target in targets(name) {
        for requests_per_key in [1, target.to_be_denied()] {
            let attack = Attack {
                keys,
                requests_per_key,
                rounds: 1,
                rate,
                max_memory,
                threads: 1,
            };
            let outcome = attack.on(&target);
            let first = format!("{} | {requests_per_key}", target.name);
            let verdict = if outcome.is_held() { "held" } else { NOT_HELD };
            show(&first, &outcome, verdict);
            is_held &= outcome.is_held();
        }
    }
    is_held
}

/// Floods with keys that are each requested once a second, and says whether the offender stayed denied, and limits held
/// where the flood leaves room for other callers.
fn keep_in_use(max_memory: usize, name: &[&str]) -> bool {
    let mut is_held = true;
    println!(
        "| limit | requests in a second | part in use | offender | greedy | honest | memory | exact after | on_full | verdict |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for target in targets(name) {
        let most = target.most_in_use(max_memory);
        for (part, requests_per_key) in FLOODS_IN_USE {
            let keys = most * part / 100;
            let rate = keys * requests_per_key;
            let attack = Attack {
                keys,
                requests_per_key,
                rounds: SECONDS_IN_USE,
                rate,
                max_memory,
                threads: 1,
            };
            let outcome = attack.on(&target);
            let (is_right, verdict) = if part <= HARMLESS_PART {
                (outcome.is_held(), "held")
            } else {
                (
                    outcome.offender == 0 && outcome.is_bounded,
                    "offender denied",
                )
            };
            let first = format!("{} | {rate} | {part} %", target.name);
            show(&first, &outcome, if is_right { verdict } else { NOT_HELD });
            is_held &= is_right;
        }
    }
    is_held
}

/// Floods with keys of other limits, of several limits, and from several threads, and says whether all limits held.
fn flood_mixed(mebibytes: u64, name: &[&str]) -> bool {
    let mut is_held = true;
    println!(
        "| mix | flood | limit | offender | greedy | honest | memory | exact after | on_full | verdict |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for mixed in MIXES.into_iter().flat_map(|mix| mix.attacks(mebibytes)) {
        let MixedAttack {
            mix,
            attack,
            flood,
            target,
        } = mixed;
        if !name.is_empty() && !name.contains(&target.name) {
            continue;
        }
        let outcome = attack.by(&flood, &target);
        let first = format!("{mix:?} | {} | {}", flood.name, target.name);
        let verdict = if outcome.is_held() { "held" } else { NOT_HELD };
        show(&first, &outcome, verdict);
        is_held &= outcome.is_held();
    }
    is_held
}

fn show(first: &str, outcome: &Outcome, verdict: &str) {
    println!(
        "| {first} | {} | {} of {} | {} of {HONEST_CALLERS} | {} of {} | {} | {} | {} |",
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
        verdict,
    );
}

/// The limits to attack: all, or those of that name.
fn targets(name: &[&str]) -> impl Iterator<Item = Target> {
    let targets = Target::all().into_iter();
    targets.filter(move |target| name.is_empty() || name.contains(&target.name))
}

fn numbers<const N: usize>(words: [&str; N]) -> Option<[u64; N]> {
    let numbers: Option<Vec<u64>> = words.iter().map(|word| word.parse().ok()).collect();
    numbers?.try_into().ok()
}

fn bytes(mebibytes: u64) -> usize {
    usize::try_from(mebibytes << 20).unwrap_or(usize::MAX)
}
