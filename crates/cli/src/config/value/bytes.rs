//! Amounts of memory as people write them.

use std::fmt;

use serde_json::{Value as Json, json};

use super::{Mismatch, Shown, Value};

/// An amount of memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) usize);

const UNREADABLE: &str = "write a number with an optional unit: B, KiB, MiB, GiB, kB, MB or GB";

const TOO_LARGE: &str = "that is more memory than there are addresses";

/// Suffix and factor. The ones of the same end stand longest first.
const UNITS: [(&str, usize); 7] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];

// === impl Bytes ===

impl Value for Bytes {
    fn parse(text: &str) -> Result<Self, Mismatch> {
        let mismatch = |hint| Mismatch::new("an amount of memory", hint);
        let with_unit = UNITS
            .iter()
            .find_map(|(suffix, factor)| Some((text.strip_suffix(suffix)?, *factor)));
        let (digits, factor) = with_unit.unwrap_or((text, 1));
        let number: usize = digits
            .trim_end()
            .parse()
            .map_err(|_| mismatch(UNREADABLE))?;
        let bytes = number
            .checked_mul(factor)
            .ok_or_else(|| mismatch(TOO_LARGE))?;
        Ok(Self(bytes))
    }

    fn show(&self) -> Shown {
        Shown::Plain(json!(self.to_string()))
    }

    fn schema() -> Json {
        let with_unit =
            json!({ "type": "string", "pattern": "^[0-9]+ *(B|KiB|MiB|GiB|kB|MB|GB)?$" });
        json!({ "anyOf": [{ "type": "integer", "minimum": 0 }, with_unit] })
    }
}

impl fmt::Display for Bytes {
    /// The largest binary unit that divides it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let binary = UNITS[..3].iter().rev();
        for (suffix, factor) in binary {
            if self.0 > 0 && self.0.is_multiple_of(*factor) {
                return write!(formatter, "{} {suffix}", self.0 / factor);
            }
        }
        write!(formatter, "{} B", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_with_and_without_a_unit() {
        let check = |text, bytes| assert_eq!(Bytes::parse(text), Ok(Bytes(bytes)), "{text}");
        check("0", 0);
        check("1048576", 1 << 20);
        check("1048576B", 1 << 20);
        check("2048KiB", 2 << 20);
        check("256MiB", 256 << 20);
        check("2 GiB", 2 << 30);
        check("3000kB", 3_000_000);
        check("3MB", 3_000_000);
        check("3GB", 3_000_000_000);
    }

    #[test]
    fn anything_else_is_refused() {
        let check = |text, hint: &str| {
            let refused = Bytes::parse(text).expect_err(text);
            assert_eq!(refused.hint, hint, "{text}");
        };
        for text in ["", "MiB", "-1MiB", "1.5MiB", "1 mib", "1MiBB", "much"] {
            check(text, UNREADABLE);
        }
        check("18446744073709551615KiB", TOO_LARGE);
    }

    #[test]
    fn amounts_are_written_in_the_largest_unit_that_fits() {
        for (bytes, expected) in [
            (0, "0 B"),
            (1_000, "1000 B"),
            (1 << 20, "1 MiB"),
            (3 << 29, "1536 MiB"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), expected);
        }
    }
}
