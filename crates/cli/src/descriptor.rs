//! Descriptors as they are typed: `key=value,key=value`.

use std::str::Chars;

/// One entry, as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TypedEntry {
    pub(crate) key: String,
    pub(crate) value: String,
}

/// Text that is no descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotADescriptor {
    #[error("an entry has no `=`; write key=value,key=value")]
    NoValue,
    #[error("an entry has an empty key; write key=value,key=value")]
    EmptyKey,
    #[error("a quotation mark is not closed")]
    OpenQuote,
    #[error("it ends in a lone `\\`")]
    LoneBackslash,
}

/// Where a word ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// At one of the characters that end words of its kind.
    Mark(char),
    /// At the end of the text.
    Text,
}

/// Reads a descriptor. Inside `"…"` everything but `"` and `\` stands for itself; `\` makes the next
/// character stand for itself everywhere.
pub(crate) fn parse(text: &str) -> Result<Vec<TypedEntry>, NotADescriptor> {
    let mut chars = text.chars();
    let mut entries = Vec::new();
    loop {
        let (key, end) = word(&mut chars, &['=', ','])?;
        if end != End::Mark('=') {
            return Err(NotADescriptor::NoValue);
        }
        if key.is_empty() {
            return Err(NotADescriptor::EmptyKey);
        }
        let (value, end) = word(&mut chars, &[','])?;
        entries.push(TypedEntry { key, value });
        if end == End::Text {
            return Ok(entries);
        }
    }
}

/// Reads up to one of `marks`, and over it.
fn word(chars: &mut Chars<'_>, marks: &[char]) -> Result<(String, End), NotADescriptor> {
    let mut word = String::new();
    let mut is_quoted = false;
    while let Some(next) = chars.next() {
        match next {
            '\\' => word.push(chars.next().ok_or(NotADescriptor::LoneBackslash)?),
            '"' => is_quoted = !is_quoted,
            _ if marks.contains(&next) && !is_quoted => return Ok((word, End::Mark(next))),
            _ => word.push(next),
        }
    }
    if is_quoted {
        Err(NotADescriptor::OpenQuote)
    } else {
        Ok((word, End::Text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&[(&str, &str)], NotADescriptor>) {
        let parsed = parse(text);
        let pairs = parsed.as_ref().map(|entries| {
            entries
                .iter()
                .map(|it| (it.key.as_str(), it.value.as_str()))
                .collect::<Vec<_>>()
        });
        assert_eq!(
            pairs.as_deref().map_err(|error| **error),
            expected,
            "{text}"
        );
    }

    #[test]
    fn entries_are_read_in_order() {
        check("a=1", Ok(&[("a", "1")]));
        check("a=1,b=2", Ok(&[("a", "1"), ("b", "2")]));
        check("a=", Ok(&[("a", "")]));
        check("a=,b=", Ok(&[("a", ""), ("b", "")]));
        check("path=/x?y=z", Ok(&[("path", "/x?y=z")]));
        check("a b= c ", Ok(&[("a b", " c ")]));
    }

    #[test]
    fn quotes_and_backslashes_keep_commas() {
        check(r#"a="1,2",b=3"#, Ok(&[("a", "1,2"), ("b", "3")]));
        check(r"a=1\,2,b=3", Ok(&[("a", "1,2"), ("b", "3")]));
        check(r#"a="say \"hi\"""#, Ok(&[("a", r#"say "hi""#)]));
        check(r#""a=b"=c"#, Ok(&[("a=b", "c")]));
        check(r"a=C:\\x", Ok(&[("a", r"C:\x")]));
    }

    #[test]
    fn anything_else_is_refused() {
        check("", Err(NotADescriptor::NoValue));
        check("a", Err(NotADescriptor::NoValue));
        check("a=1,", Err(NotADescriptor::NoValue));
        check("a=1,b", Err(NotADescriptor::NoValue));
        check("a=1,,b=2", Err(NotADescriptor::NoValue));
        check("a,b=2", Err(NotADescriptor::NoValue));
        check("=1", Err(NotADescriptor::EmptyKey));
        check("a=\"1", Err(NotADescriptor::OpenQuote));
        check("a=1\\", Err(NotADescriptor::LoneBackslash));
    }
}
