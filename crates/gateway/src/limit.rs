//! The caller of a request and its limits.

use std::net::IpAddr;
use std::sync::Arc;

use http::HeaderMap;
use http::header::UPGRADE;
use http::request::Parts;
use http::uri::PathAndQuery;
use quanta::Instant;
use tidegate_identify::{
    Claims, DescribedPart, Descriptors, Entries, LimitSteps, Request, TokenRejection, Values,
};
use tidegate_limiter::{Limit, LimiterError, Store, Verdict};
use tidegate_observe::{DecisionId, LimiterRequest, TraceHeaders};

use crate::answer::{Denial, DenialForm, LimitHeaders, Rejection};
use crate::charged::{Charged, counts_by_status};
use crate::clock::unix_seconds;
use crate::config::{GatewayConfig, RouteConfig};
use crate::connection::ConnectionContext;
use crate::decision_wait::DecisionWait;
use crate::header_lines::HeaderLines;
use crate::refund::ReceiptGuard;
use crate::thread::GatewayThread;
use crate::websocket::WebSocketSession;

/// A request whose limits are to be decided.
pub(crate) struct Caller<'a> {
    pub(crate) config: &'a GatewayConfig,
    pub(crate) route: &'a RouteConfig,
    pub(crate) connection: &'a ConnectionContext,
    pub(crate) head: &'a Parts,
    /// The host in lower case, without port; empty if the request names none.
    pub(crate) host: &'a str,
    /// The address that counts as the client's.
    pub(crate) client: Option<IpAddr>,
}

// === impl Caller ===

impl Caller<'_> {
    /// Decides the limits of the request, and charges them. `wait` is told while a store decides.
    pub(crate) async fn charge<S: Store + 'static>(
        &self,
        thread: &GatewayThread<S>,
        wait: &DecisionWait,
    ) -> Result<Charged, Rejection> {
        let lines = HeaderLines(&self.head.headers);
        let (charged, claims) = if self.config.needs_token(self.route) {
            // In a box, so that the future of every other request stays small.
            Box::pin(self.charge_with_token(thread, &lines)).await?
        } else {
            wait.begin();
            let all = self.decide(thread, &lines, None, DescribedPart::All);
            let decided = all.await;
            wait.end();
            let charged = decided?;
            if wait.is_abandoned() {
                charged.refund(&thread.limiter).await;
                return Err(Rejection::ClientGone);
            }
            (charged, None)
        };
        if self.route.require.is_empty() {
            return Ok(charged);
        }
        // After the limits, so that keys and plans cannot be guessed at any rate.
        match self.check_requirements(&self.request(&lines, claims.as_ref())) {
            Ok(()) => Ok(charged),
            Err(rejection) => Err(reject(thread, charged, rejection).await),
        }
    }

    /// The same for a request that may have a token, with the claims of that.
    async fn charge_with_token<S: Store + 'static>(
        &self,
        thread: &GatewayThread<S>,
        lines: &HeaderLines<'_>,
    ) -> Result<(Charged, Option<Arc<Claims>>), Rejection> {
        let missing = self.config.missing_token(self.route);
        let decide = async |claims: Option<&Arc<Claims>>, part| {
            let charged = self.decide(thread, lines, claims, part).await?;
            Ok::<_, Rejection>(charged.guarded(&thread.limiter))
        };
        let kept = |(charged, guard): (Charged, ReceiptGuard<'_, S>)| charged.unguarded(guard);
        let identities = &self.config.identities;
        let steps = identities.decide_in_steps(lines, self.client, missing, unix_seconds(), decide);
        match steps.await? {
            LimitSteps::One { charged, claims } => Ok((kept(charged), claims)),
            LimitSteps::Two {
                first,
                second: Ok(second),
                claims,
            } => Ok((kept(first).and(kept(second)), claims)),
            LimitSteps::Two {
                first: (_, guard),
                second: Err(denied),
                ..
            } => {
                // A denied request costs nothing in its other limits.
                guard.refund().await;
                Err(denied)
            }
            LimitSteps::Rejected { first, rejection } => {
                Err(reject(thread, kept(first), rejection.into()).await)
            }
        }
    }

    /// Looks at the limits of the request without charging any. `None` if it has no descriptor.
    pub(crate) async fn look<S: Store>(
        &self,
        thread: &GatewayThread<S>,
    ) -> Result<Option<Verdict>, Rejection> {
        let lines = HeaderLines(&self.head.headers);
        let claims = if self.config.needs_token(self.route) {
            self.claims(lines)?
        } else {
            None
        };
        let request = self.request(&lines, claims.as_ref());
        self.check_requirements(&request)?;
        let recipes = self.config.descriptors_of(self.route);
        let (mut values, mut entries) = (Values::default(), Entries::default());
        recipes.read(&request, &mut values)?;
        let mut descriptors = Descriptors::new();
        recipes.describe(&values, DescribedPart::All, &mut entries, &mut descriptors);
        if descriptors.is_empty() {
            return Ok(None);
        }
        let looked = thread.limiter.look(&self.config.domain, &descriptors).await;
        Ok(Some(looked?))
    }

    /// Checks that the caller is one of those that the route is for.
    fn check_requirements(&self, request: &Request<'_>) -> Result<(), Rejection> {
        for requirement in &self.route.require {
            if !requirement.is_met(request)? {
                return Err(Rejection::Forbidden);
            }
        }
        Ok(())
    }

    /// The claims of the request's token, or the reason why the settings reject the request.
    fn claims(&self, lines: HeaderLines<'_>) -> Result<Option<Arc<Claims>>, TokenRejection> {
        let missing = self.config.missing_token(self.route);
        let identities = &self.config.identities;
        identities.claims(&lines, self.client, missing, unix_seconds())
    }

    /// The limits of the WebSocket connection that the request may open. Its limits must have been decided before, so that a token
    /// was verified.
    /// The charges of a request that cannot have them are settled.
    pub(crate) async fn open_websocket<S: Store + 'static>(
        &self,
        thread: &GatewayThread<S>,
        charged: Charged,
    ) -> Result<(Charged, Option<Box<WebSocketSession>>), Rejection> {
        match self.websocket_session() {
            Ok(session) => Ok((charged, session)),
            Err(rejection) => Err(reject(thread, charged, rejection).await),
        }
    }

    fn websocket_session(&self) -> Result<Option<Box<WebSocketSession>>, Rejection> {
        let Some(limits) = &self.route.websocket else {
            return Ok(None);
        };
        if !self.head.headers.contains_key(UPGRADE) {
            return Ok(None);
        }
        let Some(recipes) = &limits.descriptors else {
            let session = WebSocketSession::new(limits, &self.config.domain, &[]);
            return Ok(Some(Box::new(session)));
        };
        let lines = HeaderLines(&self.head.headers);
        let claims = if recipes.needs_token() {
            self.claims(lines).ok().flatten()
        } else {
            None
        };
        let (mut values, mut entries) = (Values::default(), Entries::default());
        recipes.read(&self.request(&lines, claims.as_ref()), &mut values)?;
        let mut descriptors = Descriptors::new();
        recipes.describe(&values, DescribedPart::All, &mut entries, &mut descriptors);
        let session = WebSocketSession::new(limits, &self.config.domain, &descriptors);
        Ok(Some(Box::new(session)))
    }

    #[inline]
    fn request<'r>(
        &'r self,
        lines: &'r HeaderLines<'_>,
        claims: Option<&'r Arc<Claims>>,
    ) -> Request<'r> {
        Request {
            method: Some(self.head.method.as_str()),
            uri: self.head.uri.path_and_query().map(PathAndQuery::as_str),
            host: Some(self.host).filter(|host| !host.is_empty()),
            client: self.client,
            headers: lines,
            identities: &self.config.identities,
            claims: claims.map(|claims| &**claims),
            certificate: self.connection.client.certificate.as_deref(),
            route: Some(&self.route.name),
        }
    }

    /// Decides the limits of a part of the descriptors.
    async fn decide<S: Store>(
        &self,
        thread: &GatewayThread<S>,
        lines: &HeaderLines<'_>,
        claims: Option<&Arc<Claims>>,
        part: DescribedPart,
    ) -> Result<Charged, Rejection> {
        let recipes = self.config.descriptors_of(self.route);
        if recipes.is_empty() {
            return Ok(Charged::default());
        }
        let (mut values, mut entries) = (Values::default(), Entries::default());
        recipes.read(&self.request(lines, claims), &mut values)?;
        let mut descriptors = Descriptors::new();
        recipes.describe(&values, part, &mut entries, &mut descriptors);
        if descriptors.is_empty() {
            // As Envoy has it: a request without a descriptor is not limited.
            return Ok(Charged::default());
        }
        let request = LimiterRequest {
            domain: &self.config.domain,
            descriptors: &descriptors,
            hits: 1,
            route: Some(&self.route.name),
            trace: if thread.recorder.traces() {
                trace(&self.head.headers)
            } else {
                TraceHeaders::default()
            },
        };
        let decided = thread.check(&request, |verdict, decision| {
            if !verdict.is_allowed() {
                let form = DenialForm::of(&self.head.headers, &self.config.denial_body);
                let denial = Denial::new(verdict, &thread.dialect, decision, form);
                return Err(Rejection::Denied(Box::new(denial)));
            }
            let is_wanted =
                |limit: &Limit| part == DescribedPart::WithoutToken || counts_by_status(limit);
            let domain = &self.config.domain;
            let receipt = thread
                .limiter
                .receipt(verdict, domain, &descriptors, 1, is_wanted);
            let headers = LimitHeaders::of(verdict, &thread.dialect);
            let remaining = match part {
                DescribedPart::All => None,
                DescribedPart::WithoutToken | DescribedPart::OnlyToken => {
                    verdict.announced_remaining()
                }
            };
            Ok(Charged::new(headers, receipt).remaining(remaining))
        });
        decided.await?
    }
}

/// Settles the charges of a request that gets another answer than its limits'.
async fn reject<S: Store + 'static>(
    thread: &GatewayThread<S>,
    charged: Charged,
    rejection: Rejection,
) -> Rejection {
    charged.settle(&thread.limiter, rejection.status()).await;
    rejection
}

// === impl GatewayThread ===

impl<S: Store> GatewayThread<S> {
    /// Judges a request or a message, records the verdict, and hands it to `then` with the id under which it is kept, if it is.
    pub(crate) async fn check<T>(
        &self,
        request: &LimiterRequest<'_>,
        then: impl FnOnce(&Verdict, Option<DecisionId>) -> T,
    ) -> Result<T, LimiterError> {
        let started = Instant::now();
        let checked = self.limiter.check_then(
            request.domain,
            request.descriptors,
            request.hits,
            |verdict| {
                let decision = self.recorder.judged(request, verdict, started.elapsed());
                then(verdict, decision)
            },
        );
        checked
            .await
            .inspect_err(|error| self.recorder.rejected(error))
    }
}

fn trace(headers: &HeaderMap) -> TraceHeaders<'_> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    TraceHeaders {
        traceparent: text("traceparent"),
        tracestate: text("tracestate"),
    }
}
