//! The keys of totals.

use ring::digest::{Context, SHA256};
use tidegate_store::{CounterKey, Telling};

/// Where the totals of one installation are.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    name: String,
    members: String,
}

// === impl Keys ===

impl Keys {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            members: format!("tg1:{{tellers:{name}}}"),
        }
    }

    /// The sorted set of nodes.
    pub(super) fn members(&self) -> &str {
        &self.members
    }

    /// The hashes of a counter: of the epoch that is told of, and of the one before. Both have the digest
    /// of the counter for their tag, so that a client's string is in no key, braces or not.
    pub(super) fn of(&self, telling: &Telling<'_>) -> [String; 2] {
        let digest = self.digest(telling.key);
        let before = telling.epoch.saturating_sub(1);
        [telling.epoch, before].map(|epoch| format!("tg1:e:{{{digest}}}:{epoch}"))
    }

    /// Each part goes in after its length, so that no two counters look alike.
    fn digest(&self, key: CounterKey<'_>) -> String {
        let mut context = Context::new(&SHA256);
        let mut add = |bytes: &[u8]| {
            context.update(&u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_le_bytes());
            context.update(bytes);
        };
        add(self.name.as_bytes());
        add(&key.limit.0.to_le_bytes());
        for value in key.values {
            add(value.as_bytes());
        }
        let digest = context.finish();
        // Half of it: a pair that collides takes 2^64 tries to find, and is the finder's own.
        let half = digest.as_ref().first_chunk().copied().unwrap_or_default();
        format!("{:032x}", u128::from_be_bytes(half))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tidegate_store::{Edge, LimitId};

    use super::*;

    fn keys(name: &str, limit: u128, values: &[&str], epoch: u64) -> [String; 2] {
        Keys::new(name).of(&Telling {
            key: CounterKey {
                limit: LimitId(limit),
                values,
            },
            length: Duration::from_secs(1),
            epoch,
            total: 0,
            late: None,
            edge: Edge::Forgets,
            resets: 0,
            view: None,
        })
    }

    #[test]
    fn counters_that_differ_have_keys_that_differ() {
        let all = [
            keys("a", 1, &["x", "yz"], 7),
            keys("b", 1, &["x", "yz"], 7),
            keys("a", 2, &["x", "yz"], 7),
            keys("a", 1, &["xy", "z"], 7),
            keys("a", 1, &["xyz"], 7),
            keys("a", 1, &["x", "yz", ""], 7),
            keys("a", 1, &["x", "yz"], 9),
        ];
        for (nth, one) in all.iter().enumerate() {
            assert!(all[..nth].iter().all(|other| other[0] != one[0]), "{one:?}");
        }
    }

    #[test]
    fn both_keys_of_a_counter_have_one_tag_and_no_string_of_a_client() {
        let [current, before] = keys("a", 1, &["{braces}"], 7);
        assert_eq!(current.strip_suffix(":7"), before.strip_suffix(":6"));
        assert_eq!(current.matches('{').count(), 1);
        assert!(!current.contains("braces"));
    }
}
