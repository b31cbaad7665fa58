//! How many nodes there are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use tidegate_algorithms::Time;

/// How many nodes share the store, this one included, as it was last heard. Clones tell the same.
#[derive(Clone, Debug)]
pub struct Membership(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    members: AtomicU32,
    /// Until when fewer are not believed, by the node's own clock, in nanoseconds.
    doubted_until: AtomicU64,
}

// === impl Membership ===

impl Membership {
    /// The last known number, at least 1. It stays as it is while nothing is heard.
    pub fn members(&self) -> u32 {
        // Relaxed, here and below: the numbers stand for themselves.
        self.0.members.load(Ordering::Relaxed)
    }

    /// Takes note of a number that was heard at a time of the node's own clock.
    pub(crate) fn hear(&self, members: u32, at: Time) {
        if at.nanos() < self.0.doubted_until.load(Ordering::Relaxed) {
            self.0.members.fetch_max(members, Ordering::Relaxed);
        } else {
            self.0.members.store(members.max(1), Ordering::Relaxed);
        }
    }

    /// Takes note that nothing could be heard. Whoever is not heard of until then may only not have been able
    /// to say that he is there: all are forgotten by a store that was away for long, and it is back for one
    /// node before it is for another.
    pub(crate) fn doubt(&self, until: Time) {
        self.0
            .doubted_until
            .fetch_max(until.nanos(), Ordering::Relaxed);
    }
}

/// This node, and as far as is known nobody else.
impl Default for Membership {
    fn default() -> Self {
        Self(Arc::new(Inner {
            members: AtomicU32::new(1),
            doubted_until: AtomicU64::new(0),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_are_not_believed_while_there_is_doubt() {
        let second = |second: u64| Time::from_micros(second * 1_000_000);
        let membership = Membership::default();
        membership.hear(4, second(1));
        membership.hear(3, second(2));
        assert_eq!(membership.members(), 3);
        membership.doubt(second(5));
        membership.doubt(second(4));
        membership.hear(1, second(4));
        assert_eq!(membership.members(), 3);
        membership.hear(5, second(4));
        assert_eq!(membership.members(), 5);
        membership.hear(0, second(5));
        assert_eq!(membership.members(), 1);
    }
}
