//! Times for people.

use std::time::{Duration, UNIX_EPOCH};

use crate::reload;

/// A time since 1970, such as `2026-11-15T23:05:00Z`. One that no calendar has is 1970.
pub(crate) fn since_1970(at: Duration) -> String {
    tidegate_server::rfc3339(UNIX_EPOCH.checked_add(at).unwrap_or(UNIX_EPOCH))
}

/// How long ago a time since 1970 is by this machine's clock, in the unit that says most.
pub(crate) fn age(at: Duration) -> String {
    let now = reload::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    span(now.saturating_sub(at))
}

fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    let units = [
        (86_400, "day"),
        (3_600, "hour"),
        (60, "minute"),
        (1, "second"),
    ];
    let (length, unit) = units
        .into_iter()
        .find(|(length, _)| seconds >= 2 * length)
        .unwrap_or((1, "second"));
    let count = seconds / length;
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{s}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_told_in_the_unit_that_says_most() {
        for (seconds, told) in [
            (0, "0 seconds"),
            (1, "1 second"),
            (119, "119 seconds"),
            (120, "2 minutes"),
            (7_200, "2 hours"),
            (200_000, "2 days"),
        ] {
            assert_eq!(span(Duration::from_secs(seconds)), told);
        }
    }

    #[test]
    fn a_time_beyond_all_calendars_is_no_panic() {
        assert_eq!(since_1970(Duration::MAX), "1970-01-01T00:00:00Z");
        assert_eq!(age(Duration::MAX), "0 seconds");
    }
}
