use proptest::prelude::*;

use super::*;

fn table(text: &str) -> LabelTable {
    LabelTable::read(text.as_bytes()).expect("a table")
}

fn check(text: &str, address: &str, expected: Option<&str>) {
    let address = address.parse().expect("an address");
    assert_eq!(table(text).find(address), expected, "{address} in {text}");
}

fn check_faults(text: &[u8], expected: &[(usize, &str)]) {
    let faults = LabelTable::read(text).expect_err("faults");
    let lines: Vec<String> = expected
        .iter()
        .map(|(line, fault)| format!("line {line}: {fault}"))
        .collect();
    assert_eq!(faults.to_string(), lines.join("\n"));
}

#[test]
fn the_smallest_network_counts() {
    let nested = "10.0.0.0/8,wide\n10.1.0.0/16,middle\n10.1.2.0/24,small\n10.1.2.3,host";
    check(nested, "9.255.255.255", None);
    check(nested, "10.0.0.0", Some("wide"));
    check(nested, "10.0.255.255", Some("wide"));
    check(nested, "10.1.0.0", Some("middle"));
    check(nested, "10.1.1.255", Some("middle"));
    check(nested, "10.1.2.2", Some("small"));
    check(nested, "10.1.2.3", Some("host"));
    check(nested, "10.1.2.4", Some("small"));
    check(nested, "10.1.3.0", Some("middle"));
    check(nested, "10.2.0.0", Some("wide"));
    check(nested, "10.255.255.255", Some("wide"));
    check(nested, "11.0.0.0", None);
    check("10.0.0.0/8,a\n10.0.0.0/9,b", "10.0.0.0", Some("b"));
    check("10.0.0.0/8,a\n10.128.0.0/9,b", "10.255.255.255", Some("b"));
    check("10.0.0.0/8,a\n10.128.0.0/9,b", "11.0.0.0", None);
    check("10.0.0.0/8,a\n11.0.0.0/8,b", "11.0.0.0", Some("b"));
}

#[test]
fn both_families_have_labels() {
    let table = "2001:db8::/32,six\n198.51.100.0/24,four\n::/0,rest\n";
    check(table, "2001:db8::1", Some("six"));
    check(table, "2001:db9::1", Some("rest"));
    check(table, "198.51.100.7", Some("four"));
    check(table, "::ffff:198.51.100.7", Some("four"));
    check("0.0.0.0/0,four", "255.255.255.255", Some("four"));
    check("0.0.0.0/0,four", "2001:db8::1", None);
    check(
        "::/0,all",
        "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        Some("all"),
    );
    check("", "192.0.2.1", None);
}

#[test]
fn comments_blanks_and_quotes_are_read() {
    let text = "# autonomous systems\r\n\r\n  192.0.2.0/24 , AS64500 \r\n198.51.100.0/24,\"AS64501, Inc.\"\n#end";
    check(text, "192.0.2.1", Some("AS64500"));
    check(text, "198.51.100.1", Some("AS64501, Inc."));
    assert_eq!(table(text).n_networks(), 2);
    assert_eq!(
        format!("{:?}", table(text)),
        "LabelTable { n_networks: 2, .. }"
    );
}

#[test]
fn all_faults_are_told_with_their_lines() {
    check_faults(
        b"192.0.2.0/24,a\n\n192.0.2.0\n# x\nhost,b\n192.0.2.1/24,c\n\xff,d\n192.0.2.0/24,e\n10.0.0.0/8,\n\
          11.0.0.0/8,a,b\n12.0.0.0/8,\"x\"y\"\n13.0.0.0/8,a\tb\n",
        &[
            (3, "no comma; write NETWORK,LABEL such as 203.0.113.0/24,AS64500"),
            (
                5,
                "`host`: it is no network; write 10.0.0.0/8, 2001:db8::/32 or an address",
            ),
            (
                6,
                "`192.0.2.1/24`: it has bits set below its prefix; 192.0.2.0/24 may be meant",
            ),
            (7, "the line is not UTF-8"),
            (8, "192.0.2.0/24 is already on line 1"),
            (9, "the label is 1 to 256 printable bytes, in quotes if it has a comma"),
            (10, "the label is 1 to 256 printable bytes, in quotes if it has a comma"),
            (11, "the label is 1 to 256 printable bytes, in quotes if it has a comma"),
            (12, "the label is 1 to 256 printable bytes, in quotes if it has a comma"),
        ],
    );
    let longest = "x".repeat(256);
    check(&format!("10.0.0.0/8,{longest}"), "10.0.0.1", Some(&longest));
    let label = "the label is 1 to 256 printable bytes, in quotes if it has a comma";
    check_faults(format!("10.0.0.0/8,{longest}x").as_bytes(), &[(1, label)]);
}

#[test]
fn a_file_full_of_faults_is_told_of_briefly() {
    let faults = LabelTable::read("x\n".repeat(1_000).as_bytes()).expect_err("faults");
    assert_eq!((faults.faults.len(), faults.n_omitted), (100, 900));
    assert!(faults.to_string().ends_with("\nand 900 more"));
}

#[test]
fn tables_are_bounded() {
    let large = vec![b'#'; MAX_FILE_BYTES + 1];
    let too_large = "the table has more than 134217728 bytes";
    check_faults(&large, &[(1, too_large)]);
}

/// A million networks, as a table of all autonomous systems has.
#[test]
fn a_million_networks_are_read() {
    let line = |network: u32| {
        let [_, first, second, third] = network.to_be_bytes();
        let label = network % 70_000;
        format!("2001:{first:x}:{second:x}{third:02x}::/48,AS{label}\n")
    };
    let table = table(&(0..1_000_000).map(line).collect::<String>());
    assert_eq!(table.n_networks(), 1_000_000);
    let address = "2001:f:423f::1".parse().expect("an address");
    let expected = format!("AS{}", 999_999 % 70_000);
    assert_eq!(table.find(address), Some(expected.as_str()));
    let behind = "2001:f:4240::1".parse().expect("an address");
    assert_eq!(table.find(behind), None);
}

proptest! {
    /// The table agrees with a search through all its lines.
    #[test]
    fn a_table_says_what_its_lines_say(
        networks in prop::collection::btree_map((0_u8..4, 0_u8..4, 24_u32..=32), 0_u8..3, 0..12),
        addresses in prop::collection::vec((0_u8..5, 0_u8..8), 20),
    ) {
        let mut lines: Vec<(u32, u32, String)> = Vec::new();
        for ((third, last, bits), label) in networks {
            let mask = u32::MAX << (32 - bits);
            let first = u32::from_be_bytes([10, 0, third, last]) & mask;
            if !lines.iter().any(|(other, other_bits, _)| (*other, *other_bits) == (first, bits)) {
                lines.push((first, bits, label.to_string()));
            }
        }
        let text: Vec<String> = lines
            .iter()
            .map(|(first, bits, label)| format!("{}/{bits},{label}", std::net::Ipv4Addr::from_bits(*first)))
            .collect();
        let table = table(&text.join("\n"));
        for (third, last) in addresses {
            let address = u32::from_be_bytes([10, 0, third, last]);
            let holds = |(first, bits, _): &&(u32, u32, String)| address & (u32::MAX << (32 - bits)) == *first;
            let smallest = lines.iter().filter(holds).max_by_key(|(_, bits, _)| *bits);
            let expected = smallest.map(|(_, _, label)| label.as_str());
            prop_assert_eq!(table.find(std::net::Ipv4Addr::from_bits(address).into()), expected);
        }
    }
}
