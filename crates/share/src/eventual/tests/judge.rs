//! What a limit would say to a history that nobody refused anything in.

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
        _ => most_weighed(&history, window),
    };
    u64::try_from(used).unwrap()
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

fn most_weighed(history: &[(u128, u128)], window: u128) -> u128 {
    let estimate = |last: usize| -> u128 {
        let (time, _) = history[last];
        let index = time / window;
        let current = count(&history[..=last], index, window);
        let before = count(history, index.saturating_sub(1), window);
        current + before * (window - time % window) / window
    };
    (0..history.len()).map(estimate).max().unwrap_or(0)
}
