//! Times as clients are told them: whole seconds, never early.

use std::time::Duration;

use tidegate_limiter::{Retry, Verdict};

/// How many whole seconds to tell for `wait`. Rounded up: who comes a tick early is refused again.
pub(crate) fn round_up(wait: Duration) -> u64 {
    wait.as_secs()
        .saturating_add(u64::from(wait.subsec_nanos() > 0))
}

/// After how many seconds a refused request may come again, at least 1. `None` if it is not refused, can
/// never pass, or nobody knows.
#[inline]
pub fn retry_after(verdict: &Verdict) -> Option<u64> {
    match verdict.retry()? {
        Retry::After(wait) => Some(round_up(wait).max(1)),
        Retry::Never => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_rounded_up() {
        assert_eq!(round_up(Duration::ZERO), 0);
        assert_eq!(round_up(Duration::from_nanos(1)), 1);
        assert_eq!(round_up(Duration::from_secs(3)), 3);
        assert_eq!(round_up(Duration::MAX), u64::MAX);
    }
}
