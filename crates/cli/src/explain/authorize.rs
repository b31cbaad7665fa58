//! `tidegate explain --request` where there is no gateway: the request is one that a proxy asks about at `/v1/authorize`.

use std::fmt::Write as _;
use std::net::IpAddr;

use http::header::HOST;
use http::request::Parts;
use http::uri::{Authority, PathAndQuery};
use tidegate_gateway::{HeaderLines, is_preflight};
use tidegate_identify::{Identities, MissingToken, Request, TokenRejection};
use tidegate_server::{AuthorizeConfig, AuthorizeDomain};

use super::request::{DomainRules, judge_token};
use crate::failure::Failure;

/// A request of a proxy's client. The proxy is trusted.
pub(super) struct ProxiedRequest<'a> {
    pub(super) config: &'a AuthorizeConfig,
    pub(super) identities: &'a Identities,
    pub(super) rules: DomainRules<'a>,
    pub(super) head: &'a Parts,
    pub(super) client: IpAddr,
}

/// The domain that is asked: the one of the settings, unless the proxy names another.
pub(super) fn domain<'a>(
    config: &'a AuthorizeDomain,
    named: Option<&'a str>,
) -> Result<&'a str, Failure> {
    match (config, named) {
        (AuthorizeDomain::Fixed(_), Some(_)) => Err(Failure::DomainIsFixed),
        (AuthorizeDomain::Fixed(domain), None) => Ok(domain),
        (AuthorizeDomain::OfQuery { .. }, Some(domain)) => Ok(domain),
        (AuthorizeDomain::OfQuery { otherwise }, None) => {
            otherwise.as_deref().ok_or(Failure::NoAuthorizeDomain)
        }
    }
}

// === impl ProxiedRequest ===

impl ProxiedRequest<'_> {
    pub(super) fn text(&self) -> String {
        let head = self.head;
        let mut text = format!(
            "{} {} from {}, behind a proxy that asks /v1/authorize about domain `{}`\n",
            head.method, head.uri, self.client, self.rules.domain
        );
        // Writing to a string does not fail.
        let mut say = |line: String| {
            let _ = writeln!(text, "{line}");
        };
        let missing = if is_preflight(&head.method, &head.headers) {
            MissingToken::Anonymous
        } else {
            self.identities.missing_token()
        };
        let recipes = &self.config.descriptors;
        let judged = if recipes.needs_token() || missing == MissingToken::Deny {
            judge_token(self.identities, missing, &head.headers, &mut say)
        } else {
            Ok(None)
        };
        let named = head.uri.authority().map(Authority::as_str);
        let of_header = || head.headers.get(HOST)?.to_str().ok();
        let request = Request {
            method: Some(head.method.as_str()),
            uri: head.uri.path_and_query().map(PathAndQuery::as_str),
            host: named.or_else(of_header),
            client: Some(self.client),
            headers: &HeaderLines(&head.headers),
            identities: self.identities,
            claims: judged.as_ref().ok().and_then(|claims| claims.as_deref()),
            certificate: None,
            route: None,
        };
        let limited = self.rules.limits(recipes, &request, &mut say);
        let decision = match &judged {
            Err(TokenRejection::Missing) => "401, because there is no token".to_owned(),
            Err(_) => "401, because the token is not good".to_owned(),
            Ok(_) => limited,
        };
        say(format!("decision: {decision}"));
        text
    }
}
