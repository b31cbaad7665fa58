//! Amounts of memory as people write them.

use std::fmt;
use std::str::FromStr;

/// An amount of memory for counters, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) usize);

/// Text that is no amount of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotBytes {
    #[error("write a number with an optional unit: B, KiB, MiB, GiB, kB, MB or GB")]
    Unreadable,
    #[error("that is more memory than there are addresses")]
    TooLarge,
    #[error("the store needs at least 1MiB")]
    TooSmall,
}

/// The least that the embedded store works with.
const LEAST: usize = 1 << 20;

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

impl FromStr for Bytes {
    type Err = NotBytes;

    fn from_str(text: &str) -> Result<Self, NotBytes> {
        let with_unit = UNITS
            .iter()
            .find_map(|(suffix, factor)| Some((text.strip_suffix(suffix)?, *factor)));
        let (digits, factor) = with_unit.unwrap_or((text, 1));
        let number: usize = digits
            .trim_end()
            .parse()
            .map_err(|_| NotBytes::Unreadable)?;
        let bytes = number.checked_mul(factor).ok_or(NotBytes::TooLarge)?;
        if bytes < LEAST {
            return Err(NotBytes::TooSmall);
        }
        Ok(Self(bytes))
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

    fn check(text: &str, expected: Result<usize, NotBytes>) {
        assert_eq!(
            text.parse::<Bytes>().map(|bytes| bytes.0),
            expected,
            "{text}"
        );
    }

    #[test]
    fn amounts_are_read_with_and_without_a_unit() {
        check("1048576", Ok(1 << 20));
        check("1048576B", Ok(1 << 20));
        check("2048KiB", Ok(2 << 20));
        check("256MiB", Ok(256 << 20));
        check("2 GiB", Ok(2 << 30));
        check("3000kB", Ok(3_000_000));
        check("3MB", Ok(3_000_000));
        check("3GB", Ok(3_000_000_000));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "MiB", "-1MiB", "1.5MiB", "1 mib", "1MiBB", "much"] {
            check(text, Err(NotBytes::Unreadable));
        }
        check("18446744073709551615KiB", Err(NotBytes::TooLarge));
        check("0", Err(NotBytes::TooSmall));
        check("1048575", Err(NotBytes::TooSmall));
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
