//! The gateway: the requests of clients, and the servers that they are for.

mod bounds;
mod extras;
mod headers;
mod matching;
mod route;
mod upstream;
mod websocket;

use std::path::PathBuf;
use std::sync::Arc;

use http::HeaderValue;
use tidegate_gateway::{
    AccessConfig, CorsConfig, GatewayBounds, GatewayConfig, RouteAction, RouteConfig, RouteMatch,
    TargetConfig, UpstreamConfig,
};
use tidegate_identify::{Grouping, Recipe, Recipes, Source};
use tidegate_rules::document::{Code, Finding, did_you_mean, one_of, quote};

use super::authorize;
use crate::config::reader::{Item, Section};
use route::RouteDraft;

/// The gateway, as far as no file beside the config has to be read for it.
#[derive(Clone, Debug)]
pub(crate) struct Gateway {
    pub(crate) domain: String,
    pub(crate) descriptors: Arc<Recipes>,
    pub(crate) upstreams: Vec<Arc<UpstreamConfig>>,
    pub(crate) routes: Vec<RouteConfig>,
    pub(crate) access: AccessConfig,
    pub(crate) cors: Option<CorsConfig>,
    pub(crate) own_prefix: String,
    pub(crate) denial_body: Option<DenialTemplate>,
    pub(crate) bounds: GatewayBounds,
}

/// The file of a denial's body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DenialTemplate {
    pub(crate) content_type: HeaderValue,
    pub(crate) file: PathBuf,
}

/// The name of the upstream and of the last route where `gateway.upstream` is set.
const DEFAULT: &str = "default";

/// Settings that switch the gateway on.
const SWITCHES: [&str; 3] = ["gateway.upstream", "gateway.upstreams", "gateway.routes"];

/// Whether the settings ask for a gateway.
pub(super) fn is_wanted(root: &Section<'_, '_>) -> bool {
    SWITCHES.iter().any(|path| root.is_written(path))
}

// === impl Gateway ===

impl Gateway {
    pub(super) fn read(mut section: Section<'_, '_>) -> Self {
        let (upstreams, routes) = read_routes(&mut section);
        Self {
            upstreams,
            routes,
            domain: section.value(
                "domain",
                "The domain of the rules by which requests are limited",
                GatewayConfig::DOMAIN.to_owned(),
            ),
            descriptors: Arc::new(authorize::gateway_descriptors(
                &mut section,
                default_recipes(),
            )),
            access: extras::access(section.block("access", "Client addresses that get 403")),
            cors: extras::cors(section.block_or(
                "cors",
                "Web pages of other origins that may read denials",
                "origins",
            )),
            own_prefix: extras::own_prefix(&mut section),
            denial_body: extras::denial_body(section.block(
                "denial_body",
                "The body of a denial; problem+json, if not set",
            )),
            bounds: bounds::read(
                section.block("bounds", "Bounds on what clients send, read at start only"),
            ),
        }
    }
}

/// The upstreams, and the routes that name them by their place.
fn read_routes(section: &mut Section<'_, '_>) -> (Vec<Arc<UpstreamConfig>>, Vec<RouteConfig>) {
    let targets: Vec<TargetConfig> = section.list(
        "upstream",
        "The servers that requests are sent to, such as http://127.0.0.1:9000: an upstream named `default` and a last route for everything",
        Vec::new(),
    );
    let mut upstreams = section.named_blocks(
        "upstreams",
        "Groups of servers by name, for routes to choose from",
        Some("targets"),
        upstream::read,
    );
    let routes = section.blocks(
        "routes",
        "Requests by host, path, method and header, and what becomes of them; the first that matches is taken",
        route::read,
    );
    for item in &mut upstreams {
        item.value.name.clone_from(&item.name);
    }
    refuse_doubled(section, &upstreams, &targets);
    refuse_empty(section, &upstreams);
    let names: Vec<&str> = (!targets.is_empty())
        .then_some(DEFAULT)
        .into_iter()
        .chain(upstreams.iter().map(|item| item.name.as_str()))
        .collect();
    let mut routes = resolve(section, routes, &names);
    if !targets.is_empty() && !routes.iter().any(|route| route.matches.is_any()) {
        routes.push(last_route());
    }
    warn_of_unused(section, &upstreams, &routes, names.len() - upstreams.len());
    let default = (!targets.is_empty()).then(|| UpstreamConfig::new(DEFAULT, targets));
    let named = upstreams.into_iter().map(|item| item.value);
    let upstreams = default.into_iter().chain(named).map(Arc::new);
    (upstreams.collect(), routes)
}

/// One counter for each client address.
fn default_recipes() -> Recipes {
    let address = Source::ClientAddress(Grouping::DEFAULT);
    let recipe = Recipe::new([("remote_address", address)]);
    Recipes::new(vec![recipe]).unwrap_or_default()
}

/// The route of every request that no other route takes.
fn last_route() -> RouteConfig {
    RouteConfig {
        name: DEFAULT.to_owned(),
        ..route::to_upstream(RouteMatch::default(), 0)
    }
}

fn refuse_doubled(
    section: &mut Section<'_, '_>,
    upstreams: &[Item<UpstreamConfig>],
    targets: &[TargetConfig],
) {
    let doubled = upstreams.iter().find(|item| item.name == DEFAULT);
    if let Some(item) = doubled.filter(|_| !targets.is_empty()) {
        let message = format!("the upstream {} is there twice", quote(DEFAULT));
        let finding = Finding::error(Code::Conflict, item.span, message);
        section.report(finding.hint("`upstream` has this name already; choose another one"));
    }
}

fn refuse_empty(section: &mut Section<'_, '_>, upstreams: &[Item<UpstreamConfig>]) {
    let is_empty = |item: &&Item<UpstreamConfig>| item.value.targets.is_empty();
    for item in upstreams.iter().filter(is_empty) {
        if !section.has_faults() {
            let message = format!("the upstream {} has no targets", quote(&item.name));
            let finding = Finding::error(Code::MissingField, item.span, message);
            section.report(finding.hint("write http://HOST:PORT of each server"));
        }
    }
}

/// The routes with their upstreams found by name.
fn resolve(
    section: &mut Section<'_, '_>,
    drafts: Vec<Item<RouteDraft>>,
    names: &[&str],
) -> Vec<RouteConfig> {
    let mut routes: Vec<RouteConfig> = Vec::with_capacity(drafts.len());
    for item in drafts {
        let RouteDraft {
            mut route,
            upstream,
        } = item.value;
        if let RouteAction::Forward {
            upstream: place, ..
        } = &mut route.action
        {
            match find_upstream(upstream.as_deref(), names) {
                Ok(found) => *place = found,
                Err((message, hint)) => {
                    section.report(Finding::error(Code::BadValue, item.span, message).hint(hint));
                }
            }
        }
        for earlier in &routes {
            if earlier.name == route.name {
                let message = format!("two routes are called {}", quote(&route.name));
                let finding = Finding::error(Code::DuplicateName, item.span, message);
                section.report(finding.hint("give each a `name` of its own"));
            }
        }
        let takes_all =
            |earlier: &&RouteConfig| earlier.matches.is_any() || earlier.matches == route.matches;
        // A part that could not be read matches everything; that is told already.
        let hiding = routes.iter().find(takes_all);
        if let Some(earlier) = hiding.filter(|_| !section.has_faults()) {
            let message = format!(
                "no request reaches this route: {} takes them all",
                quote(&earlier.name)
            );
            let finding = Finding::warning(Code::HiddenRule, item.span, message);
            section.report(finding.hint("move it up: the first route that matches is taken"));
        }
        routes.push(route);
    }
    routes
}

/// The place of the upstream that a route names. One that names none takes that of `gateway.upstream`, or the only one.
fn find_upstream(name: Option<&str>, names: &[&str]) -> Result<usize, (String, String)> {
    match (name, names) {
        (Some(name), _) => names
            .iter()
            .position(|known| *known == name)
            .ok_or_else(|| {
                let known = || names.iter().copied();
                let hint = did_you_mean(name, known()).unwrap_or_else(|| match names {
                    [] => "name it in `upstreams`".to_owned(),
                    _ => one_of(known()),
                });
                (format!("there is no upstream {}", quote(name)), hint)
            }),
        (None, [DEFAULT, ..] | [_]) => Ok(0),
        (None, []) => Err((
            "the route has nowhere to send requests".to_owned(),
            "set `gateway.upstream`, or give the route `upstream`, `redirect` or `respond`"
                .to_owned(),
        )),
        (None, _) => Err((
            "the route does not say which upstream it is for".to_owned(),
            format!("add `upstream`: {}", one_of(names.iter().copied())),
        )),
    }
}

fn warn_of_unused(
    section: &mut Section<'_, '_>,
    upstreams: &[Item<UpstreamConfig>],
    routes: &[RouteConfig],
    first: usize,
) {
    let is_used = |at: usize| {
        let mut actions = routes.iter().map(|route| &route.action);
        actions.any(
            |action| matches!(action, RouteAction::Forward { upstream, .. } if *upstream == at),
        )
    };
    for (at, item) in (first..).zip(upstreams) {
        if !is_used(at) && !section.has_faults() {
            let message = format!("no route uses the upstream {}", quote(&item.name));
            section.report(Finding::warning(Code::DeadRule, item.span, message));
        }
    }
}
