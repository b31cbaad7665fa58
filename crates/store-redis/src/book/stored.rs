//! What lies under the keys of a book, taken apart.

use std::time::Duration;

use super::{BookError, Digest, Entry};

/// The newest version, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head(String);

/// The most bytes of a head that are looked at. A good one has no more than 80.
const MAX_HEAD: usize = 128;

/// The most digits of a number: the script that pushes counts in doubles, which are exact up to here.
const MAX_DIGITS: usize = 15;

// === impl Head ===

impl Head {
    /// What stands under the key, whatever it is.
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let bytes = &bytes[..bytes.len().min(MAX_HEAD)];
        Self(String::from_utf8_lossy(bytes).into_owned())
    }

    /// The head of a version.
    pub fn of(number: u64, digest: Digest) -> Self {
        Self(format!("{number} {digest}"))
    }

    /// Its number and digest.
    ///
    /// # Errors
    ///
    /// If it is not what a push writes.
    pub fn read(&self) -> Result<(u64, Digest), BookError> {
        let read = || {
            let (number, digest) = self.0.split_once(' ')?;
            let is_number =
                number.len() <= MAX_DIGITS && number.bytes().all(|it| it.is_ascii_digit());
            let number = if is_number { number.parse().ok()? } else { 0 };
            // Versions are counted from 1.
            (number > 0).then_some((number, digest.parse().ok()?))
        };
        read().ok_or(BookError::BadHead)
    }
}

// === impl Entry ===

impl Entry {
    /// The line of the history that says the same.
    pub fn line(&self) -> String {
        let Self {
            digest,
            bytes,
            about,
            ..
        } = self;
        format!("{} {digest} {bytes} {about}", self.at.as_millis())
    }

    /// Takes a line of the history apart; `None` if it is none.
    pub fn read(number: u64, line: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(line).ok()?;
        let mut words = line.splitn(4, ' ');
        Some(Self {
            number,
            at: Duration::from_millis(words.next()?.parse().ok()?),
            digest: words.next()?.parse().ok()?,
            bytes: words.next()?.parse().ok()?,
            about: words.next()?.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_taken_apart() {
        let digest = Digest::of(b"");
        let line = format!("1763258400123 {digest} 17 by me, for you");
        let expected = Entry {
            number: 3,
            at: Duration::from_millis(1_763_258_400_123),
            digest,
            bytes: 17,
            about: "by me, for you".to_owned(),
        };
        assert_eq!(expected.line(), line);
        assert_eq!(Entry::read(3, line.as_bytes()), Some(expected));
        let silent = format!("1 {digest} 17 ");
        assert!(Entry::read(3, silent.as_bytes()).is_some_and(|it| it.about.is_empty()));
    }

    #[test]
    fn what_nobody_pushed_is_no_line() {
        let digest = Digest::of(b"");
        for line in [
            "",
            "1",
            "1 2 3 4",
            &format!("-1 {digest} 17 x"),
            &format!("1 {digest} 17"),
        ] {
            assert_eq!(Entry::read(3, line.as_bytes()), None, "{line}");
        }
        assert_eq!(Entry::read(3, b"\xff"), None);
    }

    #[test]
    fn a_head_reads_back_the_same() {
        let digest = Digest::of(b"x");
        let head = Head::of(999_999_999_999_999, digest);
        assert_eq!(head.read().ok(), Some((999_999_999_999_999, digest)));
        assert_eq!(Head::new(head.0.as_bytes()), head);
        assert!(matches!(
            Head::new(&[b'1'; 1000]).read(),
            Err(BookError::BadHead)
        ));
        assert!(matches!(Head::new(b"\xff").read(), Err(BookError::BadHead)));
        for number in ["0", "+5", "", "1000000000000000"] {
            let head = Head::new(format!("{number} {digest}").as_bytes());
            assert!(matches!(head.read(), Err(BookError::BadHead)), "{head:?}");
        }
    }
}
