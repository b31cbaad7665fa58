//! What the scripts have in common in which nodes meet.

use tidegate_store::NodeId;

/// The line that such a script begins with: the time is Redis' own, in microseconds.
pub(crate) const NOW: &str =
    "local time = redis.call('TIME') local now = time[1] * 1000000 + time[2]\n";

/// A node as Redis knows it.
pub(crate) fn name(node: NodeId) -> String {
    format!("{:016x}", node.0)
}
