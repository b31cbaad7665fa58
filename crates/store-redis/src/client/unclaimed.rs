//! Replies that come too late.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::fault::ServerFault;
use super::wire::Reply;

/// What becomes of a reply that nobody waits for any more, for whom a call has done something all the same.
#[derive(Clone)]
pub(crate) struct Unclaimed(Arc<dyn Fn(&Reply) + Send + Sync>);

// === impl Unclaimed ===

impl Unclaimed {
    /// Runs `heed` when such a reply comes, unless it is an error. It must not wait, nor ask anything itself, nor
    /// keep a client: a connection keeps it, and would end itself with the last of them.
    pub(crate) fn new(heed: impl Fn(&Reply) + Send + Sync + 'static) -> Self {
        Self(Arc::new(heed))
    }

    /// A whole reply has come, and nobody waits for it.
    pub(crate) fn arrived(&self, frame: Bytes) {
        if ServerFault::of_frame(&frame).is_none() {
            (self.0)(&Reply::new(frame));
        }
    }
}

impl fmt::Debug for Unclaimed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unclaimed")
    }
}
