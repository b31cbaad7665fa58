//! How the requests of clients behind proxies are read.

use std::num::NonZeroU8;
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};
use tidegate_identify::{
    AddressHeader, ClientAddress, Ingredient, Proxies, Proxy, ProxyFault, Recipe, Recipes, Source,
    SourceFault, Trust,
};
use tidegate_rules::document::{Code, Finding, Findings, Kind, Node, Pair};
use tidegate_server::{AuthorizeConfig, AuthorizeDomain, HeaderForm, RequestHeaders};

use crate::config::reader::Section;
use crate::config::value::{Count, Mismatch, Shown, Value, Words};

/// The headers in which a proxy describes the request, as they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeaderSet {
    XForwarded,
    XOriginal,
}

/// The descriptors by which limits rise with the network of the client.
const HIERARCHY: &str = "address_hierarchy";

/// Reads the blocks `client_address` and `authorize`.
pub(super) fn read(root: &mut Section<'_, '_>) -> AuthorizeConfig {
    let client_address = client_address(root.block(
        "client_address",
        "How the address of a client behind proxies is found",
    ));
    let mut section = root.block(
        "authorize",
        "How /v1/authorize reads the requests that proxies ask about",
    );
    AuthorizeConfig {
        client_address,
        domain: domain(&mut section),
        request_headers: request_headers(&mut section),
        header_lines: section.value(
            "header_lines",
            "How a proxy hands over a header that its client sent in several lines: separate, or joined by commas as Envoy's ext_authz does",
            HeaderForm::Separate,
        ),
        descriptors: section.tree(
            "descriptors",
            "Which descriptors are made of a request: key and source of each entry, or address_hierarchy",
            recipes_schema(1),
            Recipes::default(),
            show,
            read_recipes,
        ),
        identities: Arc::default(),
    }
}

fn client_address(mut section: Section<'_, '_>) -> ClientAddress {
    let default = ClientAddress::default();
    let proxies = section.list(
        "trusted_proxies",
        "Which proxies are believed about their clients: networks, addresses, or unix",
        trusted_by_default(&default),
    );
    let hops: Option<Count<1>> = section.optional(
        "hops",
        "Believe so many proxies wherever they are, instead of trusted_proxies",
    );
    let hops = hops.and_then(|Count(hops)| {
        let hops = u8::try_from(hops).ok().and_then(NonZeroU8::new);
        if hops.is_none() {
            let message = "that many proxies in a row are too many".to_owned();
            section.fault("hops", Code::BadValue, message, "write at most 255");
        }
        hops
    });
    let header = section.value(
        "header",
        "Where a proxy says for whom it speaks: x-forwarded-for, forwarded, or a header with one address",
        default.header,
    );
    let trust = match hops {
        Some(hops) => Trust::Hops(hops),
        None => Trust::Proxies(proxies.into_iter().collect::<Proxies>()),
    };
    ClientAddress { trust, header }
}

fn trusted_by_default(default: &ClientAddress) -> Vec<Proxy> {
    match &default.trust {
        Trust::Proxies(proxies) => proxies.list().to_vec(),
        Trust::Hops(_) => Vec::new(),
    }
}

fn domain(section: &mut Section<'_, '_>) -> AuthorizeDomain {
    let domain: Option<String> =
        section.optional("domain", "The domain of the rules that is asked");
    let from_query = section.value(
        "domain_in_query",
        "Let the proxy name another domain with ?domain=",
        true,
    );
    match (domain, from_query) {
        (Some(domain), false) => AuthorizeDomain::Fixed(domain),
        (otherwise, true) => AuthorizeDomain::OfQuery { otherwise },
        (None, false) => {
            section.fault(
                "domain_in_query",
                Code::MissingField,
                "no domain is asked: `domain` is not set".to_owned(),
                "set `domain` too",
            );
            AuthorizeDomain::default()
        }
    }
}

fn request_headers(section: &mut Section<'_, '_>) -> RequestHeaders {
    let set = section.value(
        "request_headers",
        "In which headers a proxy describes the request: -Uri, -Method and -Host",
        HeaderSet::XForwarded,
    );
    match set {
        HeaderSet::XForwarded => RequestHeaders::x_forwarded(),
        HeaderSet::XOriginal => RequestHeaders::x_original(),
    }
}

/// The descriptors of a gateway's requests. An empty list is a choice here: its requests are not limited.
pub(super) fn gateway_descriptors(section: &mut Section<'_, '_>, default: Recipes) -> Recipes {
    section.tree(
        "descriptors",
        "The descriptors that are made of a request: key and source of each entry, or address_hierarchy; with [], requests are not limited",
        recipes_schema(0),
        default,
        show,
        read_recipes_or_none,
    )
}

/// The same for a part of the requests, if it has descriptors of its own.
pub(super) fn own_descriptors(
    section: &mut Section<'_, '_>,
    about: &'static str,
) -> Option<Recipes> {
    section.tree(
        "descriptors",
        about,
        recipes_schema(0),
        None,
        |recipes| recipes.as_ref().map_or(Shown::Unset, show),
        |node, findings| read_recipes_or_none(node, findings).map(Some),
    )
}

fn recipes_schema(min_items: usize) -> Json {
    let entries = json!({ "type": "object", "minProperties": 1, "additionalProperties": { "type": "string" } });
    let one = json!({ "anyOf": [{ "const": HIERARCHY }, entries] });
    json!({ "type": "array", "minItems": min_items, "items": one })
}

fn show(recipes: &Recipes) -> Shown {
    let show = |recipe: &Recipe| {
        let entries = recipe.0.iter();
        let pairs: Map<String, Json> = entries
            .map(|entry| (entry.key.clone(), json!(entry.from.to_string())))
            .collect();
        Json::Object(pairs)
    };
    Shown::Plain(Json::Array(recipes.list().iter().map(show).collect()))
}

fn read_recipes_or_none(node: &Node, findings: &mut Findings) -> Option<Recipes> {
    match &node.kind {
        Kind::List(nodes) if nodes.is_empty() => Some(Recipes::none()),
        _ => read_recipes(node, findings),
    }
}

fn read_recipes(node: &Node, findings: &mut Findings) -> Option<Recipes> {
    let Kind::List(nodes) = &node.kind else {
        let message = format!("`descriptors` takes a list, found {}", node.shape());
        findings.push(
            Finding::error(Code::WrongShape, node.span, message)
                .hint("begin each descriptor with `-`, as in `- remote_address: client_address`"),
        );
        return None;
    };
    let mut recipes = Vec::new();
    let mut is_whole = true;
    for node in nodes {
        match &node.kind {
            Kind::Block(pairs) => match read_recipe(pairs, findings) {
                Some(recipe) => recipes.push(recipe),
                None => is_whole = false,
            },
            _ if node.as_text() == Some(HIERARCHY) => recipes.extend(Recipe::address_hierarchy()),
            _ => {
                findings.push(no_recipe(node));
                is_whole = false;
            }
        }
    }
    if !is_whole {
        return None;
    }
    Recipes::new(recipes)
        .map_err(|fault| {
            findings.push(Finding::error(Code::BadValue, node.span, fault.to_string()));
        })
        .ok()
}

fn read_recipe(pairs: &[Pair], findings: &mut Findings) -> Option<Recipe> {
    let mut entries = Vec::with_capacity(pairs.len());
    for pair in pairs {
        let key = pair.key.as_text().unwrap_or_default().to_owned();
        let source = pair.value.as_text().unwrap_or_default();
        match source.parse::<Source>() {
            Ok(from) => entries.push(Ingredient { key, from }),
            Err(fault) => findings.push(bad_source(pair, &fault)),
        }
    }
    (entries.len() == pairs.len()).then_some(Recipe(entries))
}

fn no_recipe(node: &Node) -> Finding {
    let message = format!(
        "expected the entries of a descriptor, found {}",
        node.shape()
    );
    Finding::error(Code::WrongShape, node.span, message).hint(format!(
        "write key and source of each entry, as in `remote_address: client_address`, or `{HIERARCHY}`"
    ))
}

fn bad_source(pair: &Pair, fault: &SourceFault) -> Finding {
    Finding::error(Code::BadValue, pair.value.span, fault.to_string())
}

// === impl HeaderSet ===

impl Words for HeaderSet {
    const EXPECTED: &'static str = "a set of headers";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("x-forwarded", Self::XForwarded),
        ("x-original", Self::XOriginal),
    ];
}

// === impl HeaderForm ===

impl Words for HeaderForm {
    const EXPECTED: &'static str = "a form of headers";
    const WORDS: &'static [(&'static str, Self)] =
        &[("separate", Self::Separate), ("joined", Self::Joined)];
}

// === impl Proxy ===

impl Value for Proxy {
    fn parse(text: &str) -> Result<Self, Mismatch> {
        text.parse()
            .map_err(|fault: ProxyFault| Mismatch::new("a proxy", fault.to_string()))
    }

    fn show(&self) -> Shown {
        Shown::Plain(match self {
            Self::Unix => json!("unix"),
            Self::Network(network) => json!(network.to_string()),
        })
    }

    fn schema() -> Json {
        json!({ "type": "string", "minLength": 1 })
    }
}

// === impl AddressHeader ===

impl Value for AddressHeader {
    fn parse(text: &str) -> Result<Self, Mismatch> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if text.is_empty() || !text.bytes().all(is_name) {
            let hint = "write x-forwarded-for, forwarded, or a name such as cf-connecting-ip";
            return Err(Mismatch::new("the name of a header", hint));
        }
        Ok(Self::from(text))
    }

    fn show(&self) -> Shown {
        Shown::Plain(json!(self.name()))
    }

    fn schema() -> Json {
        json!({ "type": "string", "pattern": "^[A-Za-z0-9-]+$" })
    }
}
