//! How a Redis is reached.

use std::fmt;

use serde_json::{Value as Json, json};
use tidegate_store_redis::client::ClientConfig;

use super::{Mismatch, Shown, Value};

/// How a Redis is reached. Shown without the name and the password to come in by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RedisUrl {
    /// The same for people.
    shown: String,
    /// The same for the client.
    pub(crate) config: ClientConfig,
}

// === impl RedisUrl ===

impl fmt::Display for RedisUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown)
    }
}

impl Value for RedisUrl {
    fn parse(text: &str) -> Result<Self, Mismatch> {
        let config = ClientConfig::from_url(text)
            .map_err(|fault| Mismatch::new("the URL of a Redis", fault.to_string()))?;
        Ok(Self {
            shown: without_login(text),
            config,
        })
    }

    fn show(&self) -> Shown {
        Shown::Plain(json!(self.shown))
    }

    fn schema() -> Json {
        json!({ "type": "string", "minLength": 1 })
    }
}

/// A URL without what nobody but its server is to know: what stands before an `@`, and all options.
fn without_login(url: &str) -> String {
    let url = url.split_once('?').map_or(url, |(url, _)| url);
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
            format!("{scheme}://{place}")
        }
        None => url.to_owned(),
    }
}
