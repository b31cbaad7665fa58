//! `/v1/authorize`: what proxies ask about the requests of their clients.
//!
//! A proxy hands over the head of its client's request and is told by the status whether to let it
//! pass: nginx by `auth_request`, Traefik by `forwardAuth`, Caddy by `forward_auth`, HAProxy by a few
//! lines of Lua. The descriptors are made here, by `tidegate-identify`.

mod caller;
mod config;
mod original;
mod parameters;

use hyper::Request;
use hyper::body::Incoming;
use tidegate_limiter::Store;

pub use config::{AuthorizeConfig, AuthorizeDomain, HeaderForm, RequestHeaders};
pub(crate) use parameters::BadParameter;

use super::Visit;
use crate::answer::{self, Refusal, Response};

use caller::Caller;
use original::Original;
use parameters::Parameters;

/// Answers whether the request that is described in the head of this one may pass.
pub(super) async fn authorize<S: Store + 'static>(
    request: Request<Incoming>,
    visit: &Visit<S>,
) -> Result<Response, Refusal> {
    let (head, body) = request.into_parts();
    // Some proxies hand the body on. It says nothing about who asks, but while it lies unread the
    // connection is good for nothing else.
    visit.read(body).await?;
    let config = &visit.core.authorize;
    let asked = Parameters::read(head.uri.query().unwrap_or_default())?;
    let domain = asked.domain(&config.domain)?;
    let caller = Caller {
        visit,
        headers: &head.headers,
        domain,
        original: Original::new(&head.headers, visit.peer, config),
        identities: config.identities.load_full(),
    };
    let checked = caller.check().await.map_err(|refusal| match refusal {
        Refusal::Token(rejection) if rejection.is_rate_limited() => Refusal::TooManyTokens {
            rejection,
            deny: asked.deny(),
        },
        other => other,
    });
    match checked? {
        Some(verdict) => {
            let answers = &visit.core.answers;
            Ok(answer::authorization(&verdict, answers, asked.deny()))
        }
        // As Envoy has it: who cannot be described is not limited.
        None => Ok(answer::pass()),
    }
}
