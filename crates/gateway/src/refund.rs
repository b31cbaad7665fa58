//! Refunds that a client cannot prevent by going away.

use std::sync::Arc;

use tidegate_limiter::{ChargeReceipt, Limiter, Store};
use tokio::task::{JoinHandle, spawn_local};

/// The receipt of charges that are refunded if the request ends here, because its client has left.
#[derive(Debug)]
pub struct ReceiptGuard<'a, S: Store + 'static> {
    limiter: &'a Arc<Limiter<S>>,
    receipt: Option<ChargeReceipt>,
}

/// Refunds in a task of its own: a client that goes away meanwhile must not lose its refund. A store that fails keeps the charge.
pub(crate) fn start_refund<S: Store + 'static>(
    limiter: &Arc<Limiter<S>>,
    receipt: ChargeReceipt,
) -> Option<JoinHandle<()>> {
    if receipt.is_empty() {
        return None;
    }
    let limiter = Arc::clone(limiter);
    Some(spawn_local(async move {
        let _ = limiter.refund(receipt).await;
    }))
}

// === impl ReceiptGuard ===

impl<'a, S: Store + 'static> ReceiptGuard<'a, S> {
    /// Guards the charges of a receipt, if there is one. It must be dropped on a thread with a `LocalSet`.
    pub const fn new(limiter: &'a Arc<Limiter<S>>, receipt: Option<ChargeReceipt>) -> Self {
        Self { limiter, receipt }
    }

    /// Leaves the charges as they are, and gives the receipt.
    pub fn disarm(mut self) -> Option<ChargeReceipt> {
        self.receipt.take()
    }

    /// Refunds the charges.
    ///
    /// # Cancel safety
    ///
    /// The refund goes on if this is dropped.
    pub async fn refund(mut self) {
        let receipt = self.receipt.take();
        if let Some(refund) = receipt.and_then(|receipt| start_refund(self.limiter, receipt)) {
            let _ = refund.await;
        }
    }
}

impl<S: Store + 'static> Drop for ReceiptGuard<'_, S> {
    fn drop(&mut self) {
        if let Some(receipt) = self.receipt.take() {
            drop(start_refund(self.limiter, receipt));
        }
    }
}
