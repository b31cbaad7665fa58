//! The bound on failed verifications of one client address.
//!
//! Each check of a signature costs CPU time, also that of a forged token. Without a limit by address in the rules, one client could burn a
//! core with forged tokens. So each address has a bucket of failures: it fills by one for each check of a token that is not good, and drains with time.
//! While it is full, no token of that address is checked; tokens that were verified before are known without a check.

use std::hash::Hash;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use siphasher::sip::SipHasher13;

use crate::grouping::Grouping;

/// The failures of all addresses, in memory that does not grow: addresses with the same hash share a bucket.
#[derive(Debug)]
pub(super) struct FailureTable {
    /// A random key, so that nobody can choose an address that shares the bucket of another one.
    seed: [u64; 2],
    /// Of each bucket the failures in it (the lower half), and the second in which they were counted (the upper half).
    buckets: Box<[AtomicU64]>,
}

/// A permission to check one token, which counts as a failure until it is [forgiven](FailureTable::forgive).
#[derive(Debug)]
pub(super) struct Attempt(usize);

/// Buckets: 512 KiB, so that an attacker needs tens of thousands of addresses to fill a noticeable part of them.
const BUCKETS: usize = 1 << 16;

/// The most failures in a bucket: a client whose tokens have just expired, or an office of such clients behind one address.
const MOST: u64 = 100;

/// The failures that drain from a bucket each second. A check takes up to 0.2 ms (RS256 with 8192 bits), so ten are 2 ms of a second.
const DRAINED_PER_S: u64 = 10;

// === impl FailureTable ===

impl FailureTable {
    pub(super) fn new(seed: [u64; 2]) -> Self {
        Self {
            seed,
            buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Counts a check of a token from this address; `None` if its bucket is full. Clients without an address share a bucket.
    pub(super) fn begin(&self, client: Option<IpAddr>, now_s: u64) -> Option<Attempt> {
        let place = self.place(client);
        let add = |bucket| {
            let failures = drained(bucket, now_s);
            (failures < MOST).then(|| packed(failures + 1, now_s))
        };
        let added = self.buckets[place].fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        added.is_ok().then_some(Attempt(place))
    }

    /// Takes back a check, because the token was good.
    pub(super) fn forgive(&self, Attempt(place): Attempt) {
        let take = |bucket| (bucket & FAILURES > 0).then(|| bucket - 1);
        // An empty bucket has drained meanwhile.
        let _ = self.buckets[place].fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
    }

    fn place(&self, client: Option<IpAddr>) -> usize {
        let group = client.and_then(|client| Grouping::DEFAULT.of(client));
        let mut hasher = SipHasher13::new_with_keys(self.seed[0], self.seed[1]);
        group.hash(&mut hasher);
        let [low, high, ..] = std::hash::Hasher::finish(&hasher).to_le_bytes();
        usize::from(u16::from_le_bytes([low, high]))
    }
}

/// The part of a bucket that holds its failures.
const FAILURES: u64 = 0xffff_ffff;

/// The failures that are still in a bucket.
fn drained(bucket: u64, now_s: u64) -> u64 {
    let (failures, counted_at_s) = (bucket & FAILURES, bucket >> 32);
    // A clock that went back drains nothing.
    let elapsed_s = (now_s & FAILURES).saturating_sub(counted_at_s);
    failures.saturating_sub(elapsed_s.saturating_mul(DRAINED_PER_S))
}

const fn packed(failures: u64, now_s: u64) -> u64 {
    now_s << 32 | failures
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_S: u64 = 1_794_000_000;

    /// The checks that an address may begin at once.
    fn n_begun(table: &FailureTable, client: Option<&str>, now_s: u64) -> u64 {
        let client = client.map(|client| client.parse().expect("an address"));
        let begun = (0..=MOST).map_while(|_| table.begin(client, now_s));
        begun.fold(0, |sum, _| sum + 1)
    }

    #[test]
    fn an_address_has_a_bucket_that_drains() {
        let table = FailureTable::new([1, 2]);
        let attacker = Some("203.0.113.7");
        assert_eq!(n_begun(&table, attacker, NOW_S), MOST);
        assert_eq!(n_begun(&table, attacker, NOW_S), 0);
        assert_eq!(
            n_begun(&table, attacker, NOW_S - 60),
            0,
            "a clock went back"
        );
        assert_eq!(n_begun(&table, attacker, NOW_S + 1), DRAINED_PER_S);
        assert_eq!(n_begun(&table, attacker, NOW_S + 3_600), MOST);
        for other in [Some("203.0.113.8"), Some("2001:db8::1"), None] {
            assert_eq!(n_begun(&table, other, NOW_S), MOST, "{other:?}");
        }
        assert_eq!(n_begun(&table, Some("2001:db8::2"), NOW_S), 0, "one /64");
    }

    #[test]
    fn good_tokens_fill_no_bucket() {
        let table = FailureTable::new([1, 2]);
        for _ in 0..2 * MOST {
            let attempt = table.begin(None, NOW_S).expect("room");
            table.forgive(attempt);
        }
        assert_eq!(n_begun(&table, None, NOW_S), MOST);
    }
}
