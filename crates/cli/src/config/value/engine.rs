//! Which store it is: this process's memory, or a Redis that nodes have in common.

use serde_json::{Value as Json, json};

use super::{Mismatch, RedisUrl, Shown, Value};

/// Where counters are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// In the memory of this process.
    Memory,
    /// In a Redis, or several of them, that nodes have in common.
    Redis(Box<RedisUrl>),
}

// === impl Engine ===

impl Value for Engine {
    fn parse(text: &str) -> Result<Self, Mismatch> {
        if text.eq_ignore_ascii_case("memory") {
            return Ok(Self::Memory);
        }
        RedisUrl::parse(text)
            .map(Box::new)
            .map(Self::Redis)
            .map_err(|mismatch| Mismatch {
                expected: "memory or the URL of a Redis",
                ..mismatch
            })
    }

    fn show(&self) -> Shown {
        match self {
            Self::Memory => Shown::Plain(json!("memory")),
            Self::Redis(url) => url.show(),
        }
    }

    fn schema() -> Json {
        json!({ "anyOf": [{ "const": "memory" }, RedisUrl::schema()] })
    }
}
