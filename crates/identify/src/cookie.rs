//! Cookies of a request (RFC 6265, section 5.4).

use std::borrow::Cow;

use crate::Headers;

/// The value of the first cookie with this name.
pub(crate) fn find<'a>(headers: &'a dyn Headers, name: &str) -> Option<Cow<'a, str>> {
    match headers.value("cookie")?.text {
        Cow::Borrowed(line) => value(line, name).map(Cow::Borrowed),
        Cow::Owned(line) => value(&line, name).map(|value| Cow::Owned(value.to_owned())),
    }
}

fn value<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let value = line.split(';').find_map(|pair| {
        let (its_name, value) = pair.split_once('=')?;
        (its_name.trim_ascii() == name).then(|| value.trim_ascii())
    })?;
    let unquoted = value
        .strip_prefix('"')
        .and_then(|value| value.strip_suffix('"'));
    Some(unquoted.unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_cookie_of_a_name_counts() {
        let check = |line: &str, expected: Option<&str>| {
            assert_eq!(value(line, "id"), expected, "{line}");
        };
        check("id=7", Some("7"));
        check("a=1; id=7; id=8", Some("7"));
        check("a=1;id=7", Some("7"));
        check(" id = 7 ;a=1", Some("7"));
        check("id=a=b", Some("a=b"));
        check("id=\"7\"", Some("7"));
        check("id=\"", Some("\""));
        check("id=", Some(""));
        check("x=id=7; ID=8; xid=9; id", None);
        check("", None);
    }
}
