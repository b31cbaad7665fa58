//! The number of nodes that share a limit.
//!
//! Too small a number is dangerous: while the store is unavailable each node enforces its share, and nodes
//! that count too few members admit more than the limit together. So a larger count is believed at once. A
//! smaller one is believed only if for a while the store has returned no larger one, has answered every
//! heartbeat and has lost no data: a node that restarts is back soon, and a store that was flushed counts
//! from 1 again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use tidegate_algorithms::Time;
use tidegate_store::MAX_MEMBERS;

/// The number of members that is known before the store has answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownMembers {
    /// The fewest that there are, by configuration.
    pub floor: Option<u32>,
    /// The largest count that an earlier process on this machine received lately.
    pub remembered: Option<u32>,
}

/// The number of nodes that share the store, this one included. Clones share one state.
#[derive(Clone, Debug)]
pub struct Membership(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    floor: u32,
    /// The time for which the store must return smaller counts, without a fault, before they are believed.
    settling: Duration,
    members: AtomicU32,
    is_known: AtomicBool,
    /// Until when smaller counts are not believed, by the node's own clock, in nanoseconds.
    doubted_until: AtomicU64,
    /// The largest count received since the last [`Membership::take_received`]; 0 if there was none.
    received: AtomicU32,
    /// The store's time of the last heartbeat that it answered, in nanoseconds; 0 if the store need not
    /// remember one.
    last_heartbeat: AtomicU64,
}

// === impl Membership ===

impl Membership {
    /// The membership of a node that starts at `now`, by its own clock.
    pub(crate) fn new(known: KnownMembers, settling: Duration, now: Time) -> Self {
        let doubted_until = known.remembered.map_or(0, |_| now.plus(settling).nanos());
        Self(Arc::new(Inner {
            floor: known.floor.unwrap_or(1).max(1),
            settling,
            members: AtomicU32::new(known.remembered.unwrap_or(1)),
            is_known: AtomicBool::new(known.floor.or(known.remembered).is_some()),
            doubted_until: AtomicU64::new(doubted_until),
            received: AtomicU32::new(0),
            last_heartbeat: AtomicU64::new(0),
        }))
    }

    /// The number of members, at least 1. It does not change while the store does not answer.
    pub fn members(&self) -> u32 {
        // Relaxed, here and below: each number is used by itself.
        self.0.members.load(Ordering::Relaxed).max(self.0.floor)
    }

    /// Whether the number was ever received, remembered or configured. If not, it is 1.
    pub fn is_known(&self) -> bool {
        self.0.is_known.load(Ordering::Relaxed)
    }

    /// Returns the largest count received since the last call, if there was any.
    pub fn take_received(&self) -> Option<u32> {
        let received = self.0.received.swap(0, Ordering::Relaxed);
        (received > 0).then_some(received)
    }

    /// Records a count that the store returned, at a time of the node's own clock.
    pub(crate) fn receive(&self, members: u32, at: Time) {
        let members = members.max(1);
        self.0.received.fetch_max(members, Ordering::Relaxed);
        self.0.is_known.store(true, Ordering::Relaxed);
        let is_doubted = at.nanos() < self.0.doubted_until.load(Ordering::Relaxed);
        if members >= self.0.members.load(Ordering::Relaxed) || !is_doubted {
            self.0.members.store(members, Ordering::Relaxed);
            self.doubt(at);
        }
    }

    /// Compares the time of this node's previous heartbeat, as the store remembers it, with the time that
    /// the store returned then. If they differ, the store lost data and may have forgotten other members
    /// too. To be called before [`receive`](Self::receive).
    pub(crate) fn check_store(&self, now: Time, previous: Option<Time>, members: u32, at: Time) {
        // At the maximum this node may not be listed at all.
        let current = if members < MAX_MEMBERS {
            now.nanos()
        } else {
            0
        };
        let expected = self.0.last_heartbeat.swap(current, Ordering::Relaxed);
        if expected != 0 && previous.map(Time::nanos) != Some(expected) {
            self.doubt(at);
        }
    }

    /// Has smaller counts not believed for a while, because the store did not answer, lost data, or still
    /// counted as many a moment ago. A store that was away for long has forgotten all members, and it is back
    /// for one node before it is for another.
    pub(crate) fn doubt(&self, at: Time) {
        let until = at.plus(self.0.settling);
        self.0
            .doubted_until
            .fetch_max(until.nanos(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTLING: Duration = Duration::from_secs(5);

    fn second(second: u64) -> Time {
        Time::from_micros(second * 1_000_000)
    }

    fn membership(floor: Option<u32>, remembered: Option<u32>) -> Membership {
        let known = KnownMembers { floor, remembered };
        Membership::new(known, SETTLING, second(1))
    }

    #[test]
    fn a_smaller_count_is_not_believed_after_a_failure() {
        let membership = membership(None, None);
        membership.receive(4, second(1));
        membership.doubt(second(3));
        membership.doubt(second(2));
        membership.receive(1, second(7));
        assert_eq!(membership.members(), 4);
        membership.receive(0, second(8));
        assert_eq!(membership.members(), 1);
        membership.receive(5, second(8));
        assert_eq!(membership.members(), 5);
    }

    #[test]
    fn a_node_that_is_away_for_a_moment_is_still_counted() {
        let membership = membership(None, None);
        membership.receive(4, second(1));
        membership.receive(3, second(2));
        membership.receive(4, second(5));
        membership.receive(3, second(9));
        assert_eq!(membership.members(), 4);
        membership.receive(3, second(10));
        assert_eq!(membership.members(), 3);
    }

    #[test]
    fn a_remembered_count_holds_until_the_store_has_answered_for_a_while() {
        let membership = membership(None, Some(4));
        assert!(membership.is_known());
        assert_eq!(membership.take_received(), None);
        membership.receive(1, second(2));
        membership.receive(2, second(5));
        assert_eq!(membership.members(), 4);
        assert_eq!(membership.take_received(), Some(2));
        membership.receive(2, second(6));
        assert_eq!(membership.members(), 2);
    }

    #[test]
    fn a_configured_count_is_a_floor() {
        let membership = membership(Some(3), None);
        assert_eq!((membership.members(), membership.is_known()), (3, true));
        membership.receive(1, second(2));
        assert_eq!(membership.members(), 3);
        membership.receive(4, second(2));
        assert_eq!(membership.members(), 4);
    }

    #[test]
    fn without_any_source_the_count_is_one_and_unknown() {
        let membership = membership(None, None);
        assert_eq!((membership.members(), membership.is_known()), (1, false));
        membership.receive(1, second(2));
        assert!(membership.is_known());
    }

    /// FLUSHALL, an empty restart, a failover to a replica that is behind.
    #[test]
    fn a_store_that_lost_data_is_not_believed_that_members_left() {
        for previous in [None, Some(second(101))] {
            let membership = membership(None, None);
            membership.check_store(second(101), None, 4, second(1));
            membership.receive(4, second(1));
            membership.check_store(second(102), Some(second(101)), 3, second(2));
            membership.receive(3, second(2));
            membership.check_store(second(106), previous, 1, second(6));
            membership.receive(1, second(6));
            assert_eq!(membership.members(), 4, "{previous:?}");
            membership.check_store(second(111), Some(second(106)), 1, second(11));
            membership.receive(1, second(11));
            assert_eq!(membership.members(), 1);
        }
    }
}
