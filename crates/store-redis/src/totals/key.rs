//! Redis keys of totals.

use ring::digest::{SHA256, digest};
use tidegate_store::{CounterId, CounterUpdate};

/// The keys of one installation.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    /// A digest of the installation's name.
    name: u128,
    members: String,
}

// === impl Keys ===

impl Keys {
    pub(super) fn new(name: &str) -> Self {
        let digest = digest(&SHA256, name.as_bytes());
        let half = digest.as_ref().first_chunk().copied().unwrap_or_default();
        Self {
            name: u128::from_be_bytes(half),
            members: format!("tg1:{{tellers:{name}}}"),
        }
    }

    /// The sorted set of nodes.
    pub(super) fn members(&self) -> &str {
        &self.members
    }

    /// The hashes of a counter: of the current epoch, and of the one before. Both have the digest of the
    /// counter for their hash tag. Slots of another length are in other hashes: nodes with different
    /// rules do not read each other's slots as their own.
    pub(super) fn of(&self, update: &CounterUpdate<'_>) -> [String; 2] {
        let CounterId(counter) = update.counter;
        let counter = counter ^ self.name;
        let length = update.slot_nanos;
        let before = update.epoch().saturating_sub(1);
        [update.epoch(), before]
            .map(|epoch| format!("tg2:e:{{{counter:032x}}}:{length:x}:{epoch:x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(name: &str, counter: u128, slot_nanos: u64, current: u64) -> [String; 2] {
        Keys::new(name).of(&CounterUpdate {
            counter: CounterId(counter),
            slot_nanos,
            epoch_slots: 16,
            current,
            first: current,
            totals: &[],
            base: 0,
        })
    }

    #[test]
    fn counters_that_differ_have_keys_that_differ() {
        let all = [
            keys("a", 1, 1_000, 7),
            keys("b", 1, 1_000, 7),
            keys("a", 2, 1_000, 7),
            keys("a", 1, 2_000, 7),
            keys("a", 1, 1_000, 40),
        ];
        for (nth, one) in all.iter().enumerate() {
            assert!(all[..nth].iter().all(|other| other[0] != one[0]), "{one:?}");
        }
    }

    #[test]
    fn both_keys_of_a_counter_have_one_hash_tag() {
        let [current, before] = keys("a", 1, 1_000, 7 * 16 + 3);
        assert_eq!(current.strip_suffix(":7"), before.strip_suffix(":6"));
        assert_eq!(current.matches('{').count(), 1);
    }
}
