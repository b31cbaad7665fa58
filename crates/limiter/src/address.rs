//! The one spelling of an address: callers that a rule takes for the same are counted as the same.

use std::fmt::{self, Write};
use std::net::IpAddr;

use smallvec::SmallVec;

/// The addresses in the counter keys of a request. No allocation up to two.
pub(crate) type Addresses = SmallVec<[AddressText; 2]>;

/// An address, written out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddressText {
    /// The longest is eight groups of four digits with colons between.
    bytes: [u8; 39],
    length: usize,
}

// === impl AddressText ===

impl AddressText {
    /// The address that `value` spells, an IPv4-mapped one as the IPv4 address it is. Empty for a
    /// value that spells none, which no rule by network matches.
    pub(crate) fn of(value: &str) -> Self {
        let mut text = Self {
            bytes: [0; 39],
            length: 0,
        };
        if let Ok(address) = value.parse::<IpAddr>() {
            // It fits: see `bytes`.
            let _ = write!(text, "{}", address.to_canonical());
        }
        text
    }

    pub(crate) fn as_str(&self) -> &str {
        str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

impl Write for AddressText {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let end = self.length + part.len();
        let place = self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?;
        place.copy_from_slice(part.as_bytes());
        self.length = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: &str, expected: &str) {
        assert_eq!(AddressText::of(value).as_str(), expected);
    }

    #[test]
    fn spellings_of_one_address_become_one() {
        check("10.1.2.3", "10.1.2.3");
        check("::ffff:10.1.2.3", "10.1.2.3");
        check("::FFFF:0A01:0203", "10.1.2.3");
        check("2001:DB8:0:0::1", "2001:db8::1");
        check("2001:0db8:0000:0000:0000:0000:0000:0001", "2001:db8::1");
        check(
            "1111:2222:3333:4444:5555:6666:7777:8888",
            "1111:2222:3333:4444:5555:6666:7777:8888",
        );
    }

    #[test]
    fn what_is_no_address_is_nothing() {
        check("localhost", "");
        check("10.1.2.3:80", "");
    }
}
