//! Durations as people write them: `90s`, `1m30s`, `250ms`, `7d`.

use std::fmt::Write as _;
use std::time::Duration;

/// Units by falling size, in nanoseconds.
const UNITS: [(&str, u64); 8] = [
    ("w", 7 * 86_400 * NANOS),
    ("d", 86_400 * NANOS),
    ("h", 3_600 * NANOS),
    ("m", 60 * NANOS),
    ("s", NANOS),
    ("ms", NANOS / 1_000),
    ("us", NANOS / 1_000_000),
    ("ns", 1),
];

const NANOS: u64 = 1_000_000_000;

/// Why a text is no duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DurationFault {
    /// No unit after a number.
    NoUnit,
    /// Not numbers and units at all.
    Malformed,
    /// Units not from large to small.
    Disordered,
    /// More than 64 bits of nanoseconds.
    TooLong,
}

/// Reads a duration. Units go from large to small, each at most once.
pub fn parse(text: &str) -> Result<Duration, DurationFault> {
    let mut rest = text;
    let mut total: u64 = 0;
    let mut units_left = UNITS.as_slice();
    if rest.is_empty() {
        return Err(DurationFault::Malformed);
    }
    while !rest.is_empty() {
        let (number, after) = take_while(rest, |char| char.is_ascii_digit());
        let (unit, after) = take_while(after, |char| char.is_ascii_alphabetic());
        let size = UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .map(|(_, size)| *size);
        let (number, size) = match (number, unit, size) {
            ("", ..) => return Err(DurationFault::Malformed),
            (_, "", _) => {
                let is_bare = after.is_empty();
                return Err(if is_bare {
                    DurationFault::NoUnit
                } else {
                    DurationFault::Malformed
                });
            }
            (_, _, None) => return Err(DurationFault::Malformed),
            (number, _, Some(size)) => (number, size),
        };
        let Some(place) = units_left.iter().position(|(_, left)| *left == size) else {
            return Err(DurationFault::Disordered);
        };
        units_left = &units_left[place + 1..];
        let nanos = number
            .parse::<u64>()
            .ok()
            .and_then(|number| number.checked_mul(size));
        total = nanos
            .and_then(|nanos| nanos.checked_add(total))
            .ok_or(DurationFault::TooLong)?;
        rest = after;
    }
    Ok(Duration::from_nanos(total))
}

/// Writes a duration the way [`parse`] reads it, in the fewest units.
pub fn format(duration: Duration) -> String {
    let mut nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let mut text = String::new();
    for (unit, size) in UNITS {
        // Weeks would make `1w3d` of the common `10d`.
        let is_odd_week = unit == "w" && nanos % size != 0;
        if nanos >= size && !is_odd_week {
            // Writing to a string cannot fail.
            let _ = write!(text, "{}{unit}", nanos / size);
            nanos %= size;
        }
    }
    if text.is_empty() {
        "0s".to_owned()
    } else {
        text
    }
}

/// "minute" for what has a name, else [`format`].
pub(crate) fn per(duration: Duration) -> String {
    let name = (duration.subsec_nanos() == 0)
        .then(|| {
            NAMED
                .iter()
                .find(|(_, seconds)| *seconds == duration.as_secs())
        })
        .flatten();
    name.map_or_else(|| format(duration), |(name, _)| (*name).to_owned())
}

/// Lyft's units in seconds: a month is 30 days and a year 365, whatever the calendar says.
pub(crate) const NAMED: [(&str, u64); 7] = [
    ("second", 1),
    ("minute", 60),
    ("hour", 3_600),
    ("day", 86_400),
    ("week", 7 * 86_400),
    ("month", 30 * 86_400),
    ("year", 365 * 86_400),
];

fn take_while(text: &str, is_part: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|char| !is_part(char)).unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_durations() {
        let check = |text, nanos, written: &str| {
            let duration = parse(text).expect(text);
            assert_eq!(duration, Duration::from_nanos(nanos), "{text}");
            assert_eq!(format(duration), written, "{text}");
        };
        check("90s", 90 * NANOS, "1m30s");
        check("1m30s", 90 * NANOS, "1m30s");
        check("250ms", NANOS / 4, "250ms");
        check("1h", 3_600 * NANOS, "1h");
        check("7d", 7 * 86_400 * NANOS, "1w");
        check("10d", 10 * 86_400 * NANOS, "10d");
        check("2w", 14 * 86_400 * NANOS, "2w");
        check(
            "1d1h1m1s1ms1us1ns",
            90_061 * NANOS + 1_001_001,
            "1d1h1m1s1ms1us1ns",
        );
        check("0s", 0, "0s");
    }

    #[test]
    fn refuses_what_is_no_duration() {
        let check = |text, fault| assert_eq!(parse(text), Err(fault), "{text}");
        check("", DurationFault::Malformed);
        check("60", DurationFault::NoUnit);
        check("1.5h", DurationFault::Malformed);
        check("1M", DurationFault::Malformed);
        check("-1s", DurationFault::Malformed);
        check("1 m", DurationFault::Malformed);
        check("s", DurationFault::Malformed);
        check("30s1m", DurationFault::Disordered);
        check("1s1s", DurationFault::Disordered);
        check("99999999999999999999s", DurationFault::TooLong);
        check("99999999999w", DurationFault::TooLong);
    }

    #[test]
    fn names_what_has_a_name() {
        assert_eq!(per(Duration::from_mins(1)), "minute");
        assert_eq!(per(Duration::from_secs(90)), "1m30s");
        assert_eq!(per(Duration::from_millis(60_500)), "1m500ms");
        assert_eq!(per(Duration::from_hours(365 * 24)), "year");
    }
}
