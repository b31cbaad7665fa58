//! The gateway as its settings and the files that they name describe it.

mod key_set;
mod reload;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tidegate_gateway::{DenialBody, Gateway, GatewayConfig, RouteConfig};
use tidegate_identify::{Identities, TokenKeys};
use tidegate_observe::Observatory;
use tidegate_rules::{Domain, Limit, RuleSet};

use crate::args::SettingArgs;
use crate::config::{Config, DenialTemplate, Identity, Loaded};
use crate::failure::Failure;
use crate::{identity, rules_files};
use key_set::KeySetFetch;
pub(crate) use reload::SettingsReloader;

/// The parts of a server that are made of the settings and of the files that they name, and replaced by a reload.
#[derive(Debug)]
pub(crate) struct LiveParts {
    /// The identities of the callers of the gateway and of `/v1/authorize`.
    pub(crate) identities: Arc<Identities>,
    /// The gateway, if there is one.
    pub(crate) gateway: Option<GatewayConfig>,
}

/// The same, with everything that the files hold, token keys behind a URL included.
pub(crate) async fn read(config: &Config) -> Result<LiveParts, Failure> {
    let keys = fetch_keys(config).await;
    build(config, keys.as_ref(), Identities::none())
}

/// Makes the gateway that the settings ask for, if they do, puts the identities in force, and gives who reloads both.
pub(crate) async fn open(
    args: &SettingArgs,
    loaded: &Loaded,
    threads: NonZeroUsize,
    observatory: &Arc<Observatory>,
) -> Result<(Option<Arc<Gateway>>, Option<SettingsReloader>), Failure> {
    let config = &loaded.config;
    if !config.has_gateway() && config.identity == Identity::default() {
        return Ok((None, None));
    }
    let keys = fetch_keys(config).await;
    let (of_files, of_url) = (config.clone(), keys.clone());
    let opened = reload::read_apart(move || {
        let built = build(&of_files, of_url.as_ref(), Identities::none())?;
        let gateway = built.gateway.map(|gateway| Gateway::new(gateway, threads));
        let gateway = gateway.transpose().map_err(Failure::NoGateway)?;
        Ok((gateway.map(Arc::new), built.identities))
    });
    let (gateway, identities) = opened.await?;
    config.authorize.identities.store(identities);
    let reloader = SettingsReloader::new(
        args.clone(),
        gateway.clone(),
        Arc::clone(observatory),
        loaded,
        keys,
    );
    Ok((gateway, Some(reloader)))
}

async fn fetch_keys(config: &Config) -> Option<TokenKeys> {
    match KeySetFetch::of(config) {
        Some(fetch) => fetch.first().await,
        None => None,
    }
}

/// Reads the files that the settings name, and joins both. `fetched` is the set of token keys behind a URL, as far as it is
/// known, and `old` the identities in force.
fn build(
    config: &Config,
    fetched: Option<&TokenKeys>,
    old: &Identities,
) -> Result<LiveParts, Failure> {
    let identities = Arc::new(identity::read(&config.identity, fetched, old)?);
    if !config.has_gateway() {
        return Ok(LiveParts {
            identities,
            gateway: None,
        });
    }
    let gateway = &config.gateway;
    let denial_body = gateway.denial_body.as_ref().map(denial_body);
    let gateway = GatewayConfig {
        domain: gateway.domain.clone(),
        routes: gateway.routes.clone(),
        upstreams: gateway.upstreams.clone(),
        descriptors: Arc::clone(&gateway.descriptors),
        identities: Arc::clone(&identities),
        client_address: config.authorize.client_address.clone(),
        access: gateway.access.clone(),
        cors: gateway.cors.clone(),
        own_prefix: gateway.own_prefix.clone(),
        denial_body: denial_body.transpose()?.unwrap_or_default(),
    };
    Ok(LiveParts {
        identities,
        gateway: Some(gateway),
    })
}

/// The files beside the config that [`build`] or an upstream reads.
fn files(config: &Config) -> Vec<PathBuf> {
    let gateway = &config.gateway;
    let template = gateway.denial_body.iter().map(|it| it.file.clone());
    let tls = gateway.upstreams.iter().flat_map(|upstream| {
        let tls = &upstream.tls;
        let pair = tls.client_certificate.iter();
        let pair = pair.flat_map(|(cert, key)| [cert.clone(), key.clone()]);
        tls.roots.clone().into_iter().chain(pair)
    });
    let identities = identity::files(&config.identity);
    template.chain(tls).chain(identities).collect()
}

/// The gateway in a line of the banner.
pub(crate) fn describe(config: &Config) -> String {
    let gateway = &config.gateway;
    let targets = gateway
        .upstreams
        .iter()
        .flat_map(|upstream| &upstream.targets);
    let targets: Vec<String> = targets.map(ToString::to_string).collect();
    let routes = gateway.routes.len();
    let s = if routes == 1 { "" } else { "s" };
    match targets.as_slice() {
        [] => format!("{routes} route{s}"),
        [target] if routes == 1 => format!("all requests to {target}"),
        _ => format!("{routes} route{s} to {}", targets.join(", ")),
    }
}

/// The limits inside the binary in words, if they are in force.
pub(crate) fn built_in_limits(config: &Config, rules: &RuleSet) -> Vec<String> {
    if !config.rules.paths.is_empty() || config.rules.pushed.is_some() {
        return Vec::new();
    }
    let limits = rules.rules().flat_map(tidegate_rules::Rule::limits);
    let in_words = |limit: &Limit| format!("for each client address: {}", limit.description());
    limits.map(in_words).collect()
}

/// A warning that the rules leave every request of the gateway unlimited, if they do.
pub(crate) fn no_limits(config: &Config, rules: &RuleSet) -> Option<String> {
    let gateway = &config.gateway;
    if !config.has_gateway() || rules.domain(&gateway.domain).is_some() {
        return None;
    }
    let known: Vec<&str> = rules.domains().map(Domain::name).take(8).collect();
    let known = known.join(", ");
    let domain = &gateway.domain;
    let mut warning = format!(
        "the gateway applies no limits: the rules have no domain `{domain}`. Add it, or set gateway.domain to one of: {known}"
    );
    let limits_messages = |route: &&RouteConfig| route.websocket.is_some();
    if let Some(route) = gateway.routes.iter().find(limits_messages) {
        let name = &route.name;
        let more = format!(
            "; `websocket` of the route `{name}` limits no messages either, its own `messages` included"
        );
        warning.push_str(&more);
    }
    Some(warning)
}

/// The names that a template may hold between two pairs of braces.
const PLACEHOLDERS: [&str; 5] = ["limit", "retry_after", "detail", "decision", "status"];

fn denial_body(template: &DenialTemplate) -> Result<DenialBody, Failure> {
    let DenialTemplate { content_type, file } = template;
    let text = read_text(file)?;
    let unknown = text.split("{{").skip(1).find_map(|rest| {
        let name = rest.split_once("}}").map_or(rest, |(name, _)| name).trim();
        (!PLACEHOLDERS.contains(&name)).then(|| name.chars().take(40).collect::<String>())
    });
    if let Some(name) = unknown {
        let known = PLACEHOLDERS
            .map(|name| format!("{{{{{name}}}}}"))
            .join(", ");
        return Err(Failure::BadFile {
            path: file.clone(),
            reason: format!("`{{{{{name}}}}}` is not filled in; write {known}"),
        });
    }
    Ok(DenialBody::Template {
        content_type: content_type.clone(),
        text,
    })
}

fn read_text(path: &Path) -> Result<String, Failure> {
    let bad = |reason: String| Failure::BadFile {
        path: path.to_owned(),
        reason,
    };
    let bytes = rules_files::read_bytes(path).map_err(|reason| bad(reason.to_string()))?;
    String::from_utf8(bytes).map_err(|_| bad("it is not UTF-8".to_owned()))
}
