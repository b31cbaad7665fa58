//! Cookies of a request (RFC 6265, section 5.4).

use std::borrow::Cow;

use crate::Headers;
use crate::value_list::{AmbiguousValue, ListPlace};

/// The value of the cookie with this name.
///
/// # Errors
///
/// If there are several with differing values.
pub(crate) fn find<'a>(
    headers: &'a dyn Headers,
    name: &str,
) -> Result<Option<Cow<'a, str>>, AmbiguousValue> {
    let Some(line) = headers.value("cookie") else {
        return Ok(None);
    };
    Ok(match line.text {
        Cow::Borrowed(line) => only(line, name)?.map(Cow::Borrowed),
        Cow::Owned(line) => only(&line, name)?.map(|value| Cow::Owned(value.to_owned())),
    })
}

fn only<'a>(line: &'a str, name: &str) -> Result<Option<&'a str>, AmbiguousValue> {
    let values = line.split(';').filter_map(|pair| value_of(pair, name));
    ListPlace::Cookie.only(name, values)
}

/// The value of `pair`, if it is a cookie with this name.
pub(crate) fn value_of<'a>(pair: &'a str, name: &str) -> Option<&'a str> {
    let (its_name, value) = pair.split_once('=')?;
    if its_name.trim_ascii() != name {
        return None;
    }
    let value = value.trim_ascii();
    let unquoted = value
        .strip_prefix('"')
        .and_then(|value| value.strip_suffix('"'));
    Some(unquoted.unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_has_one_value() {
        let check = |line: &str, expected: Option<&str>| {
            assert_eq!(only(line, "id"), Ok(expected), "{line}");
        };
        check("id=7", Some("7"));
        check("a=1; id=7; id=7", Some("7"));
        check("a=1;id=7", Some("7"));
        check(" id = 7 ;a=1", Some("7"));
        check("id=a=b", Some("a=b"));
        check("id=\"7\"", Some("7"));
        check("id=\"", Some("\""));
        check("id=", Some(""));
        check("x=id=7; ID=8; xid=9; id", None);
        check("", None);
        for line in ["a=1; id=7; id=8", "id=7; id=", "id=; id=7"] {
            let fault = only(line, "id").expect_err(line).to_string();
            assert_eq!(fault, "the cookies `id` differ");
        }
    }
}
