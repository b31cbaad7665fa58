//! The charges of a request until its response is known.
//!
//! A limit that counts by status is charged when the request comes, so that parallel requests cannot slip through together, and refunded when
//! the response has another status. A request that reached no upstream in any attempt is refunded too, also if its client has left; after a
//! timeout the charge stays, because the upstream may have done its work.

use std::cell::Cell;
use std::sync::Arc;

use http::StatusCode;
use tidegate_limiter::{ChargeReceipt, Limit, Limiter, Store};

use crate::answer::LimitHeaders;
use crate::refund::{ReceiptGuard, start_refund};
use crate::upstream::Reached;

/// The charges of a request that is allowed.
#[derive(Debug, Default)]
pub(crate) struct Charged {
    /// The headers that tell of them.
    pub(crate) headers: LimitHeaders,
    /// The requests that remain of the limit in the headers, if it was decided in one of two steps.
    remaining: Option<u64>,
    /// The charges that may be refunded: of limits that need no token, and of those that do. Empty for nearly all requests.
    receipts: Vec<ChargeReceipt>,
}

/// Refunds the charges of a request if it is dropped before anything was sent to an upstream.
#[derive(Debug)]
pub(crate) struct RefundGuard<'a, S: Store + 'static> {
    charged: &'a mut Charged,
    limiter: &'a Arc<Limiter<S>>,
    reached: &'a Cell<Reached>,
}

// === impl Charged ===

impl Charged {
    pub(crate) fn new(headers: LimitHeaders, receipt: Option<ChargeReceipt>) -> Self {
        Self {
            headers,
            remaining: None,
            receipts: receipt.into_iter().collect(),
        }
    }

    /// Notes what remains of the limit in the headers.
    pub(crate) const fn remaining(mut self, remaining: Option<u64>) -> Self {
        self.remaining = remaining;
        self
    }

    /// Hands the charges of one step to a guard, so that they are refunded if the client leaves before the next step is decided.
    pub(crate) fn guarded<S: Store + 'static>(
        mut self,
        limiter: &Arc<Limiter<S>>,
    ) -> (Self, ReceiptGuard<'_, S>) {
        let receipt = self.receipts.pop();
        (self, ReceiptGuard::new(limiter, receipt))
    }

    /// Takes the charges back from their guard.
    pub(crate) fn unguarded<S: Store + 'static>(mut self, guard: ReceiptGuard<'_, S>) -> Self {
        self.receipts.extend(guard.disarm());
        self
    }

    /// Adds the charges of limits that needed a token. Of the others, those stay refundable that count by status. The headers are those of
    /// the limit with less remaining.
    pub(crate) fn and(mut self, later: Self) -> Self {
        for receipt in &mut self.receipts {
            receipt.retain(counts_by_status);
        }
        self.receipts.extend(later.receipts);
        let is_tighter = self.headers.is_empty() || later.remaining < self.remaining;
        if is_tighter && !later.headers.is_empty() {
            self.headers = later.headers;
        }
        self
    }

    /// Refunds the limits that do not count a response of this status, and gives the headers.
    pub(crate) async fn settle<S: Store + 'static>(
        mut self,
        limiter: &Arc<Limiter<S>>,
        status: StatusCode,
    ) -> LimitHeaders {
        for receipt in &mut self.receipts {
            let is_refunded = |limit: &Limit| {
                let counted = limit.counts_status();
                counted.is_some_and(|statuses| !statuses.contains(status.as_u16()))
            };
            receipt.retain(is_refunded);
        }
        self.refund(limiter).await
    }

    /// Refunds all that can be refunded, and gives the headers.
    pub(crate) async fn refund<S: Store + 'static>(
        self,
        limiter: &Arc<Limiter<S>>,
    ) -> LimitHeaders {
        // All are started before the first is awaited, because a client that leaves drops this future.
        let receipts = self.receipts.into_iter();
        let refunds = receipts.filter_map(|receipt| start_refund(limiter, receipt));
        for refund in refunds.collect::<Vec<_>>() {
            let _ = refund.await;
        }
        self.headers
    }
}

// === impl RefundGuard ===

impl<'a, S: Store + 'static> RefundGuard<'a, S> {
    pub(crate) fn new(
        charged: &'a mut Charged,
        limiter: &'a Arc<Limiter<S>>,
        reached: &'a Cell<Reached>,
    ) -> Self {
        Self {
            charged,
            limiter,
            reached,
        }
    }

    /// Leaves the charges as they are.
    pub(crate) fn disarm(self) {
        std::mem::forget(self);
    }
}

impl<S: Store + 'static> Drop for RefundGuard<'_, S> {
    fn drop(&mut self) {
        if self.reached.get() == Reached::No {
            let receipts = std::mem::take(&mut self.charged.receipts);
            for receipt in receipts {
                drop(start_refund(self.limiter, receipt));
            }
        }
    }
}

/// True if a limit is settled by the status of the response.
pub(crate) fn counts_by_status(limit: &Limit) -> bool {
    limit.counts_status().is_some()
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tidegate_limiter::{Descriptor, Entry, Hits, LimiterConfig};
    use tidegate_rules::{CompileOptions, Source, compile};
    use tidegate_store::{EmbeddedStore, StoreConfig};
    use tokio::runtime::{Builder, LocalOptions};
    use tokio::task::yield_now;

    use super::*;

    const RULES: &str = "
domain: gateway
descriptors:
  - key: address
    rate_limit: {unit: day, requests_per_unit: 3}
  - key: user
    rate_limit: {unit: day, requests_per_unit: 3}
";

    fn limiter() -> Arc<Limiter<EmbeddedStore>> {
        let source = Source {
            name: "test.yaml".to_owned(),
            bytes: RULES.into(),
        };
        let Ok(compiled) = compile(&[source], &CompileOptions::default()) else {
            panic!("the rules are good");
        };
        let store = EmbeddedStore::new(StoreConfig::default());
        let config = LimiterConfig::default();
        Arc::new(Limiter::new(store, compiled.rules, config))
    }

    const fn descriptor<'a>(entries: &'a [Entry<'a>]) -> Descriptor<'a> {
        Descriptor {
            entries,
            hits: Hits::OfRequest,
            limit: None,
        }
    }

    async fn charge(limiter: &Limiter<EmbeddedStore>, key: &str) -> Option<ChargeReceipt> {
        let entries = [Entry { key, value: "a" }];
        let descriptors = [descriptor(&entries)];
        let checked = limiter.check_then("gateway", &descriptors, 1, |verdict| {
            limiter.receipt(verdict, "gateway", &descriptors, 1, |_| true)
        });
        checked.await.unwrap()
    }

    async fn remaining(limiter: &Limiter<EmbeddedStore>, key: &str) -> u64 {
        let entries = [Entry { key, value: "a" }];
        let looked = limiter.look("gateway", &[descriptor(&entries)]).await;
        let verdict = looked.unwrap();
        let mut decisions = verdict.limits().filter_map(|limit| limit.decision());
        decisions.next().unwrap().remaining
    }

    #[test]
    fn a_client_that_leaves_during_the_refund_loses_none() {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build_local(LocalOptions::default())
            .unwrap();
        runtime.block_on(async {
            let limiter = limiter();
            let charged = Charged {
                headers: LimitHeaders::None,
                remaining: None,
                receipts: [
                    charge(&limiter, "address").await,
                    charge(&limiter, "user").await,
                ]
                .into_iter()
                .flatten()
                .collect(),
            };
            // Polled once and dropped.
            assert!(charged.refund(&limiter).now_or_never().is_none());
            yield_now().await;
            for key in ["address", "user"] {
                assert_eq!(remaining(&limiter, key).await, 3, "{key}");
            }
        });
    }
}
