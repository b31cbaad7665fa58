//! Everything that the store must be sent to draw permits of a counter and to give them back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tidegate_algorithms::Quota;
use tidegate_store::{CounterKey, Draw, LimitId, Loan, StoreError};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

/// An owned name of a counter. It holds the strings of a client while permits of theirs are held.
#[derive(Debug)]
pub(super) struct CounterHandle {
    pub(super) digest: u128,
    limit: LimitId,
    values: Box<[Box<str>]>,
    pub(super) quota: Quota,
    /// True once the counter was reset: permits drawn before are charged nowhere any more.
    is_reset: AtomicBool,
    /// Wakes the requests that wait for a draw.
    landed: Arc<Notify>,
    /// The error of the last draw, if it failed.
    error: Mutex<Option<StoreError>>,
}

/// A wait for the current draw of a counter.
#[derive(Debug)]
pub(super) struct DrawWait {
    handle: Arc<CounterHandle>,
    landed: OwnedNotified,
}

/// A draw to be made. Its counter expects it until it is settled or has failed.
#[derive(Clone, Debug)]
pub(super) struct DrawPlan {
    pub(super) handle: Arc<CounterHandle>,
    pub(super) draw: Draw,
}

/// Permits of a loan to be given back.
#[derive(Clone, Debug)]
pub(super) struct LoanRefund {
    pub(super) handle: Arc<CounterHandle>,
    pub(super) loan: Loan,
    pub(super) permits: u64,
}

/// Permits that counters no longer hold.
#[derive(Debug, Default)]
pub(super) struct Released {
    pub(super) refunds: Vec<LoanRefund>,
    /// Permits that the store's counter has forgotten by itself.
    pub(super) lapsed: u64,
}

// === impl CounterHandle ===

impl CounterHandle {
    pub(super) fn new(digest: u128, key: CounterKey<'_>, quota: &Quota) -> Self {
        Self {
            digest,
            limit: key.limit,
            values: key.values.iter().map(|&value| value.into()).collect(),
            quota: quota.clone(),
            is_reset: AtomicBool::new(false),
            landed: Arc::new(Notify::new()),
            error: Mutex::default(),
        }
    }

    /// The values of the key, to be borrowed by it.
    pub(super) fn values(&self) -> Vec<&str> {
        self.values.iter().map(AsRef::as_ref).collect()
    }

    /// The key, over its [`values`](Self::values).
    pub(super) const fn key<'a>(&self, values: &'a [&'a str]) -> CounterKey<'a> {
        CounterKey {
            limit: self.limit,
            values,
        }
    }

    /// Marks the counter as reset. Relaxed: the mark is read under the lock that it is written under, or by a
    /// refund that may be a moment late.
    pub(super) fn reset(&self) {
        self.is_reset.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_reset(&self) -> bool {
        self.is_reset.load(Ordering::Relaxed)
    }

    /// A wait for the current draw. It ends even if the draw does before the wait begins.
    pub(super) fn wait(self: &Arc<Self>) -> DrawWait {
        DrawWait {
            landed: Arc::clone(&self.landed).notified_owned(),
            handle: Arc::clone(self),
        }
    }

    /// Wakes the requests that wait for a draw, which failed if there is an `error`.
    pub(super) fn wake(&self, error: Option<StoreError>) {
        *self.error.lock().unwrap_or_else(PoisonError::into_inner) = error;
        self.landed.notify_waiters();
    }
}

// === impl DrawWait ===

impl DrawWait {
    /// Waits for the draw, and returns its error if it failed. One that was cancelled did not.
    pub(super) async fn landed(self) -> Result<(), StoreError> {
        self.landed.await;
        let error = self.handle.error.lock();
        let error = error.unwrap_or_else(PoisonError::into_inner).clone();
        error.map_or(Ok(()), Err)
    }
}
