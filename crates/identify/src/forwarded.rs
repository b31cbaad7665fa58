//! One element of a `Forwarded` header (RFC 7239): `for="[2001:db8::1]:4711";proto=https`.

use std::net::IpAddr;

use crate::address;

/// The address in the element's `for`, if it has one and it is an address.
pub(crate) fn parse(element: &[u8]) -> Option<IpAddr> {
    let mut found = None;
    let mut rest = Some(element);
    while let Some(text) = rest {
        let (pair, after) = split_pair(text);
        rest = after;
        if pair.is_empty() {
            continue;
        }
        let (name, value) = name_and_value(pair)?;
        if name.eq_ignore_ascii_case(b"for") && found.replace(value).is_some() {
            // Two of them: who wrote which?
            return None;
        }
    }
    address::parse(found?)
}

/// The first pair without the spaces around it, and what follows its semicolon.
fn split_pair(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    let mut is_quoted = false;
    let end = text.iter().position(|byte| {
        is_quoted ^= *byte == b'"';
        *byte == b';' && !is_quoted
    });
    match end {
        Some(end) => (text[..end].trim_ascii(), Some(&text[end + 1..])),
        None => (text.trim_ascii(), None),
    }
}

fn name_and_value(pair: &[u8]) -> Option<(&[u8], &[u8])> {
    let equals = pair.iter().position(|byte| *byte == b'=')?;
    Some((&pair[..equals], unquote(&pair[equals + 1..])?))
}

/// The text of a token or of a quoted string. One with quotes inside is neither.
fn unquote(value: &[u8]) -> Option<&[u8]> {
    let inside = match value {
        [b'"', inside @ .., b'"'] => inside,
        token => token,
    };
    (!inside.contains(&b'"')).then_some(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(element: &str, expected: Option<&str>) {
        let expected = expected.map(|text| text.parse::<IpAddr>().expect("an address"));
        assert_eq!(parse(element.as_bytes()), expected, "{element}");
    }

    #[test]
    fn reads_the_examples_of_the_rfc() {
        check("for=192.0.2.43", Some("192.0.2.43"));
        check(
            "For=\"[2001:db8:cafe::17]:4711\"",
            Some("2001:db8:cafe::17"),
        );
        check(
            "for=192.0.2.60;proto=http;by=203.0.113.43",
            Some("192.0.2.60"),
        );
        check(" for=\"192.0.2.43:47011\"", Some("192.0.2.43"));
        check(
            "by=203.0.113.43; FOR=192.0.2.60 ;host=\"a;for=6.6.6.6\"",
            Some("192.0.2.60"),
        );
        check("for=\"192.0.2.43:_p\"", Some("192.0.2.43"));
        check(";for=192.0.2.43;;", Some("192.0.2.43"));
    }

    #[test]
    fn whom_it_does_not_name_it_does_not_name() {
        for element in [
            "",
            "for=",
            "for=\"\"",
            "for=unknown",
            "for=\"unknown\"",
            "for=_gazonk",
            "for=\"_SEVKISEK\"",
            "by=192.0.2.43",
            "proto=https",
            "192.0.2.43",
            "for =192.0.2.43",
            "for=\"192.0.2.43",
            "for=192.0.2.43\"",
            "for=\"a\"192.0.2.43\"",
            "for:192.0.2.43",
        ] {
            check(element, None);
        }
    }

    #[test]
    fn two_in_one_element_name_nobody() {
        check("for=192.0.2.1;for=192.0.2.2", None);
        check("for=192.0.2.1;proto=http;FOR=192.0.2.1", None);
    }
}
