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
    /// The same with a sign where something is left out, if anything is.
    masked: Option<String>,
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
        let shown = without_login(text);
        Ok(Self {
            masked: (shown != text).then(|| masked(text)),
            shown,
            config,
        })
    }

    fn show(&self) -> Shown {
        match &self.masked {
            None => Shown::Plain(json!(self.shown)),
            Some(masked) => Shown::Masked(json!(masked)),
        }
    }

    fn schema() -> Json {
        json!({ "type": "string", "minLength": 1 })
    }
}

/// A URL without what nobody but its server is to know: what stands before an `@`, and all options.
pub(crate) fn without_login(url: &str) -> String {
    let url = url.split_once('?').map_or(url, |(url, _)| url);
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
            format!("{scheme}://{place}")
        }
        None => url.to_owned(),
    }
}

/// A URL with `…` for what nobody but its server is to know.
fn masked(url: &str) -> String {
    let place = without_login(url);
    let (scheme, place) = place.split_once("://").unwrap_or(("", &place));
    let login = if url.contains('@') { "…@" } else { "" };
    let options = if url.contains('?') { "?…" } else { "" };
    format!("{scheme}://{login}{place}{options}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_does_not_show() {
        for (text, shown) in [
            ("redis://:hunter2@host:6379/1", "redis://…@host:6379/1"),
            ("rediss://me:hunter2@host?ca=/ca.pem", "rediss://…@host?…"),
            (
                "redis+sentinel://a,b/main?sentinel_password=hunter2",
                "redis+sentinel://a,b/main?…",
            ),
        ] {
            let url = RedisUrl::parse(text).expect(text);
            assert_eq!(url.show(), Shown::Masked(json!(shown)));
            assert!(!format!("{url:?} {url}").contains("hunter2"), "{url:?}");
        }
        let url = RedisUrl::parse("redis://host").expect("a URL");
        assert_eq!(url.show(), Shown::Plain(json!("redis://host")));
    }
}
