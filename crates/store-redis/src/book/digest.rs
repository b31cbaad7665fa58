//! Digests of what is stored.

use std::fmt::{self, Write};
use std::str::FromStr;

use ring::digest::{SHA256, digest};

/// The SHA-256 of a body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Digest([u8; 32]);

/// A text that is not a digest in hex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not 64 hexadecimal digits")]
pub struct NotADigest;

// === impl Digest ===

impl Digest {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        let mut digits = [0; 32];
        for (to, from) in digits.iter_mut().zip(digest(&SHA256, bytes).as_ref()) {
            *to = *from;
        }
        Self(digits)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A precision cuts it short, as for any text.
        let mut hex = String::with_capacity(64);
        for byte in self.0 {
            write!(hex, "{byte:02x}")?;
        }
        formatter.pad(&hex)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Digest({self})")
    }
}

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let mut digits = [0; 32];
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(NotADigest);
        }
        for (at, digit) in digits.iter_mut().enumerate() {
            *digit = u8::from_str_radix(&text[at * 2..at * 2 + 2], 16).map_err(|_| NotADigest)?;
        }
        Ok(Self(digits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF_NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn a_digest_reads_back_the_same() {
        let digest = Digest::of(b"");
        assert_eq!(digest.to_string(), OF_NOTHING);
        assert_eq!(OF_NOTHING.parse(), Ok(digest));
        assert_eq!(format!("{digest:.8}"), "e3b0c442");
    }

    #[test]
    fn what_is_no_digest_is_told() {
        for text in [
            "",
            "e3b0",
            &OF_NOTHING.replace('e', "ä"),
            &OF_NOTHING.replace('e', "g"),
        ] {
            assert_eq!(text.parse::<Digest>(), Err(NotADigest), "{text}");
        }
    }
}
