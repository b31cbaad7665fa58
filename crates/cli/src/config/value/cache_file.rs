//! Where a copy of something is kept, if anywhere.

use std::path::PathBuf;

use serde_json::{Value as Json, json};

use super::{Mismatch, Shown, Value};

/// Where a copy of something is kept, if anywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CacheFile {
    /// Nowhere.
    Off,
    /// In this file.
    At(PathBuf),
}

// === impl CacheFile ===

impl Value for CacheFile {
    fn parse(text: &str) -> Result<Self, Mismatch> {
        match text {
            "off" | "none" | "false" => Ok(Self::Off),
            path => PathBuf::parse(path).map(Self::At),
        }
    }

    fn show(&self) -> Shown {
        match self {
            Self::Off => Shown::Plain(json!("off")),
            Self::At(path) => path.show(),
        }
    }

    fn schema() -> Json {
        // YAML reads `off` as a boolean in its older form.
        json!({ "anyOf": [{ "type": "string", "minLength": 1 }, { "const": false }] })
    }
}
