//! `usage`: the limits of the caller and what remains of them, without counting.

use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use serde_json::{Value, json};
use tidegate_answer::Policies;
use tidegate_identify::{normal_path, query_parameters};
use tidegate_limiter::{Retry, Store, Verdict};

use super::OwnRequest;
use crate::answer::{self, Rejection};
use crate::config::{EscapedSlashes, HeaderEdits, RouteAction, RouteConfig, RouteMatch};
use crate::limit::Caller;
use crate::route::{self, Routed};
use crate::thread::GatewayThread;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

// === impl OwnRequest ===

impl OwnRequest<'_> {
    /// Tells the caller the limits of a request with the same headers, by the route of `?path=/x&method=GET`. Without a path, the
    /// descriptors are those of the gateway.
    pub(super) async fn usage<S: Store>(
        &self,
        thread: &GatewayThread<S>,
    ) -> Result<Response<Bytes>, Rejection> {
        let (head, has_path) = described_head(self.head)?;
        let path = normal_path(head.uri.path()).unwrap_or_default();
        let none = no_route();
        let route = if has_path {
            let routed = Routed {
                host: self.host,
                path: &path,
                head: &head,
            };
            route::find(&self.config.routes, &routed)?
        } else {
            &none
        };
        let caller = Caller {
            config: self.config,
            route,
            connection: self.connection,
            head: &head,
            host: self.host,
            client: self.client,
        };
        let verdict = caller.look(thread).await?;
        let body = verdict.as_ref().map_or_else(|| json!({"limits": []}), tell);
        Ok(answer::with_body(StatusCode::OK, JSON, body.to_string()))
    }
}

/// The head of the request that the caller wants to know about, and whether the query names its path.
fn described_head(head: &Parts) -> Result<(Parts, bool), Rejection> {
    let (mut path, mut method) = (None, Method::GET);
    for (name, value) in query_parameters(head.uri.query().unwrap_or_default()) {
        match &*name {
            "path" => path = Some(value),
            "method" => {
                let parsed = Method::from_bytes(value.as_bytes());
                method = parsed.map_err(|_| Rejection::BadUsageQuery)?;
            }
            _ => return Err(Rejection::BadUsageQuery),
        }
    }
    let has_path = path.is_some();
    let path = path.unwrap_or("/".into());
    if !path.starts_with('/') {
        return Err(Rejection::BadUsageQuery);
    }
    let uri: PathAndQuery = path.parse().map_err(|_| Rejection::BadUsageQuery)?;
    let (mut described, ()) = Request::new(()).into_parts();
    described.uri = uri.into();
    described.method = method;
    described.headers = head.headers.clone();
    Ok((described, has_path))
}

/// A route without settings of its own.
fn no_route() -> RouteConfig {
    RouteConfig {
        name: String::new(),
        matches: RouteMatch::default(),
        action: RouteAction::Respond {
            status: StatusCode::NOT_FOUND,
            content_type: JSON,
            body: Bytes::new(),
        },
        escaped_slashes: EscapedSlashes::Check,
        descriptors: None,
        missing_token: None,
        require: Vec::new(),
        request_headers: HeaderEdits::default(),
        response_headers: HeaderEdits::default(),
        retry: None,
        max_body_bytes: None,
        total_timeout: None,
        websocket: None,
    }
}

/// The limits that may be told: those that can deny, without hidden ones.
fn tell(verdict: &Verdict) -> Value {
    let policies = Policies::of(verdict);
    let limits = policies.told().map(|policy| {
        let decision = policy.status.decision();
        let mut limit = json!({
            "name": policy.name,
            "limit": policy.limit,
            "window": policy.window,
            // Null while the store fails.
            "remaining": decision.map(|it| it.remaining),
            "reset": decision.map(|it| seconds(it.reset_after)),
        });
        // A bucket may hold more than one window's requests, or fewer.
        if let Some(decision) = decision.filter(|it| it.limit != policy.limit) {
            limit["burst"] = decision.limit.into();
        }
        limit
    });
    let mut told = json!({ "limits": limits.collect::<Vec<_>>() });
    if let Some(ban) = verdict.ban() {
        told["banned"] = match ban {
            Retry::After(wait) => json!({ "retry_after": seconds(wait) }),
            Retry::Never => json!({ "retry_after": null }),
        };
    }
    told
}

/// Whole seconds, rounded up, so that a caller who waits that long is not early.
fn seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}
