//! Where rules are.

use std::path::PathBuf;

use serde_json::{Value as Json, json};

use super::{Mismatch, RedisUrl, Shown, Value};

/// Where rules are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In a file, or the files of a folder.
    Path(PathBuf),
    /// In Redis, where somebody pushed them.
    Redis(Box<RedisUrl>),
}

// === impl Place ===

impl Value for Place {
    fn parse(text: &str) -> Result<Self, Mismatch> {
        if text.contains("://") {
            RedisUrl::parse(text).map(Box::new).map(Self::Redis)
        } else {
            PathBuf::parse(text).map(Self::Path)
        }
    }

    fn show(&self) -> Shown {
        match self {
            Self::Path(path) => path.show(),
            Self::Redis(url) => url.show(),
        }
    }

    fn schema() -> Json {
        json!({ "type": "string", "minLength": 1 })
    }
}
