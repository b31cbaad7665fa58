//! What a limit would say to a history that nobody refused anything in.

use std::collections::HashMap;

use tidegate_algorithms::{Algorithm, Quota, Refill, Time};

/// The most of the limit that was ever used at one time, by the definition of its algorithm.
pub(super) fn most_used(quota: &Quota, admitted: &[(Time, u64)]) -> u64 {
    let mut history: Vec<(u128, u128)> = admitted
        .iter()
        .map(|&(time, cost)| (u128::from(time.nanos()), u128::from(cost)))
        .collect();
    history.sort_unstable();
    let window = quota.window().as_nanos();
    let limit = u128::from(quota.limit());
    let used = match quota.algorithm() {
        Algorithm::FixedWindow => most_in_window(&history, window),
        Algorithm::TokenBucket { refill, .. } => most_in_bucket(&history, window, limit, refill),
        Algorithm::SlidingLog { .. } => most_in_log(&history, window),
        Algorithm::SlidingCounter { sub_windows, .. } => {
            most_weighed(&history, window, u128::from(sub_windows))
        }
        Algorithm::LeakyBucket { .. } => 0,
    };
    u64::try_from(used).unwrap()
}

/// Admissions above a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OutsideOvershoot {
    /// In all windows of the clock; for limits that count in others, the most at one time.
    pub(super) total: u64,
    /// The most at one time.
    pub(super) worst: u64,
}

/// Counts the admissions that were above a limit: of a fixed window, a sliding counter and an interval
/// bucket in each window of the clock, of a token bucket above its capacity, of all others in the window
/// before each.
pub(super) fn outside_overshoot(quota: &Quota, admitted: &[(Time, u64)]) -> OutsideOvershoot {
    let mut history = admitted.to_vec();
    history.sort_unstable();
    let window = quota.window().as_nanos();
    let limit = u128::from(quota.limit());
    let capacity = u128::from(crate::capacity::capacity(quota));
    let mut overshoot = OutsideOvershoot::default();
    let (is_bucket, is_aligned) = match quota.algorithm() {
        Algorithm::SlidingLog { .. } => (false, false),
        Algorithm::SlidingCounter { sub_windows, .. } => (false, sub_windows == 1),
        Algorithm::TokenBucket { refill, .. } => {
            (refill == Refill::Continuous, refill == Refill::Interval)
        }
        _ => (false, true),
    };
    // In parts of a request, as many as a window has nanoseconds.
    let (mut level, mut last, mut first, mut sum) = (0_u128, 0, 0, 0_u128);
    for (nth, &(time, cost)) in history.iter().enumerate() {
        let (time, cost) = (u128::from(time.nanos()), u128::from(cost));
        let used = if is_bucket {
            level = level.saturating_sub((time - last) * limit) + cost * window;
            last = time;
            level.div_ceil(window)
        } else {
            let is_out = |at: u128| {
                if is_aligned {
                    at / window != time / window
                } else {
                    at + window <= time
                }
            };
            while first < nth && is_out(u128::from(history[first].0.nanos())) {
                sum -= u128::from(history[first].1);
                first += 1;
            }
            sum += cost;
            sum
        };
        let over = used.saturating_sub(capacity);
        let number = |number: u128| u64::try_from(number).unwrap();
        overshoot.worst = overshoot.worst.max(number(over));
        if is_aligned {
            overshoot.total += number(over.min(cost));
        } else {
            overshoot.total = overshoot.worst;
        }
    }
    overshoot
}

fn most_in_window(history: &[(u128, u128)], window: u128) -> u128 {
    history
        .iter()
        .map(|&(time, _)| count(history, time / window, window))
        .max()
        .unwrap_or(0)
}

/// What a window counts in all.
fn count(history: &[(u128, u128)], index: u128, window: u128) -> u128 {
    let inside = history.iter().filter(|(time, _)| time / window == index);
    inside.map(|(_, cost)| cost).sum()
}

fn most_in_bucket(history: &[(u128, u128)], window: u128, limit: u128, refill: Refill) -> u128 {
    // In parts of a request, as many as a window has nanoseconds.
    let (mut used, mut most, mut last) = (0_u128, 0, 0);
    for &(time, cost) in history {
        let filled = match refill {
            Refill::Continuous => (time - last) * limit,
            Refill::Interval => (time / window - last / window) * limit * window,
        };
        used = used.saturating_sub(filled) + cost * window;
        most = most.max(used);
        last = time;
    }
    most / window
}

fn most_in_log(history: &[(u128, u128)], window: u128) -> u128 {
    let sum_until = |last: usize| -> u128 {
        let (time, _) = history[last];
        let inside = history[..=last].iter().filter(|(at, _)| at + window > time);
        inside.map(|(_, cost)| cost).sum()
    };
    (0..history.len()).map(sum_until).max().unwrap_or(0)
}

/// What whole sub-windows count, and the oldest by the part of it that is still in the window.
fn most_weighed(history: &[(u128, u128)], window: u128, parts: u128) -> u128 {
    let span = window.div_ceil(parts);
    let mut counts: HashMap<u128, u128> = HashMap::new();
    let mut most = 0;
    for &(time, cost) in history {
        let index = time / span;
        *counts.entry(index).or_default() += cost;
        let count = |index: u128| counts.get(&index).copied().unwrap_or(0);
        let whole: u128 = (0..parts).map(|age| count(index - age)).sum();
        most = most.max(whole + count(index - parts) * (span - time % span) / span);
    }
    most
}
