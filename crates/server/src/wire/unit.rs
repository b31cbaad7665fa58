//! The units of Envoy's limits.

use std::fmt;
use std::time::Duration;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// A unit of time. A month has 30 days and a year 365, as in envoyproxy/ratelimit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum Unit {
    /// None of the others.
    #[default]
    Unknown,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
}

struct UnitVisitor;

/// Name and number in the protocol, and length in seconds.
const UNITS: [(Unit, &str, u64, Option<u64>); 8] = [
    (Unit::Unknown, "UNKNOWN", 0, None),
    (Unit::Second, "SECOND", 1, Some(1)),
    (Unit::Minute, "MINUTE", 2, Some(60)),
    (Unit::Hour, "HOUR", 3, Some(3_600)),
    (Unit::Day, "DAY", 4, Some(86_400)),
    (Unit::Week, "WEEK", 7, Some(7 * 86_400)),
    (Unit::Month, "MONTH", 5, Some(30 * 86_400)),
    (Unit::Year, "YEAR", 6, Some(365 * 86_400)),
];

// === impl Unit ===

impl Unit {
    /// The unit of a window; `Unknown` for one that Envoy has no word for.
    pub(super) fn of(window: Duration) -> Self {
        UNITS
            .into_iter()
            .find(|(_, _, _, seconds)| seconds.map(Duration::from_secs) == Some(window))
            .map(|(unit, ..)| unit)
            .unwrap_or_default()
    }

    /// The unit with this number in the protocol.
    pub(super) fn numbered(number: u64) -> Option<Self> {
        let mut units = UNITS.into_iter();
        let (unit, ..) = units.find(|(_, _, its_number, _)| *its_number == number)?;
        Some(unit)
    }

    /// The number of the unit in the protocol.
    pub(super) const fn number(self) -> u64 {
        match self {
            Self::Unknown => 0,
            Self::Second => 1,
            Self::Minute => 2,
            Self::Hour => 3,
            Self::Day => 4,
            Self::Month => 5,
            Self::Year => 6,
            Self::Week => 7,
        }
    }

    /// The length of the unit.
    pub(super) fn window(self) -> Option<Duration> {
        let (.., seconds) = UNITS.into_iter().find(|(unit, ..)| *unit == self)?;
        seconds.map(Duration::from_secs)
    }
}

impl<'de> Deserialize<'de> for Unit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UnitVisitor)
    }
}

// === impl UnitVisitor ===

impl Visitor<'_> for UnitVisitor {
    type Value = Unit;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SECOND, MINUTE, HOUR, DAY, WEEK, MONTH or YEAR")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Unit, E> {
        UNITS
            .into_iter()
            .find(|(_, name, ..)| *name == text)
            .map(|(unit, ..)| unit)
            .ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Unit, E> {
        Unit::numbered(number).ok_or_else(|| E::invalid_value(Unexpected::Unsigned(number), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_goes_by_name_and_by_number() {
        for (unit, name, number, _) in UNITS {
            assert_eq!(unit.number(), number);
            assert_eq!(
                serde_json::from_str::<Unit>(&format!("\"{name}\"")).unwrap(),
                unit
            );
            assert_eq!(
                serde_json::from_str::<Unit>(&number.to_string()).unwrap(),
                unit
            );
            assert_eq!(serde_json::to_string(&unit).unwrap(), format!("\"{name}\""));
        }
        for json in ["8", "-1", "\"minute\"", "\"FORTNIGHT\"", "[]"] {
            assert!(serde_json::from_str::<Unit>(json).is_err(), "{json}");
        }
    }

    #[test]
    fn a_window_without_a_word_is_unknown() {
        assert_eq!(Unit::of(Duration::from_mins(1)), Unit::Minute);
        assert_eq!(Unit::of(Duration::from_secs(90)), Unit::Unknown);
        assert_eq!(Unit::Unknown.window(), None);
    }
}
