//! Addresses of one customer, as one value.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How many bits of an address tell callers apart. A family without a number is not spoken of.
///
/// Who has one IPv6 address has 2⁶⁴ of them: providers hand out networks of /64, /56 or /48.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grouping {
    ipv4_bits: Option<u8>,
    ipv6_bits: Option<u8>,
}

/// A prefix that has more bits than an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a prefix has at most 32 bits for IPv4 and 128 for IPv6")]
pub struct BadPrefix;

// === impl Grouping ===

impl Grouping {
    /// IPv4 addresses by themselves, IPv6 addresses by their /64.
    pub const DEFAULT: Self = Self {
        ipv4_bits: Some(32),
        ipv6_bits: Some(64),
    };

    /// Groups by so many bits of each family.
    pub const fn new(ipv4_bits: Option<u8>, ipv6_bits: Option<u8>) -> Result<Self, BadPrefix> {
        match (ipv4_bits, ipv6_bits) {
            (Some(33..), _) | (_, Some(129..)) => Err(BadPrefix),
            _ => Ok(Self {
                ipv4_bits,
                ipv6_bits,
            }),
        }
    }

    /// Groups IPv6 addresses by their /56.
    pub(crate) const IPV6_56: Self = Self {
        ipv4_bits: None,
        ipv6_bits: Some(56),
    };

    /// Groups IPv6 addresses by their /48.
    pub(crate) const IPV6_48: Self = Self {
        ipv4_bits: None,
        ipv6_bits: Some(48),
    };

    /// The first address of the group that `address` is in; `None` if its family is not spoken of.
    ///
    /// The address and not the network, so that rules can match it by `cidr`.
    pub fn of(self, address: IpAddr) -> Option<IpAddr> {
        match address {
            IpAddr::V4(address) => {
                let bits = address.to_bits() & mask_32(self.ipv4_bits?);
                Some(IpAddr::V4(Ipv4Addr::from_bits(bits)))
            }
            IpAddr::V6(address) => {
                let bits = address.to_bits() & mask_128(self.ipv6_bits?);
                Some(IpAddr::V6(Ipv6Addr::from_bits(bits)))
            }
        }
    }
}

impl Default for Grouping {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for Grouping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let families = [("ipv4", self.ipv4_bits), ("ipv6", self.ipv6_bits)];
        let spoken_of = families
            .iter()
            .filter_map(|(name, bits)| Some((name, (*bits)?)));
        for (index, (name, bits)) in spoken_of.enumerate() {
            let space = if index == 0 { "" } else { " " };
            write!(f, "{space}{name}/{bits}")?;
        }
        Ok(())
    }
}

fn mask_32(bits: u8) -> u32 {
    !u32::MAX.checked_shr(bits.into()).unwrap_or(0)
}

fn mask_128(bits: u8) -> u128 {
    !u128::MAX.checked_shr(bits.into()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ipv4_bits: Option<u8>, ipv6_bits: Option<u8>, address: &str, expected: Option<&str>) {
        let grouping = Grouping::new(ipv4_bits, ipv6_bits).expect("a grouping");
        let group = grouping.of(address.parse().expect("an address"));
        assert_eq!(group.map(|group| group.to_string()).as_deref(), expected);
    }

    #[test]
    fn keeps_the_first_bits() {
        check(Some(32), None, "203.0.113.7", Some("203.0.113.7"));
        check(Some(24), None, "203.0.113.7", Some("203.0.113.0"));
        check(Some(0), None, "203.0.113.7", Some("0.0.0.0"));
        let address = "2001:db8:1:2ff:3:4:5:6";
        check(None, Some(128), address, Some(address));
        check(None, Some(64), address, Some("2001:db8:1:2ff::"));
        check(None, Some(56), address, Some("2001:db8:1:200::"));
        check(None, Some(48), address, Some("2001:db8:1::"));
        check(None, Some(0), address, Some("::"));
    }

    #[test]
    fn says_nothing_of_a_family_without_a_number() {
        check(None, Some(64), "203.0.113.7", None);
        check(Some(32), None, "2001:db8::1", None);
    }

    #[test]
    fn refuses_more_bits_than_there_are() {
        assert_eq!(Grouping::new(Some(33), None), Err(BadPrefix));
        assert_eq!(Grouping::new(None, Some(129)), Err(BadPrefix));
    }
}
