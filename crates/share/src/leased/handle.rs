//! Everything that the store must be sent to draw permits of a counter and to give them back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidegate_algorithms::Quota;
use tidegate_store::{CounterKey, Draw, LimitId, Loan, StoreError};
use tokio::sync::watch;

/// An owned name of a counter. It holds the strings of a client while permits of theirs are held.
#[derive(Debug)]
pub(super) struct CounterHandle {
    pub(super) digest: u128,
    limit: LimitId,
    values: Box<[Box<str>]>,
    pub(super) quota: Quota,
    /// True once the counter was reset: permits drawn before are charged nowhere any more.
    is_reset: AtomicBool,
}

/// A wait for one draw.
#[derive(Clone, Debug)]
pub(super) struct DrawWait(watch::Receiver<Option<StoreError>>);

/// A draw to be made. Its counter expects it until it is settled or has failed. Dropped, it wakes the requests that wait
/// for it.
#[derive(Debug)]
pub(super) struct DrawPlan {
    pub(super) handle: Arc<CounterHandle>,
    pub(super) draw: Draw,
    /// The error, if the draw failed.
    pub(super) error: watch::Sender<Option<StoreError>>,
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
}

// === impl DrawPlan ===

impl DrawPlan {
    pub(super) fn new(handle: &Arc<CounterHandle>, draw: Draw) -> (Self, DrawWait) {
        let (error, wait) = watch::channel(None);
        let plan = Self {
            handle: Arc::clone(handle),
            draw,
            error,
        };
        (plan, DrawWait(wait))
    }
}

// === impl DrawWait ===

impl DrawWait {
    /// Waits for the draw, and returns its error if it failed. One that was cancelled did not.
    pub(super) async fn landed(mut self) -> Result<(), StoreError> {
        match self.0.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(error)) => Err(error.clone()),
            _ => Ok(()),
        }
    }
}
