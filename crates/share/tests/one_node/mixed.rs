//! A node whose limits are partly its own and partly in common passes the suite that every store
//! passes: whatever the mix, a request is charged all or none, and quota and shadow limits count for
//! what they are.

use tidegate_algorithms::Quota;
use tidegate_store::{Consistency, CounterKey};

use crate::subject::{SharedSubject, Way};

/// Every other limit is the node's own.
struct EveryOther;

type Mixed = SharedSubject<EveryOther>;

// === impl EveryOther ===

impl Way for EveryOther {
    /// The period of soft admissions of a node's limit is not restored when the rest of a request
    /// refuses it, so limits that have one are in common here.
    fn consistency(key: CounterKey<'_>, quota: &Quota) -> Consistency {
        if key.limit.0.is_multiple_of(2) && !quota.tracks_soft_period() {
            Consistency::Node
        } else {
            Consistency::Strict
        }
    }

    fn cases(many: u32) -> u32 {
        many
    }
}

tidegate_store::conformance!(Mixed);
