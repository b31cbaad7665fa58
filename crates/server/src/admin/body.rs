//! The body of an admin request: bounded, and read as JSON.

use std::time::Duration;

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use serde::Deserialize;
use tidegate_limiter::Entry;
use tokio::time::timeout;

use super::fault::Fault;

/// A body that has arrived whole.
#[derive(Debug)]
pub(super) struct Body {
    path: &'static str,
    bytes: Bytes,
}

/// A caller, by its domain and the entries of one descriptor.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Key {
    pub(super) domain: String,
    pub(super) entries: Vec<OwnedEntry>,
}

/// One entry of a descriptor. Envoy leaves out an empty value, and so may an operator.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OwnedEntry {
    pub(super) key: String,
    #[serde(default)]
    pub(super) value: String,
}

/// Bytes of a body. A descriptor takes a few hundred.
const MAX_BYTES: usize = 64 * 1024;

/// How long a body may take to arrive.
const TIMEOUT: Duration = Duration::from_secs(10);

// === impl Body ===

impl Body {
    /// Reads a whole body that is neither too large nor too slow.
    pub(super) async fn read(path: &'static str, body: Incoming) -> Result<Self, Fault> {
        let max_bytes = MAX_BYTES;
        let read = timeout(TIMEOUT, Limited::new(body, max_bytes).collect()).await;
        let collected = read.map_err(|_| Fault::BodyTooSlow)?.map_err(|error| {
            if error.is::<LengthLimitError>() {
                Fault::BodyTooLarge { max_bytes }
            } else {
                Fault::BodyBroken
            }
        })?;
        Ok(Self {
            path,
            bytes: collected.to_bytes(),
        })
    }

    /// The body as what its path takes.
    pub(super) fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Fault> {
        let path = self.path;
        serde_json::from_slice(&self.bytes).map_err(|reason| Fault::BadBody { path, reason })
    }
}

// === impl OwnedEntry ===

impl OwnedEntry {
    pub(super) fn borrow(entries: &[Self]) -> Vec<Entry<'_>> {
        entries.iter().map(Entry::from).collect()
    }
}

impl<'a> From<&'a OwnedEntry> for Entry<'a> {
    fn from(entry: &'a OwnedEntry) -> Self {
        Self {
            key: &entry.key,
            value: &entry.value,
        }
    }
}
