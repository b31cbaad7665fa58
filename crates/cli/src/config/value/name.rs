//! Names that stand in keys of Redis.

use serde_json::{Value as Json, json};

use super::{Mismatch, Shown, Value};

/// What tells the keys of one installation from those of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name(pub(crate) String);

/// More than a name needs.
const MOST_BYTES: usize = 64;

// === impl Name ===

impl Default for Name {
    fn default() -> Self {
        Self("tidegate".to_owned())
    }
}

impl Value for Name {
    fn parse(text: &str) -> Result<Self, Mismatch> {
        // Braces would say on which node of a cluster a key lies, which is ours to say.
        let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'{' && byte != b'}';
        let is_short = !text.is_empty() && text.len() <= MOST_BYTES;
        if is_short && text.bytes().all(is_plain) {
            Ok(Self(text.to_owned()))
        } else {
            Err(Mismatch::new(
                "a name",
                "write 1 to 64 visible ASCII characters without braces, such as `shop` or `shop:limits`",
            ))
        }
    }

    fn show(&self) -> Shown {
        Shown::Plain(json!(self.0))
    }

    fn schema() -> Json {
        json!({ "type": "string", "minLength": 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_has_no_braces() {
        for text in ["a", "shop:limits", &"x".repeat(MOST_BYTES)] {
            assert_eq!(Name::parse(text), Ok(Name(text.to_owned())));
        }
        for text in ["", "a b", "{a}", "é", &"x".repeat(MOST_BYTES + 1)] {
            assert!(Name::parse(text).is_err(), "{text}");
        }
    }
}
