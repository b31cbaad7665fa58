//! The caller of the request that a proxy asks about, and its limits.

use std::sync::Arc;

use hyper::header::HeaderMap;
use tidegate_gateway::{HeaderLines, ReceiptGuard, unix_seconds};
use tidegate_identify::{
    Claims, DescribedPart, Descriptors, Entries, Identities, LimitSteps, MissingToken, Values,
};
use tidegate_limiter::{Store, Verdict};

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
struct Charged<'a, S: Store + 'static> {
    /// None if the request has no descriptor.
    verdict: Option<Verdict>,
    /// The charges of the first of two steps, which are refunded if the proxy leaves before the second is decided.
    guard: ReceiptGuard<'a, S>,
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
            Ok(verdict) => Ok(verdict),
            Err(NotAllowed::Denied(verdict)) => Ok(Some(*verdict)),
            Err(NotAllowed::Refused(refusal)) => Err(refusal),
        }
    }

    async fn charge(&self) -> Result<Option<Verdict>, NotAllowed> {
        // A browser sends no token with a preflight.
        let missing = if self.original.is_preflight() {
            MissingToken::Anonymous
        } else {
            self.identities.missing_token()
        };
        let recipes = &self.visit.core.authorize.descriptors;
        if !recipes.needs_token() && missing == MissingToken::Anonymous {
            let charged = self.decide(None, DescribedPart::All).await?;
            return Ok(charged.keep());
        }
        let lines = HeaderLines(self.headers);
        let decide = async |claims: Option<&Arc<Claims>>, part| self.decide(claims, part).await;
        let steps = self.identities.decide_in_steps(
            &lines,
            self.original.client(),
            missing,
            unix_seconds(),
            decide,
        );
        match steps.await? {
            LimitSteps::One { charged, .. } => Ok(charged.keep()),
            LimitSteps::Two { first, second, .. } => match second {
                Ok(second) => Ok(tighter(first.keep(), second.keep())),
                Err(denied) => {
                    // A denied request costs nothing in its other limits.
                    first.guard.refund().await;
                    Err(denied)
                }
            },
            LimitSteps::Rejected { first, rejection } => {
                // The charges stay: tokens must not be guessed at any rate.
                first.keep();
                Err(NotAllowed::Refused(rejection.into()))
            }
        }
    }

    /// Decides the limits of a part of the descriptors.
    async fn decide(
        &self,
        claims: Option<&Arc<Claims>>,
        part: DescribedPart,
    ) -> Result<Charged<'_, S>, NotAllowed> {
        let recipes = &self.visit.core.authorize.descriptors;
        let limiter = &self.visit.core.limiter;
        let claims = claims.map(|claims| &**claims);
        let request = self.original.request(&self.identities, claims);
        let (mut values, mut entries) = (Values::default(), Entries::default());
        let read = recipes.read(&request, &mut values);
        read.map_err(Refusal::from)?;
        let mut descriptors = Descriptors::new();
        recipes.describe(&values, part, &mut entries, &mut descriptors);
        if descriptors.is_empty() {
            return Ok(Charged {
                verdict: None,
                guard: ReceiptGuard::new(limiter, None),
            });
        }
        let verdict = self
            .visit
            .check(self.headers, self.domain, &descriptors, 1)
            .await
            .map_err(Refusal::from)?;
        if !verdict.is_allowed() {
            return Err(NotAllowed::Denied(Box::new(verdict)));
        }
        let is_first = part == DescribedPart::WithoutToken;
        let receipt = limiter.receipt(&verdict, self.domain, &descriptors, 1, |_| is_first);
        Ok(Charged {
            verdict: Some(verdict),
            guard: ReceiptGuard::new(limiter, receipt),
        })
    }
}

// === impl Charged ===

impl<S: Store + 'static> Charged<'_, S> {
    /// Leaves the charges as they are, and gives the verdict.
    fn keep(self) -> Option<Verdict> {
        self.guard.disarm();
        self.verdict
    }
}

/// The verdict of which less remains.
fn tighter(first: Option<Verdict>, second: Option<Verdict>) -> Option<Verdict> {
    let remaining = |verdict: &Option<Verdict>| verdict.as_ref()?.announced_remaining();
    match (remaining(&first), remaining(&second)) {
        (Some(of_first), Some(of_second)) if of_second < of_first => second,
        (Some(_), _) => first,
        (None, _) => second.or(first),
    }
}

// === impl NotAllowed ===

impl From<Refusal> for NotAllowed {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
