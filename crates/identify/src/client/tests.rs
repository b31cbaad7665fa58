//! The known ways around a limit by address, each by its name, and what holds of any header.

use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;

/// Trusts `10.0.0.0/8` and `2001:db8:ffff::/48`, reads `header`.
fn trusting(header: AddressHeader) -> ClientAddress {
    let proxies = ["10.0.0.0/8", "2001:db8:ffff::/48"];
    let proxies = proxies
        .iter()
        .map(|text| text.parse::<Proxy>().expect("a proxy"));
    ClientAddress {
        trust: Trust::Proxies(proxies.collect()),
        header,
    }
}

fn hops(count: u8) -> ClientAddress {
    ClientAddress {
        trust: Trust::Hops(NonZeroU8::new(count).expect("not zero")),
        header: AddressHeader::XForwardedFor,
    }
}

fn find(config: &ClientAddress, peer: &str, lines: &[&str]) -> String {
    let peer = match peer {
        "unix" => Peer::Unix,
        address => Peer::Address(address.parse().expect("an address")),
    };
    let found = config.find(peer, lines.iter().map(|line| line.as_bytes()));
    found.map_or_else(|| "nobody".to_owned(), |address| address.to_string())
}

/// From a proxy at 10.0.0.1 that writes `X-Forwarded-For`.
fn check(lines: &[&str], expected: &str) {
    let config = trusting(AddressHeader::XForwardedFor);
    assert_eq!(find(&config, "10.0.0.1", lines), expected, "{lines:?}");
}

/// From a proxy at 10.0.0.1 that writes `Forwarded`.
fn check_forwarded(lines: &[&str], expected: &str) {
    let config = trusting(AddressHeader::Forwarded);
    assert_eq!(find(&config, "10.0.0.1", lines), expected, "{lines:?}");
}

// === the ordinary ===

#[test]
fn a_trusted_proxy_is_believed() {
    check(&["203.0.113.7"], "203.0.113.7");
    check(&["203.0.113.7, 10.0.0.2"], "203.0.113.7");
    check(&["2001:db8::7, 2001:db8:ffff::1, 10.0.0.2"], "2001:db8::7");
    check_forwarded(
        &["for=203.0.113.7;proto=https, for=10.0.0.2"],
        "203.0.113.7",
    );
}

#[test]
fn without_a_header_the_peer_counts() {
    check(&[], "10.0.0.1");
    check_forwarded(&[], "10.0.0.1");
}

#[test]
fn if_all_are_trusted_the_leftmost_counts() {
    check(&["10.0.0.9, 10.0.0.8"], "10.0.0.9");
    check_forwarded(&["for=10.0.0.9, for=10.0.0.8"], "10.0.0.9");
}

#[test]
fn by_default_only_this_machine_is_trusted() {
    let config = ClientAddress::default();
    for peer in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "unix"] {
        assert_eq!(find(&config, peer, &["203.0.113.7"]), "203.0.113.7");
    }
    for peer in ["10.0.0.1", "2001:db8::1", "198.51.100.1"] {
        assert_eq!(find(&config, peer, &["203.0.113.7"]), peer);
    }
}

#[test]
fn a_unix_socket_is_trusted_only_by_name() {
    let config = trusting(AddressHeader::XForwardedFor);
    assert_eq!(find(&config, "unix", &["203.0.113.7"]), "nobody");
    let config = ClientAddress::default();
    assert_eq!(find(&config, "unix", &[]), "nobody");
}

#[test]
fn what_is_no_proxy_says_what_to_write() {
    let check = |text: &str, expected: &str| {
        let fault = text.parse::<Proxy>().expect_err(text);
        assert!(fault.to_string().contains(expected), "{fault}");
    };
    check("proxy.example", "write a network such as 10.0.0.0/8, an");
    check("10.0.0.1/8", "10.0.0.0/8 may be meant");
    check("10.0.0.0/33", "0 to 32 bits");
}

#[test]
fn hops_are_counted_from_the_right() {
    let lines = ["6.6.6.6, 203.0.113.7, 198.51.100.2"];
    assert_eq!(find(&hops(1), "192.0.2.1", &lines), "198.51.100.2");
    assert_eq!(find(&hops(2), "192.0.2.1", &lines), "203.0.113.7");
    assert_eq!(find(&hops(2), "unix", &lines), "203.0.113.7");
    // Who came past some of the proxies is not taken for one of them.
    assert_eq!(find(&hops(9), "192.0.2.1", &lines), "6.6.6.6");
    assert_eq!(find(&hops(2), "192.0.2.1", &[]), "192.0.2.1");
    assert_eq!(
        find(&hops(2), "192.0.2.1", &["unknown, 203.0.113.7"]),
        "203.0.113.7"
    );
}

#[test]
fn a_header_with_one_address_counts_from_a_trusted_peer() {
    let config = trusting("CF-Connecting-IP".into());
    assert_eq!(config.header.name(), "cf-connecting-ip");
    assert_eq!(find(&config, "10.0.0.1", &["203.0.113.7"]), "203.0.113.7");
    assert_eq!(find(&config, "10.0.0.1", &["[2001:db8::7]"]), "2001:db8::7");
    assert_eq!(find(&config, "10.0.0.1", &["10.7.7.7"]), "10.7.7.7");
    assert_eq!(
        find(&config, "198.51.100.1", &["203.0.113.7"]),
        "198.51.100.1"
    );
    for lines in [
        &["6.6.6.6, 203.0.113.7"][..],
        &["6.6.6.6", "203.0.113.7"],
        &[""],
        &[],
    ] {
        assert_eq!(find(&config, "10.0.0.1", lines), "10.0.0.1", "{lines:?}");
    }
}

// === the known ways around ===

#[test]
fn bypass_spoofed_leftmost() {
    check(&["6.6.6.6, 203.0.113.7"], "203.0.113.7");
    check(
        &["127.0.0.1, 10.0.0.5, 203.0.113.7, 10.0.0.2"],
        "203.0.113.7",
    );
    check_forwarded(&["for=6.6.6.6, for=203.0.113.7"], "203.0.113.7");
}

#[test]
fn bypass_untrusted_peer() {
    for header in ["x-forwarded-for", "forwarded", "x-real-ip"] {
        let config = trusting(header.into());
        for line in ["6.6.6.6", "for=6.6.6.6"] {
            assert_eq!(find(&config, "198.51.100.1", &[line]), "198.51.100.1");
        }
    }
}

#[test]
fn bypass_duplicate_header_lines() {
    check(&["6.6.6.6", "203.0.113.7"], "203.0.113.7");
    check(&["6.6.6.6", "203.0.113.7", "10.0.0.2"], "203.0.113.7");
    check_forwarded(&["for=6.6.6.6", "for=203.0.113.7"], "203.0.113.7");
}

#[test]
fn bypass_spaces() {
    check(&["6.6.6.6 ,\t 203.0.113.7 \t"], "203.0.113.7");
    // Two addresses without a comma are none.
    check(&["6.6.6.6 203.0.113.7"], "10.0.0.1");
    check_forwarded(&["for=6.6.6.6 , \t for=203.0.113.7 "], "203.0.113.7");
}

#[test]
fn bypass_empty_elements() {
    check(&["6.6.6.6,,203.0.113.7"], "203.0.113.7");
    // A proxy that names nobody ends the walk; what stands left of it is anybody's.
    check(&["6.6.6.6, "], "10.0.0.1");
    check(&["6.6.6.6", ""], "10.0.0.1");
    check(&["6.6.6.6,,10.0.0.2"], "10.0.0.2");
    check_forwarded(&["for=6.6.6.6,,for=10.0.0.2"], "10.0.0.2");
}

#[test]
fn bypass_ports_and_quoted_ports() {
    check(&["203.0.113.7:1234"], "203.0.113.7");
    check(&["203.0.113.7:4321, 10.0.0.2:80"], "203.0.113.7");
    check(&["[2001:db8::7]:1234"], "2001:db8::7");
    check_forwarded(&["for=\"203.0.113.7:1234\""], "203.0.113.7");
    check_forwarded(
        &["for=\"[2001:db8::7]:1234\", for=\"10.0.0.2:_x\""],
        "2001:db8::7",
    );
}

#[test]
fn bypass_case_and_zone() {
    for text in [
        "2001:DB8::ABCD",
        "2001:0db8:0:0::abcd",
        "[2001:db8::abcd]",
        "2001:db8::abcd%eth1",
    ] {
        check(&[text], "2001:db8::abcd");
    }
    check_forwarded(&["FOR=\"[2001:DB8::ABCD]\""], "2001:db8::abcd");
}

#[test]
fn bypass_unknown_and_obfuscated() {
    check(&["6.6.6.6, unknown"], "10.0.0.1");
    check(&["6.6.6.6, unknown, 10.0.0.2"], "10.0.0.2");
    check(&["6.6.6.6, _hidden, 10.0.0.2"], "10.0.0.2");
    check_forwarded(&["for=6.6.6.6, for=unknown, for=10.0.0.2"], "10.0.0.2");
    check_forwarded(&["for=6.6.6.6, for=_SEVKISEK, for=10.0.0.2"], "10.0.0.2");
    check_forwarded(&["for=6.6.6.6, proto=https"], "10.0.0.1");
}

#[test]
fn bypass_zero_padded_octets() {
    check(&["6.6.6.6, 010.0.0.2"], "10.0.0.1");
    check(&["6.6.6.6, 10.0.0.02"], "10.0.0.1");
}

#[test]
fn bypass_mapped_addresses_all_in_one_bucket() {
    // Masked to /64 before it is unmapped, every IPv4 client would be `::`.
    check(&["::ffff:203.0.113.7"], "203.0.113.7");
    check(&["::ffff:cb00:7107"], "203.0.113.7");
    check(&["64:ff9b::203.0.113.7"], "203.0.113.7");
    let config = trusting(AddressHeader::XForwardedFor);
    assert_eq!(find(&config, "::ffff:198.51.100.1", &[]), "198.51.100.1");
    assert_eq!(find(&config, "64:ff9b::198.51.100.1", &[]), "198.51.100.1");
}

#[test]
fn bypass_mapped_proxies() {
    let config = trusting(AddressHeader::XForwardedFor);
    let lines = ["6.6.6.6, 203.0.113.7, ::ffff:10.0.0.2"];
    assert_eq!(find(&config, "::ffff:10.0.0.1", &lines), "203.0.113.7");
    // Behind a NAT64 10.0.0.1 is a stranger's.
    assert_eq!(find(&config, "64:ff9b::10.0.0.1", &["6.6.6.6"]), "10.0.0.1");
    assert_eq!(find(&config, "::10.0.0.1", &["6.6.6.6"]), "::a00:1");
}

#[test]
fn bypass_quotes_that_never_close() {
    check_forwarded(&["for=\"6.6.6.6, for=203.0.113.7"], "203.0.113.7");
    check_forwarded(&["for=\"", "for=203.0.113.7"], "203.0.113.7");
    check_forwarded(&["for=\"x, for=\"[2001:db8::7]:1\""], "2001:db8::7");
    check_forwarded(&["for=203.0.113.7;host=\"a, for=6.6.6.6\""], "203.0.113.7");
    check_forwarded(&["for=203.0.113.7;host=\"a\\\", for=6.6.6.6\""], "10.0.0.1");
}

#[test]
fn bypass_both_headers() {
    // A header that is not configured is not even asked for; its form is not understood either.
    check(&["for=6.6.6.6"], "10.0.0.1");
    check_forwarded(&["6.6.6.6"], "10.0.0.1");
}

#[test]
fn bypass_huge_headers() {
    let commas = ",".repeat(1 << 20);
    check(&[&commas, "203.0.113.7"], "203.0.113.7");
    check(&[&commas], "10.0.0.1");
    check(&[&"6".repeat(1 << 20), "10.0.0.2"], "10.0.0.2");
    check_forwarded(&[&"\"".repeat(1 << 20), "for=203.0.113.7"], "203.0.113.7");
    let many = vec!["10.0.0.3"; 100_000].join(",");
    check(&[&format!("6.6.6.6,{many}")], "10.0.0.3");
    assert_eq!(
        find(&hops(255), "10.0.0.1", &[&format!("6.6.6.6,{many}")]),
        "10.0.0.3"
    );
}

// === properties ===

/// What a client may send: addresses of all kinds, separators, quotes, and any bytes.
fn junk() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"10.0.0.2".to_vec()),
        Just(b"6.6.6.6".to_vec()),
        Just(b"for=".to_vec()),
        Just(b"for=\"[2001:db8::1]:80\"".to_vec()),
        Just(b",".to_vec()),
        Just(b";".to_vec()),
        Just(b"\"".to_vec()),
        Just(b"\\".to_vec()),
        Just(b" ".to_vec()),
        prop::collection::vec(any::<u8>(), 0..8),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// A client that is none of the trusted proxies.
fn stranger() -> impl Strategy<Value = IpAddr> {
    any::<u32>()
        .prop_map(Ipv4Addr::from_bits)
        .prop_filter("a proxy", |address| address.octets()[0] != 10)
        .prop_map(IpAddr::V4)
}

proptest! {
    /// Whatever a client sends, the address that a trusted proxy appended is the one that counts.
    #[test]
    fn no_client_chooses_its_address(
        sent in prop::collection::vec(junk(), 0..3),
        client in stranger(),
        in_own_line in any::<bool>(),
        is_forwarded in any::<bool>(),
    ) {
        let (header, told) = if is_forwarded {
            (AddressHeader::Forwarded, format!("for=\"{client}:80\", for=10.0.0.2"))
        } else {
            (AddressHeader::XForwardedFor, format!("{client}, 10.0.0.2"))
        };
        let mut lines = sent;
        match lines.last_mut() {
            Some(last) if !in_own_line => {
                last.extend_from_slice(b", ");
                last.extend_from_slice(told.as_bytes());
            }
            _ => lines.push(told.into_bytes()),
        }
        let peer = Peer::Address(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)));
        let found = trusting(header).find(peer, lines.iter().map(Vec::as_slice));
        prop_assert_eq!(found, Some(client));
    }

    /// A peer that is not trusted is itself, whatever it sends.
    #[test]
    fn a_stranger_is_itself(sent in prop::collection::vec(junk(), 0..3), peer in stranger()) {
        for header in ["x-forwarded-for", "forwarded", "x-real-ip"] {
            let lines = sent.iter().map(Vec::as_slice);
            let found = trusting(header.into()).find(Peer::Address(peer), lines);
            prop_assert_eq!(found, Some(peer));
        }
    }

    /// By hops, too, nothing that stands left of the counted elements changes anything.
    #[test]
    fn no_client_shifts_the_count(sent in junk(), client in stranger()) {
        let line = [sent, format!(",{client}, 192.0.2.9").into_bytes()].concat();
        let found = hops(2).find(Peer::Unix, [line.as_slice()]);
        prop_assert_eq!(found, Some(client));
    }
}
