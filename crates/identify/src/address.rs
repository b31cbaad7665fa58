//! One address as proxies write it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str;

/// The well-known prefix of NAT64 (RFC 6052), `64:ff9b::/96`, without its last 32 bits.
const NAT64: u128 = 0x0064_ff9b << 96;

/// Where the IPv4 address of a NAT64 address lies.
const LOW_32: u128 = 0xffff_ffff;

/// Reads an address with whatever a proxy puts around it: a port, brackets, a zone.
///
/// `None` for anything else, `unknown` and octets with leading zeros included: one program reads
/// `010.0.0.1` as 10.0.0.1, another as 8.0.0.1.
pub(crate) fn parse(text: &[u8]) -> Option<IpAddr> {
    let text = str::from_utf8(text.trim_ascii()).ok()?;
    if let Some(bracketed) = text.strip_prefix('[') {
        let (inside, rest) = bracketed.split_once(']')?;
        let is_ended = rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
        return ipv6(inside).filter(|_| is_ended).map(IpAddr::V6);
    }
    if let Some(address) = ipv6(text) {
        return Some(IpAddr::V6(address));
    }
    let address = match text.split_once(':') {
        Some((address, port)) if is_port(port) => address,
        Some(_) => return None,
        None => text,
    };
    address.parse().ok().map(IpAddr::V4)
}

/// An IPv4 address that came in the clothes of IPv6, mapped or through a NAT64, as itself.
///
/// Not for questions of trust: `64:ff9b::10.0.0.1` is no host of ours.
pub(crate) fn unmap(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => nat64(address).map_or(IpAddr::V6(address), IpAddr::V4),
        address @ IpAddr::V4(_) => address,
    }
}

fn nat64(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let bits = address.to_bits();
    let low = u32::try_from(bits & LOW_32).ok()?;
    (bits & !LOW_32 == NAT64).then(|| Ipv4Addr::from_bits(low))
}

/// An IPv6 address, without its zone: a zone means something only to the host that wrote it.
fn ipv6(text: &str) -> Option<Ipv6Addr> {
    let address = text.split_once('%').map_or(text, |(address, _)| address);
    address.parse().ok()
}

/// A port, or an obfuscated one (RFC 7239, section 6.3).
fn is_port(text: &str) -> bool {
    let is_obfuscated = |text: &str| {
        let is_taken = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        !text.is_empty() && text.bytes().all(is_taken)
    };
    match text.strip_prefix('_') {
        Some(rest) => is_obfuscated(rest),
        None => text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<&str>) {
        let expected = expected.map(|text| text.parse::<IpAddr>().expect("an address"));
        assert_eq!(parse(text.as_bytes()), expected, "{text:?}");
    }

    #[test]
    fn reads_what_proxies_write() {
        check("203.0.113.7", Some("203.0.113.7"));
        check(" \t203.0.113.7 ", Some("203.0.113.7"));
        check("203.0.113.7:49152", Some("203.0.113.7"));
        check("203.0.113.7:_port", Some("203.0.113.7"));
        check("2001:db8::1", Some("2001:db8::1"));
        check("2001:DB8:0:0::1", Some("2001:db8::1"));
        check("[2001:db8::1]", Some("2001:db8::1"));
        check("[2001:db8::1]:443", Some("2001:db8::1"));
        check("fe80::1%eth0", Some("fe80::1"));
        check("[fe80::1%25eth0]:80", Some("fe80::1"));
        check("::ffff:203.0.113.7", Some("::ffff:203.0.113.7"));
    }

    #[test]
    fn refuses_everything_else() {
        for text in [
            "",
            " ",
            "unknown",
            "_hidden",
            "localhost",
            "-",
            "1.2.3",
            "1.2.3.4.5",
            "256.1.1.1",
            "1.2.3.4:",
            "1.2.3.4:65536",
            "1.2.3.4:+80",
            "1.2.3.4:80:80",
            "1.2.3.4 5.6.7.8",
            "[1.2.3.4]",
            "[2001:db8::1",
            "[2001:db8::1]443",
            "[2001:db8::1]:",
            "2001:db8::1]",
            "[]",
            "[",
            "1.2.3.4:_",
            "1.2.3.4%eth0",
            "0x7f.1",
            "2130706433",
            "\"1.2.3.4\"",
        ] {
            check(text, None);
        }
        assert_eq!(parse(b"\xff\xfe"), None);
    }

    #[test]
    fn octets_with_leading_zeros_are_no_address() {
        check("010.0.0.1", None);
        check("10.0.0.01", None);
        check("00.0.0.0", None);
    }

    #[test]
    fn unmaps_ipv4() {
        let check = |text: &str, expected: &str| {
            let address: IpAddr = text.parse().expect("an address");
            assert_eq!(unmap(address).to_string(), expected);
        };
        check("192.0.2.1", "192.0.2.1");
        check("::ffff:192.0.2.1", "192.0.2.1");
        check("::ffff:c000:201", "192.0.2.1");
        check("64:ff9b::192.0.2.1", "192.0.2.1");
        check("64:ff9b:1::c000:201", "64:ff9b:1::c000:201");
        check("::1", "::1");
        check("::", "::");
        check("2001:db8::1", "2001:db8::1");
    }
}
