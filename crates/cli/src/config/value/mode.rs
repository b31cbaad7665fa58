//! Who may use a file, as `chmod` has it.

use serde_json::{Value as Json, json};

use super::{Mismatch, Shown, Value};

/// Who may read, write and search, for owner, group and others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mode(pub(crate) u32);

/// All of it for everybody.
const EVERYBODY: u32 = 0o777;

// === impl Mode ===

impl Value for Mode {
    fn parse(text: &str) -> Result<Self, Mismatch> {
        // `from_str_radix` would take a sign.
        let is_octal = !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
        let mode = u32::from_str_radix(text, 8).ok();
        match mode.filter(|mode| is_octal && *mode <= EVERYBODY) {
            Some(mode) => Ok(Self(mode)),
            None => Err(Mismatch::new(
                "a mode of a file",
                "write octal digits, such as 660: owner and group, but nobody else",
            )),
        }
    }

    fn show(&self) -> Shown {
        Shown::Plain(json!(format!("{:o}", self.0)))
    }

    fn schema() -> Json {
        json!({ "type": ["string", "integer"], "pattern": "^0*[0-7]{1,3}$" })
    }
}

#[cfg(test)]
mod tests {
    use super::Mode;
    use crate::config::value::Value;

    #[test]
    fn modes_are_octal() {
        for (text, expected) in [("660", 0o660), ("0600", 0o600), ("0", 0), ("777", 0o777)] {
            assert_eq!(Mode::parse(text), Ok(Mode(expected)), "{text}");
        }
        for text in ["", "668", "1000", "rw-rw----", "-1", "+600", "0o600"] {
            assert!(Mode::parse(text).is_err(), "{text}");
        }
    }
}
