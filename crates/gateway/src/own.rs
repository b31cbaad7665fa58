//! Tidegate's own paths. They lie under one prefix and are never forwarded; every other path is the upstream's.

mod usage;

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use http::header::CACHE_CONTROL;
use http::request::Parts;
use http::{HeaderValue, Method, Response};
use tidegate_identify::Grouping;
use tidegate_limiter::{Consistency, Descriptor, Entry, Hits, LimitOverride, Store};
use tidegate_observe::{LimiterRequest, TraceHeaders};

use crate::answer::{Denial, DenialForm, Rejection};
use crate::config::GatewayConfig;
use crate::connection::ConnectionContext;
use crate::cors::{answer_preflight, is_preflight};
use crate::thread::GatewayThread;

/// A request for a path of our own.
pub(crate) struct OwnRequest<'a> {
    pub(crate) config: &'a GatewayConfig,
    pub(crate) connection: &'a ConnectionContext,
    pub(crate) head: &'a Parts,
    /// The host in lower case, without port; empty if the request names none.
    pub(crate) host: &'a str,
    /// The address that counts as the client's.
    pub(crate) client: Option<IpAddr>,
}

/// The limit of these paths for each client address: 10 a second on average, 20 at once. A page that shows its usage asks once.
const LIMIT: LimitOverride = LimitOverride {
    requests: 20,
    window: Duration::from_secs(2),
    // A courtesy of this node, not worth a call to Redis.
    consistency: Some(Consistency::Node),
};

/// The limit of preflights for each client address: 100 a second on average. Browsers send one before a request and remember the answer, so only
/// a flood reaches it.
pub(crate) const PREFLIGHTS: LimitOverride = LimitOverride {
    requests: 200,
    window: Duration::from_secs(2),
    consistency: Some(Consistency::Node),
};

const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

// === impl OwnRequest ===

impl OwnRequest<'_> {
    /// Answers the request for `path`, which is what follows the prefix.
    pub(crate) async fn answer<S: Store>(
        &self,
        thread: &GatewayThread<S>,
        path: &str,
    ) -> Result<Response<Bytes>, Rejection> {
        if path != "usage" {
            return Err(Rejection::NoRoute);
        }
        if is_preflight(&self.head.method, &self.head.headers) {
            return Ok(answer_preflight(self.head));
        }
        if self.head.method != Method::GET && self.head.method != Method::HEAD {
            return Err(Rejection::OnlyGet);
        }
        // Before anything that costs more.
        charge_built_in(thread, self.config, self.head, self.client, path, LIMIT).await?;
        let mut response = self.usage(thread).await?;
        response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
        Ok(response)
    }
}

/// Charges a limit that Tidegate has built in, for each client address. It is a limit that comes with the request, so a domain without
/// rules has none.
pub(crate) async fn charge_built_in<S: Store>(
    thread: &GatewayThread<S>,
    config: &GatewayConfig,
    head: &Parts,
    client: Option<IpAddr>,
    name: &str,
    limit: LimitOverride,
) -> Result<(), Rejection> {
    let client = client
        .and_then(|address| Grouping::DEFAULT.of(address))
        .map(|address| address.to_string());
    let entries = [
        Entry {
            key: "tidegate_path",
            value: name,
        },
        Entry {
            key: "remote_address",
            // A unix socket has one client.
            value: client.as_deref().unwrap_or("unix"),
        },
    ];
    let descriptors = [Descriptor {
        entries: &entries,
        hits: Hits::OfRequest,
        limit: Some(limit),
    }];
    let request = LimiterRequest {
        domain: &config.domain,
        descriptors: &descriptors,
        hits: 1,
        route: None,
        trace: TraceHeaders::default(),
    };
    let checked = thread.check(&request, |verdict, decision| {
        if verdict.is_allowed() {
            return Ok(());
        }
        let form = DenialForm::of(&head.headers, &config.denial_body);
        let denial = Denial::new(verdict, &thread.dialect, decision, form);
        Err(Rejection::Denied(Box::new(denial)))
    });
    checked.await?
}
