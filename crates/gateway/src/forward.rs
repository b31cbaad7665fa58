//! Requests on their way to an upstream, and responses on their way back.

pub(crate) mod headers;
mod rewrite;

use std::borrow::Cow;
use std::cell::Cell;
use std::net::IpAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::EXPECT;
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode, Uri, Version};
use hyper::body::Body;
use hyper::upgrade::OnUpgrade;
use tokio::time::{Sleep, sleep};

use crate::answer::tells_limits;
use crate::body::{BodyFault, BodyProgress, ClientBody, ContinueGate, RequestBody, StreamedBody};
use crate::config::{GatewayBounds, PathRewrite, RouteConfig};
use crate::connection::{ConnectionContext, RequestGuard};
use crate::forward::headers::FoundClient;
use crate::gateway::Generation;
use crate::response::GatewayBody;
use crate::upgrade::{Tunnel, TunnelProtocol};
use crate::upstream::{ForwardError, Reached, SharedUpstream, UpstreamBody, UpstreamPool};
use crate::websocket::{WebSocketSession, is_websocket};

/// A request that is allowed, and its way.
pub(crate) struct Forward<'a> {
    pub(crate) generation: &'a Generation,
    pub(crate) route: &'a RouteConfig,
    pub(crate) upstream: &'a Arc<SharedUpstream>,
    pub(crate) rewrite: Option<&'a PathRewrite>,
    /// The path in its normal form, if another one than the client's is to be sent.
    pub(crate) path: Option<String>,
    pub(crate) connection: &'a ConnectionContext,
    /// True if the peer is believed in what it says about its client.
    pub(crate) is_trusted: bool,
    /// The address that counts as the client's.
    pub(crate) client: Option<IpAddr>,
    /// The limits of the WebSocket connection that it may open.
    pub(crate) websocket: Option<Box<WebSocketSession>>,
}

/// A response of an upstream.
pub(crate) struct Forwarded {
    pub(crate) response: Box<Response<UpstreamBody>>,
    /// True if its headers tell of limits. They are looked through once, also where no limit of ours takes their place.
    pub(crate) tells_limits: bool,
    /// The end of the time that the request may take in all.
    pub(crate) deadline: Option<Pin<Box<Sleep>>>,
    /// The upstream's half of an upgraded connection.
    pub(crate) upgrade: Option<OnUpgrade>,
    /// The time after which an upgraded connection on which nothing flows is closed.
    pub(crate) idle_timeout: Duration,
    /// The limits of the WebSocket connection that it may be.
    pub(crate) websocket: Option<Box<WebSocketSession>>,
}

/// The reason why there is no response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ForwardFault {
    #[error(transparent)]
    Upstream(#[from] ForwardError),
    #[error(transparent)]
    Body(BodyFault),
    #[error("request timed out")]
    TotalTimeout,
    #[error("the rewritten path is not a path")]
    BadRewrite,
    #[error("the upstream switched protocols unasked")]
    UnaskedUpgrade,
    #[error("the upstream's Transfer-Encoding is not a single `chunked`")]
    BadTransferEncoding,
}

/// The path in its normal form, if another one than the client's is to be sent: it has more than one reading, or it is rewritten.
pub(crate) fn changed_path(path: Cow<'_, str>, rewrite: Option<&PathRewrite>) -> Option<String> {
    match path {
        Cow::Borrowed(path) => rewrite.is_some().then(|| path.to_owned()),
        Cow::Owned(path) => Some(path),
    }
}

// === impl Forward ===

impl Forward<'_> {
    /// Sends a request and gives the head of its response. `reached` tells, also if this is dropped, whether the upstream may have
    /// seen the request.
    pub(crate) async fn send(
        self,
        pool: &UpstreamPool,
        bounds: &GatewayBounds,
        mut head: Box<Parts>,
        body: ClientBody,
        reached: &Cell<Reached>,
    ) -> Result<Forwarded, ForwardFault> {
        let upgrade = self.prepare(&mut head)?;
        let (body, progress, gate) = self.body(&head, body, bounds);
        let mut request = Request::from_parts(*head, body);
        if let Some(gate) = gate {
            hyper::ext::on_informational(&mut request, move |informational| {
                if informational.status() == StatusCode::CONTINUE {
                    gate.open();
                }
            });
        }
        let mut deadline = self.route.total_timeout.map(|most| Box::pin(sleep(most)));
        let retry = self.route.retry.as_ref();
        let send = pool.exchange(self.upstream, request, retry, reached);
        let sent = match &mut deadline {
            None => send.await,
            Some(deadline) => tokio::select! {
                biased;
                sent = send => sent,
                () = deadline => return Err(ForwardFault::TotalTimeout),
            },
        };
        let mut response = match sent {
            Ok(response) => {
                if let Some(progress) = &progress {
                    progress.answered();
                }
                response
            }
            Err(error) => {
                let fault = progress.as_ref().and_then(|progress| progress.fault());
                return Err(fault.map_or(ForwardFault::Upstream(error), ForwardFault::Body));
            }
        };
        if response.status() == StatusCode::SWITCHING_PROTOCOLS && upgrade.is_none() {
            return Err(ForwardFault::UnaskedUpgrade);
        }
        if headers::has_other_encoding(response.headers()) {
            return Err(ForwardFault::BadTransferEncoding);
        }
        let upstream_upgrade = self.receive(&mut response, upgrade);
        Ok(Forwarded {
            tells_limits: tells_limits(response.headers()),
            response,
            deadline,
            upgrade: upstream_upgrade,
            idle_timeout: self.upstream.config.timeouts.idle,
            websocket: self.websocket,
        })
    }

    /// Makes the head of the client's request that of the upstream's.
    fn prepare(&self, head: &mut Parts) -> Result<Option<HeaderValue>, ForwardFault> {
        let upgrade = headers::strip_hop_by_hop(&mut head.headers);
        if head.version == Version::HTTP_2 {
            headers::join_cookies(&mut head.headers);
        }
        headers::set_forwarded(
            &mut head.headers,
            head.version,
            head.uri.authority(),
            self.connection,
            &FoundClient {
                address: self.client,
                header: &self.generation.config.client_address.header,
                is_trusted: self.is_trusted,
            },
        );
        headers::edit(&mut head.headers, &self.route.request_headers);
        if let Some(protocol) = &upgrade {
            headers::set_upgrade(&mut head.headers, protocol.clone());
        }
        if let Some(path) = &self.path {
            head.uri = rewrite::rewrite(&head.uri, path, &self.route.matches.path, self.rewrite)
                .ok_or(ForwardFault::BadRewrite)?;
        } else if head.uri.authority().is_some() {
            // Upstreams are asked in origin form.
            let path = head.uri.path_and_query().cloned();
            head.uri = path.map_or_else(Uri::default, Uri::from);
        }
        Ok(upgrade)
    }

    fn body(
        &self,
        head: &Parts,
        body: ClientBody,
        bounds: &GatewayBounds,
    ) -> (RequestBody, Option<Rc<BodyProgress>>, Option<ContinueGate>) {
        if body.incoming.is_end_stream() {
            return (RequestBody::Empty, None, None);
        }
        let gate = head.headers.contains_key(EXPECT).then(ContinueGate::new);
        let max_bytes = self.route.max_body_bytes.unwrap_or(bounds.max_body_bytes);
        let (body, progress) =
            StreamedBody::new(body, max_bytes, bounds.body_timeout, gate.clone());
        (RequestBody::Stream(Box::new(body)), Some(progress), gate)
    }

    /// Makes the head of the upstream's response that of ours, and gives the upgraded connection if there is one.
    fn receive(
        &self,
        response: &mut Response<UpstreamBody>,
        asked: Option<HeaderValue>,
    ) -> Option<OnUpgrade> {
        // The version is that of one hop too.
        *response.version_mut() = Version::HTTP_11;
        let protocol = headers::strip_hop_by_hop(response.headers_mut());
        headers::edit(response.headers_mut(), &self.route.response_headers);
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return None;
        }
        let protocol = protocol.or(asked)?;
        headers::set_upgrade(response.headers_mut(), protocol);
        Some(hyper::upgrade::on(response))
    }
}

// === impl Forwarded ===

impl Forwarded {
    /// The response to the client. An upgraded connection is left to `connection`, which carries it on.
    pub(crate) fn into_response(
        self,
        client: Option<OnUpgrade>,
        connection: &ConnectionContext,
        guard: RequestGuard,
    ) -> Response<GatewayBody> {
        let (head, body) = self.response.into_parts();
        let body = match (self.upgrade, client) {
            (Some(upstream), Some(client)) => {
                let tunnel = Tunnel {
                    client,
                    upstream,
                    idle_timeout: self.idle_timeout,
                    protocol: if is_websocket(&head.headers) {
                        TunnelProtocol::WebSocket(self.websocket)
                    } else {
                        TunnelProtocol::Other
                    },
                    guard: connection.state.again(),
                    response: body,
                };
                connection.upgrade(tunnel);
                GatewayBody::own(Bytes::new(), guard)
            }
            _ => GatewayBody::upstream(body, self.deadline, guard),
        };
        Response::from_parts(head, body)
    }
}
