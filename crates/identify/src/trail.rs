//! The elements of a list header, last first.
//!
//! Proxies append, so what a trusted one wrote stands at the right and what a client sent stands at
//! the left. Reading from the right, nothing that a client sends (a quote that never closes, a
//! megabyte of commas) changes how the elements of the proxies are read.

/// Whether commas in quotes separate elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quotes {
    /// There are no quotes, as in `X-Forwarded-For`.
    Plain,
    /// They do not, as in `Forwarded`.
    Respected,
}

/// An element longer than this is not read. The longest that a proxy writes has an address, a host
/// name of 253 bytes and an interface.
const MAX_ELEMENT_BYTES: usize = 1_024;

/// The elements of all lines of a header, last first. `None` stands for one that cannot be told from
/// its neighbours; nothing comes after it.
#[derive(Debug)]
pub(crate) struct Trail<'a, I> {
    /// Lines not begun, in the order of the request.
    lines: I,
    /// What is left of the current one.
    rest: Option<&'a [u8]>,
    quotes: Quotes,
    is_broken: bool,
}

// === impl Trail ===

impl<'a, I: DoubleEndedIterator<Item = &'a [u8]>> Trail<'a, I> {
    pub(crate) fn new(lines: I, quotes: Quotes) -> Self {
        Self {
            lines,
            rest: None,
            quotes,
            is_broken: false,
        }
    }
}

impl<'a, I: DoubleEndedIterator<Item = &'a [u8]>> Iterator for Trail<'a, I> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_broken {
            return None;
        }
        let line = match self.rest.take() {
            Some(rest) => rest,
            None => self.lines.next_back()?,
        };
        let Some(start) = start_of_last(line, self.quotes) else {
            self.is_broken = true;
            return Some(None);
        };
        self.rest = start.checked_sub(1).map(|comma| &line[..comma]);
        Some(Some(&line[start..]))
    }
}

/// Where the last element begins, unless it is too long or its quotes are broken.
fn start_of_last(line: &[u8], quotes: Quotes) -> Option<usize> {
    let mut is_quoted = false;
    for (distance, (at, byte)) in line.iter().enumerate().rev().enumerate() {
        match byte {
            b',' if !is_quoted => return Some(at + 1),
            b'"' if quotes == Quotes::Respected => is_quoted = !is_quoted,
            // Read backwards, an escaped quote cannot be told from one that closes; no proxy needs
            // one to write an address.
            b'\\' if quotes == Quotes::Respected => return None,
            _ if distance >= MAX_ELEMENT_BYTES => return None,
            _ => {}
        }
    }
    (!is_quoted).then_some(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lines: &[&str], quotes: Quotes, expected: &[Option<&str>]) {
        let lines = lines.iter().map(|line| line.as_bytes());
        let elements: Vec<_> = Trail::new(lines, quotes).collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|element| element.map(str::as_bytes))
            .collect();
        assert_eq!(elements, expected);
    }

    #[test]
    fn goes_through_all_lines_from_the_end() {
        let expected = [Some("d"), Some(" c"), Some("b"), Some("a")];
        check(
            &["a,b", "", "c"],
            Quotes::Plain,
            &[Some("c"), Some(""), Some("b"), Some("a")],
        );
        check(&["a,b", " c,d"], Quotes::Plain, &expected);
        check(&[], Quotes::Plain, &[]);
        check(&[",a,"], Quotes::Plain, &[Some(""), Some("a"), Some("")]);
    }

    #[test]
    fn a_comma_in_quotes_separates_nothing() {
        let expected = [Some("for=c"), Some("for=\"a,b\"")];
        check(&["for=\"a,b\",for=c"], Quotes::Respected, &expected);
        check(&["\"a,b"], Quotes::Plain, &[Some("b"), Some("\"a")]);
    }

    #[test]
    fn a_quote_that_never_closes_hides_only_what_stands_left_of_it() {
        check(
            &["for=\"x,for=c"],
            Quotes::Respected,
            &[Some("for=c"), None],
        );
        check(
            &["for=\"x", "for=c"],
            Quotes::Respected,
            &[Some("for=c"), None],
        );
    }

    #[test]
    fn an_escape_ends_the_reading() {
        let host = "for=a;host=\"x\\\",for=evil\"";
        check(&["for=b", host], Quotes::Respected, &[None]);
    }

    #[test]
    fn an_element_of_the_bound_is_read_and_a_longer_one_is_not() {
        let longest = "x".repeat(MAX_ELEMENT_BYTES);
        check(&[&longest], Quotes::Plain, &[Some(&longest)]);
        check(
            &[&format!("{longest},a")],
            Quotes::Plain,
            &[Some("a"), Some(&longest)],
        );
        check(&[&format!("a,{longest}x")], Quotes::Plain, &[None]);
    }
}
