//! Prints by how many bytes a process grows for each caller of an `eventual` limit that is used all the time:
//! `callers log 150000`. Every caller is asked about in each slot of two windows.

use std::future::{Future, ready};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use std::{env, fs};

use tidegate_algorithms::{
    Algorithm, Allowance, Headroom, Quota, QuotaSpec, Refill, Rounding, Time,
};
use tidegate_share::{EventualConfig, SharedConfig, SharedStore};
use tidegate_store::{
    Charge, Charging, Clock, Consistency, CounterKey, CounterSums, CounterUpdate, Decisions,
    EmbeddedStore, EpochInfo, ExchangeReply, LimitId, ManualClock, Mode, OnFull, Store,
    StoreConfig, StoreError, Totals, TotalsSender,
};

const START: Time = Time::from_nanos(1_800_000_000_000_000_000);

const WINDOW: Duration = Duration::from_secs(16);

/// A store that knows without any memory what it was sent: one admission in each slot.
struct ConstantTotals(Arc<ManualClock>);

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let (Some(algorithm), Some(Ok(callers))) = (
        args.first().and_then(|name| algorithm(name)),
        args.get(1).map(|number| number.parse::<u64>()),
    ) else {
        eprintln!("usage: callers window|log|bucket|sub-windows NUMBER");
        return ExitCode::from(2);
    };
    let spec = QuotaSpec {
        limit: 100_000,
        window: WINDOW,
        algorithm,
        allowance: Allowance::Hard,
    };
    let quota = Quota::new(&spec).expect("valid");
    let before = resident_bytes();
    let (counted, resident) = use_all(&quota, callers, before);
    println!("{counted} bytes for each caller by the node's own account, {resident} resident");
    ExitCode::SUCCESS
}

fn algorithm(name: &str) -> Option<Algorithm> {
    Some(match name {
        "window" => Algorithm::FixedWindow,
        "log" => Algorithm::SlidingLog { log_refused: false },
        "bucket" => Algorithm::TokenBucket {
            burst: None,
            refill: Refill::Continuous,
        },
        "sub-windows" => Algorithm::SlidingCounter {
            sub_windows: 60,
            rounding: Rounding::Up,
        },
        _ => return None,
    })
}

/// Bytes of each caller after all were asked about in each slot, by the node's account and by the system's.
fn use_all(quota: &Quota, callers: u64, before: u64) -> (u64, u64) {
    let clock = Arc::new(ManualClock::at(START));
    let totals = ConstantTotals(Arc::clone(&clock));
    let plenty = StoreConfig {
        max_memory: 1 << 30,
    };
    let store = || EmbeddedStore::with_clock(plenty, Arc::clone(&clock));
    let config = SharedConfig {
        eventual: EventualConfig {
            memory: plenty,
            ..EventualConfig::default()
        },
        ..SharedConfig::default()
    };
    let shared = SharedStore::with_clock(store(), store(), config, Arc::clone(&clock));
    for _ in 0..32 {
        for caller in 0..callers {
            let name = format!("caller {caller}");
            let charges = [Charge {
                key: CounterKey {
                    limit: LimitId(7),
                    values: &[&name],
                },
                quota,
                cost: 1,
                mode: Mode::Enforce,
                headroom: Headroom::Absent,
                on_full: OnFull::Allow,
                consistency: Consistency::Eventual,
            }];
            let mut decisions = Decisions::new();
            let answer = shared.charge(&charges, Charging::AllOrNone, &mut decisions);
            finish(answer).expect("decided from memory");
        }
        finish(shared.eventual().sync_now(&totals)).expect("a store that never fails");
        clock.advance(WINDOW / 16);
    }
    let report = shared.eventual().report();
    assert_eq!(report.counters, callers, "a counter for each caller");
    let grown = resident_bytes().saturating_sub(before);
    (report.bytes / callers.max(1), grown / callers.max(1))
}

/// The result of something that waits for nothing.
fn finish<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("it waits"),
    }
}

/// Bytes of this process in memory, by the system's account.
fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next());
    let kibibytes = kibibytes.and_then(|number| number.parse::<u64>().ok());
    1_024 * kibibytes.expect("a number of kibibytes")
}

// === impl ConstantTotals ===

impl Totals for ConstantTotals {
    fn exchange(
        &self,
        _: TotalsSender,
        updates: &[CounterUpdate<'_>],
        replies: &mut Vec<CounterSums>,
    ) -> impl Future<Output = Result<ExchangeReply, StoreError>> + Send {
        let epoch = EpochInfo {
            created: 1,
            base: 0,
        };
        replies.extend(updates.iter().map(|update| {
            let started = START.nanos() / update.slot_nanos;
            let slots = update.first.max(started)..=update.current;
            CounterSums {
                current: epoch,
                before: epoch,
                sums: slots.map(|slot| (slot, 1)).collect(),
            }
        }));
        ready(Ok(ExchangeReply {
            now: self.0.now(),
            members: 1,
            previous: None,
        }))
    }
}
