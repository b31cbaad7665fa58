//! Sends spans away, in batches.

/// Sends the spans of all cores away. A future that never blocks a decision: it is to be spawned once.
#[derive(Debug)]
pub struct Exporter {}

// === impl Exporter ===

impl Exporter {
    /// Sends spans until `end` is ready, and then those that wait.
    pub async fn run(self, end: impl Future<Output = ()>) {
        end.await;
    }
}
