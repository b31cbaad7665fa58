//! The caller of the request that a proxy asks about, and its limits.
//!
//! Limits that need no token are decided before a signature is checked, so that forged tokens cannot burn a core.

use std::sync::Arc;

use hyper::header::HeaderMap;
use tidegate_gateway::{HeaderLines, unix_seconds};
use tidegate_identify::{BadToken, Claims, DescribedPart, Identities, TokenFound};
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

// === impl Caller ===

impl<S: Store> Caller<'_, S> {
    /// Decides the limits of the request; `None` if it has no descriptor.
    pub(super) async fn check(&self) -> Result<Option<Verdict>, Refusal> {
        if !self.visit.door.authorize.descriptors.needs_token() {
            return self.decide(None, DescribedPart::All).await;
        }
        let now_s = unix_seconds();
        let lines = HeaderLines(self.headers);
        let token = match self.identities.find_token(&lines, now_s) {
            TokenFound::Absent => return self.decide(None, DescribedPart::All).await,
            TokenFound::Verified(claims) => {
                return self.decide(Some(&claims), DescribedPart::All).await;
            }
            TokenFound::Unverified(token) => token,
        };
        let first = self.decide(None, DescribedPart::WithoutToken).await?;
        if first.as_ref().is_some_and(|verdict| !verdict.is_allowed()) {
            return Ok(first);
        }
        let claims = match self.identities.verify(&token, now_s) {
            Ok(claims) => Some(claims),
            Err(fault) => match self.identities.bad_token() {
                BadToken::Deny => return Err(Refusal::BadToken(fault)),
                BadToken::Anonymous => None,
            },
        };
        let second = self
            .decide(claims.as_deref(), DescribedPart::OnlyToken)
            .await?;
        Ok(second.or(first))
    }

    /// Decides the limits of a part of the descriptors; `None` if there are none.
    async fn decide(
        &self,
        claims: Option<&Claims>,
        part: DescribedPart,
    ) -> Result<Option<Verdict>, Refusal> {
        let recipes = &self.visit.door.authorize.descriptors;
        let request = self.original.request(&self.identities, claims);
        let values = recipes.values(&request);
        let described = recipes.describe(&values, part);
        if described.is_empty() {
            return Ok(None);
        }
        let descriptors = described.descriptors();
        let verdict = self
            .visit
            .check(self.headers, self.domain, &descriptors, 1)
            .await?;
        Ok(Some(verdict))
    }
}
