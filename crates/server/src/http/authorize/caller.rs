//! The caller of the request that a proxy asks about, and its limits.

use std::sync::Arc;

use hyper::header::HeaderMap;
use tidegate_gateway::{HeaderLines, unix_seconds};
use tidegate_identify::{Claims, DescribedPart, Identities, LimitSteps, MissingToken};
use tidegate_limiter::{ChargeReceipt, Store, Verdict};
use tokio::task::spawn_local;

use super::original::Original;
use crate::answer::Refusal;
use crate::http::Visit;

/// The caller of a request.
pub(super) struct Caller<'a, S> {
    pub(super) visit: &'a Visit<S>,
    /// The headers of the proxy's question.
    pub(super) headers: &'a HeaderMap,
    pub(super) domain: &'a str,
    pub(super) original: Original<'a>,
    pub(super) identities: Arc<Identities>,
}

/// Limits that allow the request.
#[derive(Default)]
struct Charged {
    /// None if the request has no descriptor.
    verdict: Option<Verdict>,
    /// Kept for the first of two steps only.
    receipt: Option<ChargeReceipt>,
}

/// A request that is not allowed.
enum NotAllowed {
    Denied(Box<Verdict>),
    Refused(Refusal),
}

// === impl Caller ===

impl<S: Store + 'static> Caller<'_, S> {
    /// Decides the limits of the request; `None` if it has no descriptor.
    pub(super) async fn check(&self) -> Result<Option<Verdict>, Refusal> {
        match self.charge().await {
            Ok(charged) => Ok(charged.verdict),
            Err(NotAllowed::Denied(verdict)) => Ok(Some(*verdict)),
            Err(NotAllowed::Refused(refusal)) => Err(refusal),
        }
    }

    async fn charge(&self) -> Result<Charged, NotAllowed> {
        // A browser sends no token with a preflight.
        let missing = if self.original.is_preflight() {
            MissingToken::Anonymous
        } else {
            self.identities.missing_token()
        };
        let recipes = &self.visit.door.authorize.descriptors;
        if !recipes.needs_token() && missing == MissingToken::Anonymous {
            return self.decide(None, DescribedPart::All).await;
        }
        let lines = HeaderLines(self.headers);
        let decide = async |claims: Option<&Arc<Claims>>, part| self.decide(claims, part).await;
        let steps = self
            .identities
            .decide_in_steps(&lines, missing, unix_seconds(), decide);
        match steps.await? {
            LimitSteps::One { charged, .. } => Ok(charged),
            LimitSteps::Two { first, second, .. } => match second {
                Ok(second) if second.verdict.is_some() => Ok(second),
                Ok(_) => Ok(first),
                Err(denied) => {
                    // A denied request costs nothing in its other limits.
                    self.refund(first).await;
                    Err(denied)
                }
            },
            LimitSteps::Rejected { rejection, .. } => Err(NotAllowed::Refused(rejection.into())),
        }
    }

    /// Decides the limits of a part of the descriptors.
    async fn decide(
        &self,
        claims: Option<&Arc<Claims>>,
        part: DescribedPart,
    ) -> Result<Charged, NotAllowed> {
        let recipes = &self.visit.door.authorize.descriptors;
        let claims = claims.map(|claims| &**claims);
        let request = self.original.request(&self.identities, claims);
        let values = recipes.values(&request);
        let described = recipes.describe(&values, part);
        if described.is_empty() {
            return Ok(Charged::default());
        }
        let descriptors = described.descriptors();
        let verdict = self
            .visit
            .check(self.headers, self.domain, &descriptors, 1)
            .await
            .map_err(Refusal::from)?;
        if !verdict.is_allowed() {
            return Err(NotAllowed::Denied(Box::new(verdict)));
        }
        let limiter = &self.visit.door.limiter;
        let is_first = part == DescribedPart::WithoutToken;
        let receipt = limiter.receipt(&verdict, self.domain, &descriptors, 1, |_| is_first);
        Ok(Charged {
            verdict: Some(verdict),
            receipt,
        })
    }

    async fn refund(&self, charged: Charged) {
        if let Some(receipt) = charged.receipt {
            let limiter = Arc::clone(&self.visit.door.limiter);
            // In a task of its own: a proxy that goes away meanwhile must not lose the refund. A store that fails keeps the charge.
            let refund = spawn_local(async move { limiter.refund(receipt).await });
            let _ = refund.await;
        }
    }
}

// === impl NotAllowed ===

impl From<Refusal> for NotAllowed {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
