//! The subject of a client's certificate as text (RFC 4514), such as `CN=alice,O=Example`.
//!
//! The certificate was verified before, so its bytes are those of a CA that we trust; they are read with the same care all the same.

use std::fmt::Write as _;

/// The longest subject that is read; longer ones have no text.
const MAX_BYTES: usize = 4_096;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_IDENTIFIER: u8 = 0x06;

/// Object identifiers with a short name (RFC 4514, section 3).
const NAMES: [(&[u8], &str); 9] = [
    (&[0x55, 4, 3], "CN"),
    (&[0x55, 4, 6], "C"),
    (&[0x55, 4, 7], "L"),
    (&[0x55, 4, 8], "ST"),
    (&[0x55, 4, 9], "STREET"),
    (&[0x55, 4, 10], "O"),
    (&[0x55, 4, 11], "OU"),
    (
        &[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25],
        "DC",
    ),
    (
        &[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1],
        "UID",
    ),
];

/// The text of a subject, given the DER inside its outermost sequence. `None` if it is empty, too long or malformed.
pub(super) fn text(der: &[u8]) -> Option<String> {
    if der.is_empty() || der.len() > MAX_BYTES {
        return None;
    }
    let mut parts = Vec::new();
    let mut rest = der;
    while !rest.is_empty() {
        let (SET, set, after) = element(rest)? else {
            return None;
        };
        parts.push(relative_name(set)?);
        rest = after;
    }
    // The most specific part stands last in the certificate and first in the text.
    parts.reverse();
    Some(parts.join(","))
}

/// `CN=alice`, or several such joined by `+`.
fn relative_name(set: &[u8]) -> Option<String> {
    let mut attributes = Vec::new();
    let mut rest = set;
    while !rest.is_empty() {
        let (SEQUENCE, attribute, after) = element(rest)? else {
            return None;
        };
        let (OBJECT_IDENTIFIER, identifier, value) = element(attribute)? else {
            return None;
        };
        let (tag, value, _) = element(value)?;
        attributes.push(format!("{}={}", name(identifier), shown(tag, value)));
        rest = after;
    }
    Some(attributes.join("+"))
}

fn name(identifier: &[u8]) -> String {
    let known = NAMES.iter().find(|(known, _)| *known == identifier);
    match known {
        Some((_, name)) => (*name).to_owned(),
        None => format!("OID.{}", hex(identifier)),
    }
}

/// Text is escaped, everything else is shown as hexadecimal digits.
fn shown(tag: u8, value: &[u8]) -> String {
    // UTF8String, PrintableString, TeletexString, IA5String.
    let is_text = matches!(tag, 0x0c | 0x13 | 0x14 | 0x16);
    match std::str::from_utf8(value) {
        Ok(text) if is_text => escaped(text),
        _ => format!("#{}", hex(value)),
    }
}

fn escaped(text: &str) -> String {
    let last = text.chars().count().saturating_sub(1);
    let mut escaped = String::with_capacity(text.len());
    for (index, character) in text.chars().enumerate() {
        let is_edge =
            (index == 0 && matches!(character, ' ' | '#')) || (index == last && character == ' ');
        match character {
            ',' | '+' | '"' | '\\' | '<' | '>' | ';' => escaped.extend(['\\', character]),
            character if is_edge => escaped.extend(['\\', character]),
            character if character.is_control() => {
                // Writing to a string does not fail.
                let _ = write!(escaped, "\\{:02X}", u32::from(character));
            }
            character => escaped.push(character),
        }
    }
    escaped
}

/// The tag and content of the first element, and the bytes after it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81 => (usize::from(*rest.first()?), rest.get(1..)?),
        0x82 => {
            let high = usize::from(*rest.first()?);
            (high << 8 | usize::from(*rest.get(1)?), rest.get(2..)?)
        }
        _ => return None,
    };
    let (content, after) = rest.split_at_checked(length)?;
    Some((tag, content, after))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
    use webpki::EndEntityCert;

    use super::text;

    fn check(attributes: &[(DnType, &str)], expected: Option<&str>) {
        let mut subject = DistinguishedName::new();
        for (kind, value) in attributes {
            subject.push(kind.clone(), *value);
        }
        let mut params = CertificateParams::default();
        params.distinguished_name = subject;
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let parsed = EndEntityCert::try_from(certificate.der()).unwrap();
        assert_eq!(text(parsed.subject()).as_deref(), expected);
    }

    #[test]
    fn subjects_are_told_the_most_specific_part_first() {
        let organization = (DnType::OrganizationName, "Example, Inc.");
        let common = (DnType::CommonName, "alice");
        check(&[organization, common], Some("CN=alice,O=Example\\, Inc."));
        check(&[(DnType::CommonName, " #x ")], Some("CN=\\ #x\\ "));
        check(&[], None);
    }

    #[test]
    fn no_bytes_make_it_panic() {
        for length in 0..=255_u8 {
            let bytes = [0x31, length, 0x30, length, 0x06, 0x82, length];
            for end in 0..bytes.len() {
                let _ = text(&bytes[..end]);
            }
        }
    }
}
