//! Where what the cores recorded is read.

use std::sync::Arc;

use crate::Recorder;

/// Reads what all recorders wrote.
#[derive(Debug, Default)]
pub struct Observatory {}

// === impl Observatory ===

impl Observatory {
    /// A recorder for one more core.
    pub fn recorder(self: &Arc<Self>) -> Recorder {
        Recorder::new(Arc::clone(self))
    }
}
