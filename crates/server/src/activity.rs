//! Requests under way, as the listener of their connection counts them.

use std::sync::Arc;

use tidegate_gateway::ConnectionActivity;

/// A request under way, until dropped.
#[derive(Debug)]
pub(crate) struct ActiveRequest(Arc<ConnectionActivity>);

// === impl ActiveRequest ===

impl ActiveRequest {
    pub(crate) fn begin(activity: &Arc<ConnectionActivity>) -> Self {
        activity.begin();
        Self(Arc::clone(activity))
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.0.end();
    }
}
