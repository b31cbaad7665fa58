//! What a quota promises, in words.

use std::fmt;
use std::time::Duration;

use super::{Algorithm, Allowance, Quota, Refill};

/// What a quota promises however the traffic arrives; its `Display` is one sentence without a
/// period.
#[derive(Clone, Copy, Debug)]
pub struct Promise<'a> {
    quota: &'a Quota,
}

/// A window as people say it: `minute`, `90 seconds`. The alternate form is a length of time:
/// `1 minute`.
struct Spoken(Duration);

// === impl Promise ===

impl<'a> Promise<'a> {
    pub(super) const fn of(quota: &'a Quota) -> Self {
        Self { quota }
    }

    fn of_bucket(self, f: &mut fmt::Formatter<'_>, refill: Refill) -> fmt::Result {
        let Quota {
            limit,
            window,
            algorithm,
            ..
        } = *self.quota;
        let window = Spoken(window);
        let burst = algorithm.capacity(limit);
        let gained = match refill {
            Refill::Continuous => limit,
            Refill::Interval => limit.min(burst),
        };
        let most = u128::from(burst) + u128::from(gained);
        write!(
            f,
            "never more than {most} in any {window}: the burst of {burst} plus "
        )?;
        match refill {
            Refill::Continuous => write!(f, "{gained} per {window}"),
            Refill::Interval => {
                write!(f, "the {gained} that drop in at the edge of each {window}")
            }
        }
    }

    fn of_queue(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Quota {
            limit,
            window,
            algorithm,
            ..
        } = *self.quota;
        let window = Spoken(window);
        let waiting = algorithm.capacity(limit).saturating_sub(1);
        write!(
            f,
            "requests leave in order and evenly, {limit} per {window}, never faster; at most \
             {waiting} wait"
        )
    }

    fn of_counter(self, f: &mut fmt::Formatter<'_>, sub_windows: u16) -> fmt::Result {
        let Quota { limit, window, .. } = *self.quota;
        let (twice, window) = (u128::from(limit) * 2, Spoken(window));
        write!(
            f,
            "never more than {limit} in any {window} by its own estimate, "
        )?;
        if sub_windows == 1 {
            return write!(
                f,
                "which takes the {window} before as evenly spread: at worst {twice}"
            );
        }
        let sub_window = Spoken(window.0 / u32::from(sub_windows.max(1)));
        write!(
            f,
            "wrong by at most what came within {sub_window:#} at its far end"
        )
    }

    fn ordinary(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Quota {
            limit,
            window,
            algorithm,
            ..
        } = *self.quota;
        let (twice, window) = (u128::from(limit) * 2, Spoken(window));
        match algorithm {
            Algorithm::TokenBucket { refill, .. } => self.of_bucket(f, refill),
            Algorithm::LeakyBucket { .. } => self.of_queue(f),
            Algorithm::FixedWindow => write!(
                f,
                "never more than {limit} in each {window} by the clock, at worst {twice} in one \
                 across its edge"
            ),
            Algorithm::SlidingLog { .. } => write!(f, "never more than {limit} in any {window}"),
            Algorithm::SlidingCounter { sub_windows, .. } => self.of_counter(f, sub_windows),
        }
    }
}

impl Promise<'_> {
    fn postpaid(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let window = Spoken(self.quota.window);
        f.write_str("; every cost is charged, also one that does not fit: ")?;
        match (self.quota.algorithm, self.quota.extra) {
            (Algorithm::SlidingLog { .. }, _) => f.write_str("the log is full then"),
            (
                Algorithm::TokenBucket {
                    refill: Refill::Interval,
                    ..
                }
                | Algorithm::FixedWindow,
                debt,
            ) => {
                write!(
                    f,
                    "up to {debt} over, forgotten at the edge of the {window}"
                )
            }
            (Algorithm::TokenBucket { .. }, debt) => {
                write!(
                    f,
                    "up to {debt} of debt, repaid at {} per {window}",
                    self.quota.limit
                )
            }
            (_, debt) => write!(f, "up to {debt} over, counted for a {window}"),
        }
    }
}

impl fmt::Display for Promise<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.quota.limit == 0 {
            return f.write_str("never any");
        }
        self.ordinary(f)?;
        let extra = self.quota.extra;
        match self.quota.allowance {
            Allowance::Hard => Ok(()),
            Allowance::Soft { only_for: None, .. } => {
                write!(f, "; {extra} more may pass, marked")
            }
            Allowance::Soft {
                only_for: Some(span),
                ..
            } => {
                let span = Spoken(span);
                let window = Spoken(self.quota.window);
                write!(
                    f,
                    "; {extra} more may pass, marked, until {span:#} after the first of them, and again \
                     after {window:#} without a request above the limit"
                )
            }
            Allowance::Elastic { .. } => {
                write!(f, "; {extra} more may pass, marked while there is headroom")
            }
            Allowance::Postpaid { .. } => self.postpaid(f),
        }
    }
}

// === impl Spoken ===

impl fmt::Display for Spoken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u128, &str); 7] = [
            (86_400_000_000_000, "day"),
            (3_600_000_000_000, "hour"),
            (60_000_000_000, "minute"),
            (1_000_000_000, "second"),
            (1_000_000, "millisecond"),
            (1_000, "microsecond"),
            (1, "nanosecond"),
        ];
        let nanos = self.0.as_nanos();
        let whole = UNITS
            .into_iter()
            .find(|(unit, _)| nanos >= *unit && nanos.is_multiple_of(*unit));
        match whole.map(|(unit, name)| (nanos / unit, name)) {
            Some((1, name)) if f.alternate() => write!(f, "1 {name}"),
            Some((1, name)) => f.write_str(name),
            Some((n, name)) => write!(f, "{n} {name}s"),
            None => f.write_str("0 seconds"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::{Algorithm, Allowance, Percent, Quota, QuotaSpec, Refill, Rounding};

    fn check(algorithm: Algorithm, allowance: Allowance, window_secs: u64, expected: &str) {
        let window = Duration::from_secs(window_secs);
        let spec = QuotaSpec {
            limit: 100,
            window,
            algorithm,
            allowance,
        };
        assert_eq!(
            Quota::new(&spec).expect("valid").promise().to_string(),
            expected
        );
    }

    #[test]
    fn each_algorithm_says_what_it_promises() {
        let bucket = |refill| Algorithm::TokenBucket {
            burst: Some(20),
            refill,
        };
        let counter = |sub_windows| Algorithm::SlidingCounter {
            sub_windows,
            rounding: Rounding::Down,
        };
        let cases = [
            (
                bucket(Refill::Continuous),
                "never more than 120 in any minute: the burst of 20 plus 100 per minute",
            ),
            (
                bucket(Refill::Interval),
                "never more than 40 in any minute: the burst of 20 plus the 20 that drop in at the \
                 edge of each minute",
            ),
            (
                Algorithm::LeakyBucket { queue: Some(20) },
                "requests leave in order and evenly, 100 per minute, never faster; at most 20 wait",
            ),
            (
                Algorithm::FixedWindow,
                "never more than 100 in each minute by the clock, at worst 200 in one across its \
                 edge",
            ),
            (
                Algorithm::SlidingLog { log_refused: false },
                "never more than 100 in any minute",
            ),
            (
                counter(1),
                "never more than 100 in any minute by its own estimate, which takes the minute \
                 before as evenly spread: at worst 200",
            ),
            (
                counter(12),
                "never more than 100 in any minute by its own estimate, wrong by at most what came \
                 within 5 seconds at its far end",
            ),
        ];
        for (algorithm, expected) in cases {
            check(algorithm, Allowance::Hard, 60, expected);
        }
    }

    #[test]
    fn what_passes_over_the_limit_is_said() {
        let soft = |only_for| Allowance::Soft {
            over: Percent(10),
            only_for,
        };
        let log = Algorithm::SlidingLog { log_refused: false };
        let more = "never more than 100 in any 90 seconds; 10 more may pass, marked";
        check(log, soft(None), 90, more);
        let while_soft = format!(
            "{more}, until 1 minute after the first of them, and again after 90 seconds without a request \
             above the limit"
        );
        check(log, soft(Some(Duration::from_mins(1))), 90, &while_soft);
        let elastic = Allowance::Elastic { over: Percent(10) };
        check(log, elastic, 90, &format!("{more} while there is headroom"));
    }
}
