//! Any lines of `X-Forwarded-For` and `Forwarded`: no client chooses the address that it is known by.

#![no_main]

use std::net::IpAddr;

use libfuzzer_sys::fuzz_target;
use tidegate_identify::{AddressHeader, ClientAddress, Peer};

const PROXY: &str = "127.0.0.1";
const CLIENT: &str = "203.0.113.7";

fuzz_target!(|bytes: &[u8]| {
    let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    for (header, told) in [
        (AddressHeader::XForwardedFor, format!(", {CLIENT}, ::1")),
        (
            AddressHeader::Forwarded,
            format!(", for=\"{CLIENT}:80\";proto=http, for=\"[::1]\""),
        ),
        (AddressHeader::Single("x-real-ip".to_owned()), String::new()),
    ] {
        let config = ClientAddress {
            header,
            ..ClientAddress::default()
        };
        let find = |peer: &str, lines: &[&[u8]]| config.find(peer_at(peer), lines.iter().copied());
        // A stranger is itself, whatever it sends.
        assert_eq!(find(CLIENT, &lines), address(CLIENT));
        // A proxy names somebody, whatever it sends.
        assert!(find(PROXY, &lines).is_some());
        // What a proxy appends counts, whatever stands before it.
        if let Some((last, before)) = lines.split_last().filter(|_| !told.is_empty()) {
            let appended = [last, told.as_bytes()].concat();
            let lines = [before, &[appended.as_slice()]].concat();
            assert_eq!(find(PROXY, &lines), address(CLIENT));
        }
    }
});

fn address(text: &str) -> Option<IpAddr> {
    text.parse().ok()
}

fn peer_at(text: &str) -> Peer {
    address(text).map_or(Peer::Unix, Peer::Address)
}
