//! `tidegate explain --request`: the way of a request through the gateway, or the answer of `/v1/authorize` about it, without sending it.

use std::fmt::Write as _;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use http::header::HOST;
use http::request::Parts;
use http::uri::{Authority, PathAndQuery};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use tidegate_gateway::{
    GatewayConfig, HeaderLines, Requirement, RouteAction, RouteConfig, is_preflight,
};
use tidegate_identify::{
    Claims, DescribedPart, Descriptors, Entries, Identities, MissingToken, Recipes,
    Request as Described, TokenRejection, Values, normal_path,
};
use tidegate_rules::{Color, Compiled, Entry, RuleSet, explain};

use super::authorize::{self, ProxiedRequest};
use super::read_rules;
use crate::args::ExplainArgs;
use crate::config;
use crate::failure::Failure;
use crate::sharing::Sharing;
use crate::{gateway, reload, runtime, terminal};

/// A request and all that is known of it.
struct Explained<'a> {
    config: &'a GatewayConfig,
    rules: DomainRules<'a>,
    head: Parts,
    client: IpAddr,
    /// The subject of the client certificate, which counts as verified.
    certificate: Option<&'a str>,
}

/// The rules of the domain that is asked.
pub(super) struct DomainRules<'a> {
    pub(super) rules: &'a RuleSet,
    pub(super) domain: &'a str,
    pub(super) sharing: Sharing,
    pub(super) color: Color,
}

/// Explains the request `line` on stdout.
pub(super) fn run(args: &ExplainArgs, line: &str) -> Result<ExitCode, Failure> {
    let head = head(line, &args.headers)?;
    let config = config::load(&args.settings())?.config;
    let runtime = runtime::start()?;
    let parts = runtime.block_on(gateway::read(&config))?;
    drop(runtime);
    let Compiled { rules, .. } = read_rules(args, &config)?;
    let client = args.client_address.unwrap_or(Ipv4Addr::LOCALHOST.into());
    let in_domain = |domain| DomainRules {
        rules: &rules,
        domain,
        sharing: config.rules.sharing,
        color: terminal::color(&io::stdout()),
    };
    let text = match &parts.gateway {
        Some(_) if args.domain.is_some() => return Err(Failure::DomainOfGateway),
        Some(gateway) => {
            let rules = in_domain(&gateway.domain);
            let explained = Explained {
                config: gateway,
                rules,
                head,
                client,
                certificate: args.certificate.as_deref(),
            };
            explained.text()
        }
        None => {
            if let Some(subject) = &args.certificate {
                let hint = "only the gateway sees client certificates; leave out --certificate";
                let text = subject.clone();
                return Err(Failure::BadRequest { text, hint });
            }
            let domain = authorize::domain(&config.authorize.domain, args.domain.as_deref())?;
            let explained = ProxiedRequest {
                config: &config.authorize,
                identities: &parts.identities,
                rules: in_domain(domain),
                head: &head,
                client,
            };
            explained.text()
        }
    };
    terminal::print(&text);
    Ok(ExitCode::SUCCESS)
}

// === impl Explained ===

impl Explained<'_> {
    fn text(&self) -> String {
        let mut text = format!(
            "{} {} from {}\n",
            self.head.method, self.head.uri, self.client
        );
        // Writing to a string does not fail.
        let mut say = |line: String| {
            let _ = writeln!(text, "{line}");
        };
        if !self.config.access.allows(Some(self.client)) {
            say("decision: 403, because of `gateway.access`".to_owned());
            return text;
        }
        if let Some(answer) = self.own_answer() {
            say(format!("decision: {answer}"));
            return text;
        }
        let route = match self.config.route_of(&self.head) {
            Ok(route) => route,
            Err(StatusCode::NOT_FOUND) => {
                say("decision: 404, because no route takes it".to_owned());
                return text;
            }
            Err(status) => {
                let status = status.as_u16();
                say(format!(
                    "decision: {status}, because the path could lead elsewhere if its escapes are decoded"
                ));
                return text;
            }
        };
        say(format!("route `{}`: {}", route.name, self.action(route)));
        if is_preflight(&self.head.method, &self.head.headers) {
            say("decision: allowed, because preflights have a limit of their own".to_owned());
            return text;
        }
        let judged = self.judge_token(route, &mut say);
        let claims = judged.as_ref().ok().and_then(|claims| claims.as_deref());
        let recipes = self.config.descriptors_of(route);
        let lines = HeaderLines(&self.head.headers);
        let request = self.request(route, &lines, claims);
        let limited = self.rules.limits(recipes, &request, &mut say);
        let is_unmet = |it: &&Requirement| !matches!(it.is_met(&request), Ok(true));
        let unmet = route.require.iter().find(is_unmet);
        let decision = match (&judged, unmet) {
            (Err(TokenRejection::Missing), _) => "401, because there is no token".to_owned(),
            (Err(_), _) => "401, because the token is not good".to_owned(),
            (Ok(_), Some(unmet)) => match unmet.is_met(&request) {
                Ok(_) => format!("403, because of `{}`", unmet.source),
                Err(ambiguous) => format!("400, because {ambiguous}"),
            },
            (Ok(_), None) => limited,
        };
        say(format!("decision: {decision}"));
        text
    }

    /// The answer to a path of Tidegate's own.
    fn own_answer(&self) -> Option<String> {
        let prefix = self.config.own_prefix.as_str();
        let path = normal_path(self.head.uri.path())?;
        Some(match path.strip_prefix(prefix)? {
            "usage" => {
                "answered by Tidegate itself, which has a limit of its own for this".to_owned()
            }
            _ => format!("404, because paths under `{prefix}` are Tidegate's own"),
        })
    }

    fn action(&self, route: &RouteConfig) -> String {
        match &route.action {
            RouteAction::Forward { upstream, .. } => {
                let upstream = self.config.upstreams.get(*upstream);
                let targets = upstream.iter().flat_map(|upstream| &upstream.targets);
                let targets: Vec<String> = targets.map(ToString::to_string).collect();
                let name = upstream.map_or("", |upstream| upstream.name.as_str());
                format!("to upstream `{name}` at {}", targets.join(", "))
            }
            RouteAction::Redirect { status, location } => {
                format!("redirected with {} to {location}", status.as_u16())
            }
            RouteAction::Respond { status, .. } => format!("answered with {}", status.as_u16()),
        }
    }

    /// The claims of the request's token, as far as the route looks at tokens, or the reason why it is rejected.
    fn judge_token(
        &self,
        route: &RouteConfig,
        say: &mut impl FnMut(String),
    ) -> Result<Option<Arc<Claims>>, TokenRejection> {
        if !self.config.needs_token(route) {
            return Ok(None);
        }
        let (identities, missing) = (&self.config.identities, self.config.missing_token(route));
        judge_token(identities, missing, &self.head.headers, say)
    }

    fn request<'r>(
        &'r self,
        route: &'r RouteConfig,
        lines: &'r HeaderLines<'_>,
        claims: Option<&'r Claims>,
    ) -> Described<'r> {
        let named = self.head.uri.authority().map(Authority::as_str);
        let of_header = || self.head.headers.get(HOST)?.to_str().ok();
        Described {
            method: Some(self.head.method.as_str()),
            uri: self.head.uri.path_and_query().map(PathAndQuery::as_str),
            host: named.or_else(of_header),
            client: Some(self.client),
            headers: lines,
            identities: &self.config.identities,
            claims,
            certificate: self.certificate,
            route: Some(&route.name),
        }
    }
}

// === impl DomainRules ===

impl DomainRules<'_> {
    /// Explains the limits of each descriptor, and what they come to.
    pub(super) fn limits(
        &self,
        recipes: &Recipes,
        request: &Described<'_>,
        say: &mut impl FnMut(String),
    ) -> String {
        let Some(domain) = self.rules.domain(self.domain) else {
            say(format!("the rules have no domain `{}`", self.domain));
            return "not limited".to_owned();
        };
        let (mut values, mut list) = (Values::default(), Entries::default());
        if let Err(ambiguous) = recipes.read(request, &mut values) {
            return format!("400, because {ambiguous}");
        }
        let mut n_limits = 0;
        let mut descriptors = Descriptors::new();
        recipes.describe(&values, DescribedPart::All, &mut list, &mut descriptors);
        for descriptor in &descriptors {
            let entries: Vec<Entry<'_>> = descriptor.entries.to_vec();
            n_limits += domain.find(&entries).map_or(0, |rule| rule.limits().len());
            say(String::new());
            let remarks = |limit: &_| self.sharing.explain(limit);
            say(explain::render(domain, &entries, &remarks, self.color));
        }
        match n_limits {
            0 => "not limited".to_owned(),
            1 => "allowed while the limit above has room, else 429".to_owned(),
            _ => format!("allowed while all {n_limits} limits above have room, else 429"),
        }
    }
}

/// The claims of the token in these headers, or the reason why the request is rejected.
pub(super) fn judge_token(
    identities: &Identities,
    missing: MissingToken,
    headers: &HeaderMap,
    say: &mut impl FnMut(String),
) -> Result<Option<Arc<Claims>>, TokenRejection> {
    let now_s = reload::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    let lines = HeaderLines(headers);
    // Demanded, so that a bad token is told of even if it counts as none.
    say(
        match identities.claims(&lines, None, MissingToken::Deny, now_s) {
            Ok(_) => "token: verified".to_owned(),
            Err(TokenRejection::Missing) => "token: none".to_owned(),
            Err(bad) => format!("token: not good: {bad}"),
        },
    );
    identities.claims(&lines, None, missing, now_s)
}

/// The head of the request that was typed.
fn head(line: &str, headers: &[String]) -> Result<Parts, Failure> {
    let bad = |text: &str, hint: &'static str| Failure::BadRequest {
        text: text.to_owned(),
        hint,
    };
    let bad_line = || bad(line, "write a method and a path, such as 'GET /login'");
    let (method, target) = line.trim().split_once(' ').unwrap_or(("GET", line.trim()));
    let method: Method = method.parse().map_err(|_| bad_line())?;
    let target: Uri = target.trim().parse().map_err(|_| bad_line())?;
    if !target.path().starts_with('/') {
        return Err(bad_line());
    }
    let request = Request::builder().method(method).uri(target).body(());
    let (mut head, ()) = request.map_err(|_| bad_line())?.into_parts();
    for header in headers {
        let bad_header = || {
            bad(
                header,
                "write name and value of a header, such as 'x-user: 7'",
            )
        };
        let (name, value) = header.split_once(':').ok_or_else(bad_header)?;
        let name: HeaderName = name.trim().parse().map_err(|_| bad_header())?;
        let value = HeaderValue::from_str(value.trim()).map_err(|_| bad_header())?;
        head.headers.append(name, value);
    }
    Ok(head)
}
