//! The limits of a request that may have a token, decided in one step or in two.
//!
//! Limits that need no token are decided before a signature is checked, so that forged tokens cannot burn a core. A token that was
//! verified before is not checked again, and then all limits are decided in one step.

use std::net::IpAddr;
use std::sync::Arc;

use super::{BadToken, Claims, MissingToken, TokenFault, TokenRejection};
use crate::identities::TokenFound;
use crate::{DescribedPart, Headers, Identities};

/// Limits as they were decided: `C` is what was charged, `E` a denial.
#[derive(Clone, Debug)]
pub enum LimitSteps<C, E> {
    /// All limits were charged in one step.
    One {
        /// The charges.
        charged: C,
        /// The claims of the request's token, if it has one.
        claims: Option<Arc<Claims>>,
    },
    /// Those without a token were charged first. If the others deny the request, the first charges must be refunded.
    Two {
        /// The charges of limits that need no token.
        first: C,
        /// The others'.
        second: Result<C, E>,
        /// The claims of the request's token; none if a bad one counts as none.
        claims: Option<Arc<Claims>>,
    },
    /// Limits without a token were charged, and the request is rejected because of its token.
    Rejected {
        /// The charges, which stay: tokens must not be guessed at any rate.
        first: C,
        /// The reason.
        rejection: TokenRejection,
    },
}

// === impl Identities ===

impl Identities {
    /// Decides the limits of a request by calling `decide` for one or both parts of them.
    ///
    /// # Errors
    ///
    /// The denial of the first or only step; nothing is charged then.
    ///
    /// # Cancel safety
    ///
    /// If this is dropped while the second step is decided, the charges of the first are dropped: `C` must refund them then.
    pub async fn decide_in_steps<C, E>(
        &self,
        headers: &dyn Headers,
        client: Option<IpAddr>,
        missing: MissingToken,
        now_s: u64,
        decide: impl AsyncFn(Option<&Arc<Claims>>, DescribedPart) -> Result<C, E>,
    ) -> Result<LimitSteps<C, E>, E> {
        let found = self.find_token(headers, now_s);
        let first = match (found, missing) {
            (TokenFound::Verified(claims), _) => {
                let charged = decide(Some(&claims), DescribedPart::All).await?;
                let claims = Some(claims);
                return Ok(LimitSteps::One { charged, claims });
            }
            (TokenFound::Absent, MissingToken::Anonymous) => {
                let charged = decide(None, DescribedPart::All).await?;
                let claims = None;
                return Ok(LimitSteps::One { charged, claims });
            }
            (TokenFound::Absent, MissingToken::Deny) | (TokenFound::Unverified(_), _) => {
                decide(None, DescribedPart::WithoutToken).await?
            }
        };
        match self.claims(headers, client, missing, now_s) {
            Err(rejection) => Ok(LimitSteps::Rejected { first, rejection }),
            Ok(claims) => {
                let second = decide(claims.as_ref(), DescribedPart::OnlyToken).await;
                Ok(LimitSteps::Two {
                    first,
                    second,
                    claims,
                })
            }
        }
    }

    /// The claims of a request's token, verified; none if the request has no token or a bad one counts as none.
    ///
    /// A token that was not verified before costs CPU time, also if it is forged: requests of clients that are to be forwarded go by
    /// [`decide_in_steps`](Self::decide_in_steps). Of each `client` only so many forged ones are checked in a second.
    ///
    /// # Errors
    ///
    /// The reason why the settings reject the request.
    pub fn claims(
        &self,
        headers: &dyn Headers,
        client: Option<IpAddr>,
        missing: MissingToken,
        now_s: u64,
    ) -> Result<Option<Arc<Claims>>, TokenRejection> {
        let token = match self.find_token(headers, now_s) {
            TokenFound::Verified(claims) => return Ok(Some(claims)),
            TokenFound::Absent => {
                return match missing {
                    MissingToken::Anonymous => Ok(None),
                    MissingToken::Deny => Err(TokenRejection::Missing),
                };
            }
            TokenFound::Unverified(token) => token,
        };
        let Some(tokens) = self.tokens() else {
            return Err(TokenRejection::Bad(TokenFault::UnknownKey));
        };
        let verified = tokens.verify(&token, client, now_s);
        match (verified, self.bad_token(), missing) {
            (Ok(claims), ..) => Ok(Some(claims)),
            (Err(TokenRejection::Bad(_)), BadToken::Anonymous, MissingToken::Anonymous) => Ok(None),
            (Err(rejection), ..) => Err(rejection),
        }
    }
}
