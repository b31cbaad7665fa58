//! Addresses matched by network: `10.0.0.0/8`, `2001:db8::/32`, or a list of them.

use std::error::Error;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// A set of networks, as sorted ranges that neither touch nor overlap.
///
/// IPv4 lives in the IPv4-mapped part of IPv6, so `10.1.2.3` and `::ffff:10.1.2.3` are one caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Networks {
    ranges: Box<[(u128, u128)]>,
}

/// One network in CIDR notation, its host bits cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Network {
    first: u128,
    /// Of 128, for IPv4 too.
    prefix_bits: u8,
}

/// Why a text is no network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkFault {
    /// The part before the slash is no address.
    NotAnAddress,
    /// The part after the slash is no prefix length of that address.
    BadPrefix,
    /// Bits below the prefix are set; most likely another network is meant.
    HostBits(Network),
}

// === impl Networks ===

impl Networks {
    /// The set of all addresses in `networks`.
    pub fn new(networks: &[Network]) -> Self {
        let mut ranges: Vec<_> = networks.iter().map(|network| network.range()).collect();
        ranges.sort_unstable();
        let mut merged: Vec<(u128, u128)> = Vec::with_capacity(ranges.len());
        for (first, last) in ranges {
            match merged.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
                _ => merged.push((first, last)),
            }
        }
        Self {
            ranges: merged.into(),
        }
    }

    /// Whether one of the networks holds `address`.
    pub fn holds(&self, address: IpAddr) -> bool {
        self.contains(as_bits(address))
    }

    /// The same of an address that is already read.
    pub(crate) fn contains(&self, address: u128) -> bool {
        let after = self.ranges.partition_point(|(first, _)| *first <= address);
        after
            .checked_sub(1)
            .is_some_and(|at| address <= self.ranges[at].1)
    }

    /// Whether every address of `other` is in this set.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        other.ranges.iter().all(|(first, last)| {
            let after = self.ranges.partition_point(|(start, _)| start <= first);
            after
                .checked_sub(1)
                .is_some_and(|at| *last <= self.ranges[at].1)
        })
    }
}

// === impl Network ===

impl Network {
    /// Reads `10.0.0.0/8`; an address alone is a network of one.
    pub(crate) fn parse(text: &str) -> Result<Self, NetworkFault> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| NetworkFault::NotAnAddress)?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let bits = prefix.map_or(Ok(width), |prefix| parse_prefix(prefix, width))?;
        let prefix_bits = bits + (128 - width);
        let first = as_bits(address);
        let network = Self {
            first: first & mask(prefix_bits),
            prefix_bits,
        };
        if network.first == first {
            Ok(network)
        } else {
            Err(NetworkFault::HostBits(network))
        }
    }

    /// Its first and its last address, as bits of IPv6; IPv4 addresses are mapped into it.
    pub const fn range(self) -> (u128, u128) {
        (self.first, self.first | !mask(self.prefix_bits))
    }
}

impl FromStr for Network {
    type Err = NetworkFault;

    fn from_str(text: &str) -> Result<Self, NetworkFault> {
        Self::parse(text)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = Ipv6Addr::from_bits(self.first);
        match address.to_ipv4_mapped() {
            Some(address) if self.prefix_bits >= 96 => {
                write!(f, "{address}/{}", self.prefix_bits - 96)
            }
            _ => write!(f, "{address}/{}", self.prefix_bits),
        }
    }
}

// === impl NetworkFault ===

impl fmt::Display for NetworkFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnAddress => {
                f.write_str("it is no network; write 10.0.0.0/8, 2001:db8::/32 or an address")
            }
            Self::BadPrefix => {
                f.write_str("the prefix after the `/` is 0 to 32 bits for IPv4, 0 to 128 for IPv6")
            }
            Self::HostBits(network) => {
                write!(
                    f,
                    "it has bits set below its prefix; {network} may be meant"
                )
            }
        }
    }
}

impl Error for NetworkFault {}

/// The address that a descriptor's value spells, if it spells one.
pub(crate) fn parse_address(value: &str) -> Option<u128> {
    value.parse().ok().map(as_bits)
}

fn as_bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

fn parse_prefix(text: &str, width: u8) -> Result<u8, NetworkFault> {
    let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let bits = is_digits.then(|| text.parse().ok()).flatten();
    bits.filter(|bits| *bits <= width)
        .ok_or(NetworkFault::BadPrefix)
}

const fn mask(prefix_bits: u8) -> u128 {
    match prefix_bits {
        0 => 0,
        bits => u128::MAX << (128 - bits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn networks(list: &[&str]) -> Networks {
        let list: Vec<_> = list
            .iter()
            .map(|text| Network::parse(text).expect(text))
            .collect();
        Networks::new(&list)
    }

    #[test]
    fn holds_addresses_of_both_families() {
        let check = |list: &[&str], address: &str, expected: bool| {
            let address = parse_address(address);
            let holds = address.is_some_and(|address| networks(list).contains(address));
            assert_eq!(holds, expected, "{list:?} {address:?}");
        };
        check(&["10.0.0.0/8"], "10.255.255.255", true);
        check(&["10.0.0.0/8"], "11.0.0.0", false);
        check(&["10.0.0.0/8"], "9.255.255.255", false);
        check(&["10.0.0.0/8"], "::ffff:10.1.2.3", true);
        check(&["::ffff:10.0.0.0/104"], "10.1.2.3", true);
        check(&["10.0.0.0/8"], "::10.1.2.3", false);
        check(&["0.0.0.0/0"], "255.255.255.255", true);
        check(&["0.0.0.0/0"], "2001:db8::1", false);
        check(&["::/0"], "1.2.3.4", true);
        check(&["2001:db8::/32"], "2001:db8:ffff::1", true);
        check(&["192.168.1.1"], "192.168.1.1", true);
        check(&["192.168.1.1"], "192.168.1.2", false);
        check(&["10.0.0.0/8", "192.168.0.0/16"], "192.168.3.4", true);
        check(&["10.0.0.0/8", "192.168.0.0/16"], "172.16.0.1", false);
        check(&["10.0.0.0/8"], "10.0.0.1:80", false);
        check(&["10.0.0.0/8"], "ten", false);
    }

    #[test]
    fn covers_smaller_sets() {
        let check = |wide: &[&str], narrow: &[&str], expected: bool| {
            assert_eq!(
                networks(wide).covers(&networks(narrow)),
                expected,
                "{wide:?} {narrow:?}"
            );
        };
        check(&["10.0.0.0/8"], &["10.1.0.0/16", "10.2.0.0/16"], true);
        check(&["10.1.0.0/16"], &["10.0.0.0/8"], false);
        check(&["10.0.0.0/9", "10.128.0.0/9"], &["10.0.0.0/8"], true);
        check(&["::/0"], &["0.0.0.0/0"], true);
    }

    #[test]
    fn refuses_what_is_no_network() {
        let check = |text, fault| assert_eq!(Network::parse(text), Err(fault), "{text}");
        check("ten/8", NetworkFault::NotAnAddress);
        check("", NetworkFault::NotAnAddress);
        check("10.0.0.0/33", NetworkFault::BadPrefix);
        check("10.0.0.0/", NetworkFault::BadPrefix);
        check("10.0.0.0/+8", NetworkFault::BadPrefix);
        check("::/129", NetworkFault::BadPrefix);
        let meant = Network::parse("10.1.0.0/16").expect("a network");
        check("10.1.2.3/16", NetworkFault::HostBits(meant));
    }

    #[test]
    fn prints_what_it_read() {
        let check = |text: &str, printed: &str| {
            assert_eq!(Network::parse(text).expect(text).to_string(), printed);
        };
        check("10.0.0.0/8", "10.0.0.0/8");
        check("10.0.0.1", "10.0.0.1/32");
        check("2001:db8::/32", "2001:db8::/32");
        check("::/0", "::/0");
        check("0.0.0.0/0", "0.0.0.0/0");
    }
}
