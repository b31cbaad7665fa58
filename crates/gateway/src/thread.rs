//! One thread's part of a gateway: the way of a request, step by step.
//!
//! ```text
//!  guard ──► access ──► route ──► limits ──► forward ──► response
//!    │400      │403       │404      │429        │502, 503, 504
//! ```

use std::cell::Cell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};
use hyper::body::Body;
use tidegate_answer::Headers;
use tidegate_identify::{Peer, normal_host, normal_path};
use tidegate_limiter::{Limiter, Store};
use tidegate_observe::Recorder;
use tracing::warn;

use crate::answer::{self, LimitHeaders, Rejection};
use crate::body::{ClientBody, has_more};
use crate::charged::{Charged, RefundGuard};
use crate::config::{GatewayBounds, GatewayConfig, RouteAction, RouteConfig};
use crate::connection::{ConnectionContext, RequestGuard};
use crate::cors::{ExposedHeaders, is_preflight};
use crate::counts::{Origin, ResponseCounts};
use crate::decision_wait::DecisionWait;
use crate::forward::headers::{address_lines, remove_bad_length};
use crate::forward::{Forward, ForwardFault, Forwarded, changed_path};
use crate::gateway::{Gateway, Generation};
use crate::guard;
use crate::limit::Caller;
use crate::noted_headers::{NotedHeader, NotedHeaders};
use crate::own::{OwnRequest, PREFLIGHTS, charge_built_in};
use crate::response::GatewayBody;
use crate::route::{self, Routed};
use crate::upstream::{Reached, SharedUpstream, UpstreamPool};

/// All that the connections of one thread share.
#[derive(Debug)]
pub struct GatewayThread<S> {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) limiter: Arc<Limiter<S>>,
    pub(crate) recorder: Rc<Recorder>,
    /// The headers that tell of limits where a rule does not say.
    pub(crate) dialect: Headers,
    exposed: ExposedHeaders,
    counts: Arc<ResponseCounts>,
    pub(crate) bounds: GatewayBounds,
    pool: UpstreamPool,
    is_leaving: Cell<bool>,
}

/// The response to a request that was not rejected.
enum HandlerResponse {
    /// One of the gateway's own.
    Own(Response<Bytes>, LimitHeaders),
    /// The upstream's.
    Forwarded(Forwarded, LimitHeaders),
}

/// A request in its present step.
struct Exchange<'a> {
    generation: &'a Generation,
    connection: &'a ConnectionContext,
    wait: &'a DecisionWait,
    noted: NotedHeaders,
    /// True if the peer is believed in what it says about its client.
    is_trusted: bool,
    /// The address that counts as the client's.
    client: Option<IpAddr>,
    /// In a box, because it is handed from step to step.
    head: Box<Parts>,
    /// There until it is forwarded.
    body: &'a mut Option<ClientBody>,
}

const CLOSE: HeaderValue = HeaderValue::from_static("close");

// === impl GatewayThread ===

impl<S> GatewayThread<S> {
    /// One thread's part of `gateway`.
    pub fn new(
        gateway: Arc<Gateway>,
        limiter: Arc<Limiter<S>>,
        recorder: Rc<Recorder>,
        dialect: Headers,
        bounds: GatewayBounds,
    ) -> Self {
        Self {
            pool: UpstreamPool::new(gateway.threads()),
            exposed: ExposedHeaders::new(&dialect),
            counts: gateway.counts(),
            gateway,
            limiter,
            recorder,
            dialect,
            bounds,
            is_leaving: Cell::new(false),
        }
    }

    /// From now on, each response over HTTP/1 closes its connection, because the server is going to stop.
    pub fn leave(&self) {
        self.is_leaving.set(true);
    }

    /// True if the server is going to stop.
    pub(crate) const fn is_leaving(&self) -> bool {
        self.is_leaving.get()
    }

    /// The time a client may take nothing of an answer that waits for it.
    pub fn write_timeout(&self) -> Duration {
        self.bounds.write_timeout
    }
}

impl<S: Store + 'static> GatewayThread<S> {
    /// Answers one request.
    pub(crate) async fn answer(
        &self,
        mut request: Request<ClientBody>,
        connection: &ConnectionContext,
        guard: RequestGuard,
        wait: &DecisionWait,
    ) -> Response<GatewayBody> {
        let generation = self.gateway.generation();
        let config = &generation.config;
        let noted = NotedHeaders::of(request.headers());
        let upgrade = noted
            .has(NotedHeader::Upgrade)
            .then(|| hyper::upgrade::on(&mut request));
        let (head, body) = request.into_parts();
        let (version, has_body) = (head.version, !body.incoming.is_end_stream());
        let (head, mut body) = (Box::new(head), Some(body));
        let dialogue = noted.dialogue(&head.headers);
        let origin = noted.origin(&head.headers);
        let (is_last, is_head) = (guard.is_last, head.method == Method::HEAD);
        let (is_trusted, client) = client_address(&head.headers, connection.client.peer, config);
        let exchange = Exchange {
            generation: &generation,
            connection,
            wait,
            noted,
            is_trusted,
            client,
            head,
            body: &mut body,
        };
        let (own, limits) = match self.handle(exchange).await {
            Ok(HandlerResponse::Forwarded(forwarded, limits)) => {
                self.counts
                    .add(Origin::Upstream, forwarded.response.status());
                let mut response = forwarded.into_response(upgrade, connection, guard);
                if is_head {
                    remove_bad_length(response.headers_mut());
                }
                let (cors, origin) = (config.cors.as_ref(), origin.as_ref());
                self.exposed.extend(cors, origin, response.headers_mut());
                return finish(response, limits, is_last);
            }
            Ok(HandlerResponse::Own(response, limits)) => (response, limits),
            Err(rejection) => {
                let response = rejection.into_response(dialogue, &config.denial_body);
                (response, LimitHeaders::None)
            }
        };
        self.counts.add(Origin::Gateway, own.status());
        let own = if is_head { without_body(own) } else { own };
        let mut response = own.map(|body| GatewayBody::own(body, guard));
        if let Some(cors) = &config.cors {
            let headers = response.headers_mut();
            self.exposed.allow(cors, origin.as_ref(), headers);
        }
        let may_close = has_body && version < Version::HTTP_2;
        let closes = may_close && (noted.has(NotedHeader::Expect) || has_more(body).await);
        finish(response, limits, is_last || closes)
    }

    async fn handle(&self, exchange: Exchange<'_>) -> Result<HandlerResponse, Rejection> {
        let (head, config) = (&exchange.head, &exchange.generation.config);
        let host = self.check_head(&exchange)?;
        let host = host.map(normal_host).unwrap_or_default();
        let path = normal_path(head.uri.path()).unwrap_or_default();
        if let Some(own_path) = path.strip_prefix(config.own_prefix.as_str()) {
            // In a box, so that the future of every other request stays small.
            return Box::pin(self.answer_own(&exchange, &host, own_path)).await;
        }
        let routed = Routed {
            host: &host,
            path: &path,
            head,
        };
        let route = route::find(&config.routes, &routed)?;
        self.check_length(&exchange, route)?;
        let caller = Caller {
            config,
            route,
            connection: exchange.connection,
            head,
            host: &host,
            client: exchange.client,
        };
        let charged = self.charge(&exchange, &caller).await?;
        let (charged, websocket) = caller.open_websocket(self, charged).await?;
        match &route.action {
            RouteAction::Forward { upstream, rewrite } => {
                let forward = Forward {
                    generation: exchange.generation,
                    route,
                    upstream: &exchange.generation.upstreams[*upstream],
                    rewrite: rewrite.as_ref(),
                    path: changed_path(path, rewrite.as_ref()),
                    connection: exchange.connection,
                    is_trusted: exchange.is_trusted,
                    client: exchange.client,
                    websocket,
                };
                drop(host);
                // Nobody has taken it before, so it is there.
                let body = exchange.body.take().ok_or(Rejection::NoRoute)?;
                self.forward(forward, exchange.head, body, charged).await
            }
            RouteAction::Redirect { status, location } => {
                let limits = charged.settle(&self.limiter, *status).await;
                let response = answer::redirect(*status, location, &path, head.uri.query())?;
                Ok(HandlerResponse::Own(response, limits))
            }
            RouteAction::Respond {
                status,
                content_type,
                body,
            } => {
                let response = answer::with_body(*status, content_type.clone(), body.clone());
                let limits = charged.settle(&self.limiter, *status).await;
                Ok(HandlerResponse::Own(response, limits))
            }
        }
    }

    /// Charges the limits of a request; those of a preflight are Tidegate's own, because the page has not asked for anything yet.
    async fn charge(
        &self,
        exchange: &Exchange<'_>,
        caller: &Caller<'_>,
    ) -> Result<Charged, Rejection> {
        let head = &exchange.head;
        let is_empty = exchange
            .body
            .as_ref()
            .is_none_or(|it| it.incoming.is_end_stream());
        if is_preflight(&head.method, &head.headers) && is_empty {
            let config = &exchange.generation.config;
            charge_built_in(self, config, head, exchange.client, "preflight", PREFLIGHTS).await?;
            return Ok(Charged::default());
        }
        caller.charge(self, exchange.wait).await
    }

    /// Answers a request to one of Tidegate's own paths.
    async fn answer_own(
        &self,
        exchange: &Exchange<'_>,
        host: &str,
        own_path: &str,
    ) -> Result<HandlerResponse, Rejection> {
        let own = OwnRequest {
            config: &exchange.generation.config,
            connection: exchange.connection,
            head: &exchange.head,
            host,
            client: exchange.client,
        };
        let response = own.answer(self, own_path).await?;
        Ok(HandlerResponse::Own(response, LimitHeaders::None))
    }

    /// Rejects a request by its head alone, and gives the host that it names.
    fn check_head<'e>(&self, exchange: &'e Exchange<'_>) -> Result<Option<&'e str>, Rejection> {
        if let Some(Err(out_of_memory)) = exchange.body.as_ref().map(|it| &it.window) {
            return Err((*out_of_memory).into());
        }
        // hyper counts them in HTTP/1 only.
        let max_headers = self.bounds.max_headers;
        if exchange.head.headers.len() > max_headers {
            return Err(Rejection::TooManyHeaders { max_headers });
        }
        let host = guard::check(&exchange.head, exchange.noted)?;
        if !exchange.generation.config.access.allows(exchange.client) {
            return Err(Rejection::NoAccess);
        }
        Ok(host)
    }

    /// Forwards a request, and settles its charges by the response.
    async fn forward(
        &self,
        forward: Forward<'_>,
        head: Box<Parts>,
        body: ClientBody,
        mut charged: Charged,
    ) -> Result<HandlerResponse, Rejection> {
        let upstream = forward.upstream;
        let reached = Cell::default();
        // A client that leaves drops this future.
        let guard = RefundGuard::new(&mut charged, &self.limiter, &reached);
        let sending = forward.send(&self.pool, &self.bounds, head, body, &reached);
        let sent = sending.await;
        guard.disarm();
        match sent {
            Ok(mut forwarded) => {
                let status = forwarded.response.status();
                let limits = charged.settle(&self.limiter, status).await;
                if forwarded.tells_limits && !limits.is_empty() {
                    answer::remove_limits(forwarded.response.headers_mut());
                }
                Ok(HandlerResponse::Forwarded(forwarded, limits))
            }
            Err(fault) => {
                report(upstream, &fault);
                if reached.get() == Reached::No {
                    charged.refund(&self.limiter).await;
                }
                Err(fault.into())
            }
        }
    }

    /// Rejects a body that says itself that it is too large.
    fn check_length(&self, exchange: &Exchange<'_>, route: &RouteConfig) -> Result<(), Rejection> {
        let max_bytes = route.max_body_bytes.unwrap_or(self.bounds.max_body_bytes);
        let length = exchange
            .body
            .as_ref()
            .map(|it| it.incoming.size_hint().lower());
        if length.is_some_and(|length| length > max_bytes) {
            return Err(Rejection::BodyTooLarge { max_bytes });
        }
        Ok(())
    }
}

/// The trust in the peer, and the address that counts as the client's.
fn client_address(
    headers: &HeaderMap,
    peer: Peer,
    config: &GatewayConfig,
) -> (bool, Option<IpAddr>) {
    let settings = &config.client_address;
    if !settings.trusts(peer) {
        return (false, settings.find(peer, []));
    }
    let lines = address_lines(headers, &settings.header);
    let lines = lines.iter().map(HeaderValue::as_bytes);
    (true, settings.find_behind(peer, lines))
}

/// Logs a request that got no response, with the number of those since the last line; clients are not told the cause.
fn report(upstream: &SharedUpstream, fault: &ForwardFault) {
    if let Some(n_failed) = upstream.counters.failure_log.count() {
        let cause = answer::with_causes(fault);
        warn!(
            upstream = upstream.config.name,
            n_failed, "request failed: {cause}"
        );
    }
}

/// A response of our own to HEAD. hyper leaves bodies out by itself, but not in HTTP/2.
fn without_body(mut response: Response<Bytes>) -> Response<Bytes> {
    let length = HeaderValue::from(response.body().len());
    response.headers_mut().insert(CONTENT_LENGTH, length);
    response.map(|_| Bytes::new())
}

/// Adds what every response has.
fn finish(
    mut response: Response<GatewayBody>,
    limits: LimitHeaders,
    is_last: bool,
) -> Response<GatewayBody> {
    limits.add_to(response.headers_mut());
    if is_last && response.status() != StatusCode::SWITCHING_PROTOCOLS {
        // hyper drops it from HTTP/2.
        response.headers_mut().insert(CONNECTION, CLOSE);
    }
    response
}
