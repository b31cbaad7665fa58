//! The names of decisions.

use std::fmt;
use std::str::FromStr;

/// The id of a decision: 64 bits that cannot be predicted from other ids, written as 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DecisionId(pub(super) u64);

/// A text that is not the id of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a decision id has 16 hexadecimal digits, such as 3f9a0c1b2d4e5f60")]
pub struct MalformedDecisionId;

const N_DIGITS: usize = 16;

// === impl DecisionId ===

impl DecisionId {
    /// The URI of a decision is this prefix and its id.
    pub const URN_PREFIX: &'static str = "urn:tidegate:decision:";

    /// The header in which clients are told the id.
    pub const HEADER: &'static str = "x-tidegate-decision";

    /// The URI of the decision.
    pub fn urn(self) -> String {
        let mut urn = String::with_capacity(Self::URN_PREFIX.len() + N_DIGITS);
        urn.push_str(Self::URN_PREFIX);
        // Digits are always text.
        urn.push_str(str::from_utf8(&self.digits()).unwrap_or_default());
        urn
    }

    /// The digits of the id. Every denial writes them twice, and the formatter of the standard library takes ten times as long.
    pub fn digits(self) -> [u8; N_DIGITS] {
        let mut digits = *b"0123456789abcdef";
        let names = digits;
        let mut rest = self.0;
        for digit in digits.iter_mut().rev() {
            *digit = names[(rest % 16) as usize];
            rest /= 16;
        }
        digits
    }
}

impl fmt::Display for DecisionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Digits are always text.
        formatter.write_str(str::from_utf8(&self.digits()).unwrap_or_default())
    }
}

/// Reads an id, or the URI of one as problem details have it.
impl FromStr for DecisionId {
    type Err = MalformedDecisionId;

    fn from_str(text: &str) -> Result<Self, MalformedDecisionId> {
        let digits = text.strip_prefix(Self::URN_PREFIX).unwrap_or(text);
        let is_id = digits.len() == N_DIGITS && digits.bytes().all(|it| it.is_ascii_hexdigit());
        let id = u64::from_str_radix(digits, 16).ok().filter(|_| is_id);
        id.map(Self).ok_or(MalformedDecisionId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<u64>) {
        assert_eq!(text.parse().ok(), expected.map(DecisionId), "{text:?}");
    }

    #[test]
    fn an_id_is_sixteen_digits_or_a_uri_of_them() {
        check("00000000000000ff", Some(255));
        check("00000000000000FF", Some(255));
        check("urn:tidegate:decision:8000000000000000", Some(1 << 63));
        check("", None);
        check("ff", None);
        check("+0000000000000ff", None);
        check("00000000000000fg", None);
        check("00000000000000ff0", None);
        check("urn:tidegate:decision:", None);
    }

    #[test]
    fn an_id_is_read_back_as_it_is_written() {
        for id in [0, 1, u64::MAX].map(DecisionId) {
            assert_eq!(id.to_string().parse(), Ok(id));
            assert_eq!(id.to_string().len(), N_DIGITS);
        }
    }
}
