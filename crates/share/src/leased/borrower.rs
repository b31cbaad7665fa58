//! Who draws permits, and what of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidegate_algorithms::Quota;
use tidegate_store::{CounterKey, Draw, LimitId, Loan};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

/// Who draws: all that the store must be told again to give permits back. It holds the strings of a
/// client, as long as permits of theirs are in hand.
#[derive(Debug)]
pub(super) struct Borrower {
    pub(super) digest: u128,
    limit: LimitId,
    values: Box<[Box<str>]>,
    pub(super) quota: Quota,
    /// Whether the counter was reset since: what was drawn before is charged nowhere any more.
    is_reset: AtomicBool,
    /// Tells those who wait that a draw has come to something.
    landed: Arc<Notify>,
}

/// A draw to be made. The purse counts on it until it is settled or has failed.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) borrower: Arc<Borrower>,
    pub(super) draw: Draw,
}

/// Permits to be given back.
#[derive(Clone, Debug)]
pub(super) struct Return {
    pub(super) borrower: Arc<Borrower>,
    pub(super) loan: Loan,
    pub(super) permits: u64,
}

/// What is taken out of purses.
#[derive(Debug, Default)]
pub(super) struct Out {
    /// To be given back.
    pub(super) returns: Vec<Return>,
    /// Permits that the counter has forgotten by itself.
    pub(super) lapsed: u64,
}

// === impl Borrower ===

impl Borrower {
    pub(super) fn new(digest: u128, key: CounterKey<'_>, quota: &Quota) -> Self {
        Self {
            digest,
            limit: key.limit,
            values: key.values.iter().map(|&value| value.into()).collect(),
            quota: quota.clone(),
            is_reset: AtomicBool::new(false),
            landed: Arc::new(Notify::new()),
        }
    }

    /// The values of its key, to be borrowed by it.
    pub(super) fn values(&self) -> Vec<&str> {
        self.values.iter().map(AsRef::as_ref).collect()
    }

    /// Its key, over its [`values`](Self::values).
    pub(super) const fn key<'a>(&self, values: &'a [&'a str]) -> CounterKey<'a> {
        CounterKey {
            limit: self.limit,
            values,
        }
    }

    /// Notes that the counter was reset. Relaxed: it is read under the lock that it is written under, or
    /// by whoever gives back and may be a moment late.
    pub(super) fn reset(&self) {
        self.is_reset.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_reset(&self) -> bool {
        self.is_reset.load(Ordering::Relaxed)
    }

    /// Waits for the draw that is under way. Woken even if that ends before the waiting begins.
    pub(super) fn wait(&self) -> OwnedNotified {
        Arc::clone(&self.landed).notified_owned()
    }

    /// Wakes those who wait for a draw.
    pub(super) fn wake(&self) {
        self.landed.notify_waiters();
    }
}
