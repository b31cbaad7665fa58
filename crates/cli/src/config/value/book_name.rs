//! The name of a set of rules.

use std::fmt;

use serde_json::{Value as Json, json};

use super::{Mismatch, Shown, Value};

/// The name of a set of rules in Redis. It is part of keys there, and of the channel of notices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BookName(String);

/// More than a name needs.
const MAX_NAME: usize = 64;

// === impl BookName ===

impl Default for BookName {
    fn default() -> Self {
        Self("default".to_owned())
    }
}

impl std::ops::Deref for BookName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BookName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Value for BookName {
    fn parse(text: &str) -> Result<Self, Mismatch> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if text.is_empty() || text.len() > MAX_NAME || !text.bytes().all(is_plain) {
            return Err(Mismatch::new(
                "a name",
                "use at most 64 letters, digits, `-`, `_` and `.`",
            ));
        }
        Ok(Self(text.to_owned()))
    }

    fn show(&self) -> Shown {
        Shown::Plain(json!(self.0))
    }

    fn schema() -> Json {
        json!({ "type": "string", "minLength": 1 })
    }
}
