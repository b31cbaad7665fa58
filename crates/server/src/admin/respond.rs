//! From an admin request to its answer.

use hyper::Request;
use hyper::body::Incoming;
use tidegate_limiter::Store;

use super::body::Body;
use super::fault::Fault;
use super::query::Query;
use super::reply::Reply;
use super::route::{self, Access, Endpoint, Found};
use super::{Visit, api, audit, guard, pages};

/// Answers one request.
pub(super) async fn respond<S: Store>(request: Request<Incoming>, visit: &Visit<S>) -> Reply {
    let answered = answer(request, visit).await;
    answered.unwrap_or_else(Fault::into_reply)
}

async fn answer<S: Store>(request: Request<Incoming>, visit: &Visit<S>) -> Result<Reply, Fault> {
    let (head, body) = request.into_parts();
    let path = head.uri.path();
    let route = match route::find(&head.method, path) {
        Found::Route(route) => route,
        Found::OtherMethods(allowed) => {
            let path = path.to_owned();
            return Err(Fault::OtherMethods { path, allowed });
        }
        Found::Nothing => {
            let path = path.to_owned();
            return Err(Fault::NoSuchPath { path });
        }
    };
    if !visit.scope.has(route) {
        let path = path.to_owned();
        return Err(Fault::OnlyMetrics { path });
    }
    let admitted = guard::admit(route, &head.headers, visit.peer, &visit.admin.config);
    if let Err(fault) = &admitted
        && (route.access == Access::Change || matches!(fault, Fault::WrongToken))
    {
        let sampler = &visit.admin.config.turned_away;
        audit::turned_away(visit.peer, route, fault, sampler);
    }
    if matches!(admitted, Err(Fault::WrongToken)) {
        slow_down(visit).await;
    }
    admitted?;
    let body = Body::read(route.path, body).await?;
    let query = Query::parse(route.path, head.uri.query());
    let parameter = route.parameter(path).unwrap_or_default();
    dispatch(route.endpoint, visit, parameter, query, &body).await
}

/// Delays the answer to a wrong token, longer with each wrong token of the same address. The connection may be evicted meanwhile.
async fn slow_down<S>(visit: &Visit<S>) {
    if let Some(token) = &visit.admin.config.token {
        visit.activity.end();
        token.wrong.slow_down(visit.peer).await;
        visit.activity.begin();
    }
}

async fn dispatch<S: Store>(
    endpoint: Endpoint,
    visit: &Visit<S>,
    parameter: &str,
    query: Query<'_>,
    body: &Body,
) -> Result<Reply, Fault> {
    let Visit {
        admin, peer, drain, ..
    } = visit;
    let (limiter, hooks, peer) = (&*admin.limiter, &*admin.hooks, *peer);
    match endpoint {
        Endpoint::Index => Ok(pages::index()),
        Endpoint::Health => Ok(pages::health(drain, limiter.store().health())),
        Endpoint::Ready => Ok(pages::ready(admin, drain)),
        Endpoint::Metrics => Ok(pages::metrics(admin)),
        Endpoint::Stats => Ok(pages::stats(admin)),
        Endpoint::RulesText => Ok(pages::rules_text(&limiter.rules())),
        Endpoint::Rules => api::rules(&limiter.rules(), &admin.observatory, query),
        Endpoint::Explain => api::explain(limiter, hooks, &body.parse()?),
        Endpoint::Lookup => api::lookup(limiter, body.parse()?).await,
        Endpoint::Reset => api::reset(limiter, peer, body.parse()?).await,
        Endpoint::Grant => api::grant(limiter, peer, body.parse()?).await,
        Endpoint::Ban => api::ban(limiter, peer, body.parse()?).await,
        Endpoint::Unban => api::unban(limiter, peer, body.parse()?).await,
        Endpoint::Bans => api::bans(limiter, query).await,
        Endpoint::Top => api::top(&admin.observatory, query),
        Endpoint::Decisions => api::decisions(admin, query),
        Endpoint::Decision => api::decision(admin, parameter, query),
        Endpoint::Config => Ok(api::config(hooks)),
        Endpoint::LastReload => Ok(api::last_reload(hooks)),
        Endpoint::Reload => api::reload(hooks, peer).await,
        Endpoint::LogLevel => Ok(api::log_level(hooks)),
        Endpoint::SetLogLevel => api::set_log_level(hooks, peer, &body.parse()?),
        Endpoint::Store => Ok(api::store(&limiter.store().report(), hooks)),
        Endpoint::OpenApi => Ok(api::openapi()),
    }
}
