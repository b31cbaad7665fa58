//! Finding the address of a client allocates nothing, whatever the header looks like.

use allocation_counter::measure;
use tidegate_identify::{AddressHeader, ClientAddress, Peer};

#[test]
fn finding_an_address_allocates_nothing() {
    let proxy = Peer::Address("127.0.0.1".parse().unwrap());
    let client = "203.0.113.7".parse().ok();
    let long = "::1, ".repeat(30);
    let x_forwarded_for = format!("6.6.6.6, 203.0.113.7, {long}127.0.0.1");
    let forwarded = "for=\"6, for=203.0.113.7;proto=https, for=\"[::1]:4711\"";
    for (header, line) in [
        (AddressHeader::XForwardedFor, x_forwarded_for.as_str()),
        (AddressHeader::Forwarded, forwarded),
        (AddressHeader::from("x-real-ip"), "::ffff:203.0.113.7"),
    ] {
        let config = ClientAddress {
            header,
            ..ClientAddress::default()
        };
        let allocated = measure(|| {
            assert_eq!(config.find(proxy, [line.as_bytes()]), client);
        });
        assert_eq!(allocated.count_total, 0, "{line}");
    }
}
