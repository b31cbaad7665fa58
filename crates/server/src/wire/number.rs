//! Unsigned integers as proto3 JSON writes them: a number, or a decimal string.

use std::fmt;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

/// An unsigned integer of up to 64 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Number(pub(super) u64);

/// An unsigned integer of up to 32 bits; one that is larger is a fault, as in the reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Number")]
pub(super) struct Number32(pub(super) u32);

struct NumberVisitor;

// === impl Number ===

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}

// === impl Number32 ===

impl TryFrom<Number> for Number32 {
    type Error = &'static str;

    fn try_from(Number(number): Number) -> Result<Self, &'static str> {
        let number = u32::try_from(number);
        number
            .map(Self)
            .map_err(|_| "a number has more than 32 bits")
    }
}

// === impl NumberVisitor ===

impl Visitor<'_> for NumberVisitor {
    type Value = Number;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a whole number from 0 on, or such a number as a string")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Number, E> {
        Ok(Number(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Number, E> {
        u64::try_from(number)
            .map(Number)
            .map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
    }

    /// `1e3` and `5.0` are whole numbers too.
    fn visit_f64<E: Error>(self, number: f64) -> Result<Number, E> {
        // 2^53: up to here every whole number has a float of its own.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if number.fract() != 0.0 || !(0.0..=EXACT).contains(&number) {
            return Err(E::invalid_value(Unexpected::Float(number), &self));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a whole number between 0 and 2^53, as was just seen"
        )]
        Ok(Number(number as u64))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Number, E> {
        text.parse()
            .map(Number)
            .map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::{Number, Number32};

    fn check(json: &str, expected: Option<u64>) {
        let number = serde_json::from_str::<Number>(json)
            .ok()
            .map(|number| number.0);
        assert_eq!(number, expected, "{json}");
    }

    #[test]
    fn whole_numbers_are_read_however_they_are_written() {
        check("7", Some(7));
        check("\"7\"", Some(7));
        check("7.0", Some(7));
        check("1e3", Some(1_000));
        check("18446744073709551615", Some(u64::MAX));
        check("\"18446744073709551615\"", Some(u64::MAX));
    }

    #[test]
    fn a_number_of_32_bits_has_no_more() {
        let read = |json| serde_json::from_str(json).ok();
        assert_eq!(read("4294967295"), Some(Number32(u32::MAX)));
        assert_eq!(read("4294967296"), None::<Number32>);
    }

    #[test]
    fn anything_else_is_refused() {
        for json in [
            "-1", "0.5", "1e300", "-0.5", "\"-1\"", "\"\"", "\"1.5\"", "true", "[]", "{}",
        ] {
            check(json, None);
        }
    }
}
