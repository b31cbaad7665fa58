//! How callers prove who they are: tokens, API keys, and labels of networks.

use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderName, Uri};
use serde_json::{Value as Json, json};
use tidegate_rules::document::Code;

use crate::config::reader::Section;
use crate::config::value::{Mismatch, Shown, Value, Words};

/// The files and settings by which callers are told apart. Nothing is read of the files here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) tokens: Option<TokenSettings>,
    pub(crate) api_keys: Option<ApiKeyFiles>,
    /// Tables of networks, by name.
    pub(crate) labels: Vec<(String, PathBuf)>,
}

/// Tokens that callers bring (JWT).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenSettings {
    /// Public keys as PEM.
    pub(crate) keys: Vec<PathBuf>,
    /// A secret that issuer and verifier share.
    pub(crate) secret: Option<PathBuf>,
    /// A set of keys.
    pub(crate) key_set: Option<KeySetPlace>,
    pub(crate) issuer: Accepted,
    pub(crate) audience: Accepted,
    pub(crate) leeway: Option<Duration>,
    /// The part of a request that holds the token.
    pub(crate) place: Option<String>,
    pub(crate) bad_token: BadTokens,
    pub(crate) plan_claim: Option<String>,
    pub(crate) tenant_claim: Option<String>,
}

/// The place of a set of keys (JWKS).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeySetPlace {
    /// A file.
    File(PathBuf),
    /// An https URL.
    Url(Uri),
}

/// The issuers or audiences that are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Accepted {
    /// Whatever the token says.
    Any,
    /// One of these.
    Named(Vec<String>),
}

/// The treatment of requests whose token is not good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadTokens {
    /// 401.
    Deny,
    /// As if there were no token.
    Anonymous,
}

/// API keys with their plans and tenants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiKeyFiles {
    /// The table.
    pub(crate) file: PathBuf,
    /// The key of the hashes in it.
    pub(crate) hash_key_file: PathBuf,
    pub(crate) header: Option<HeaderName>,
}

/// The word for whatever a token says.
const ANY: &str = "any";

// === impl Identity ===

impl Identity {
    pub(super) fn read(mut section: Section<'_, '_>) -> Self {
        let tokens = tokens(section.block("tokens", "Tokens that callers bring (JWT)"));
        let api_keys = api_keys(section.block("api_keys", "API keys with their plans and tenants"));
        let labels = section.named_blocks(
            "labels",
            "Tables of networks by name, files of lines CIDR,LABEL, for the source label:NAME",
            Some("file"),
            |section| {
                let file: Option<PathBuf> = section.optional("file", "The file");
                if file.is_none() {
                    section.missing("file", "name a file of lines CIDR,LABEL");
                }
                file
            },
        );
        let labels = labels
            .into_iter()
            .filter_map(|item| Some((item.name, item.value?)));
        Self {
            tokens,
            api_keys,
            labels: labels.collect(),
        }
    }
}

fn tokens(mut section: Section<'_, '_>) -> Option<TokenSettings> {
    let keys: Vec<PathBuf> = section.list("keys", "Files of public keys as PEM", Vec::new());
    let secret: Option<PathBuf> = section.optional(
        "secret_file",
        "A file with the secret of HS256 tokens; not beside public keys",
    );
    let key_set: Option<KeySetPlace> = section.optional(
        "jwks",
        "A set of keys: a file, or an https URL that is fetched again every 5 minutes",
    );
    let issuer = accepted(
        &mut section,
        "issuer",
        "Issuers that are accepted, or the word any",
    );
    let audience = accepted(
        &mut section,
        "audience",
        "Audiences that are accepted, or the word any",
    );
    let settings = TokenSettings {
        leeway: section.optional("leeway", "Time by which clocks may differ; 30s, if not set"),
        place: section.optional(
            "place",
            "The part of a request that holds the token: bearer, header:NAME or cookie:NAME; bearer, if not set",
        ),
        bad_token: section.value(
            "bad_token",
            "The treatment of a request whose token is not good: 401, or as if there were none",
            BadTokens::Deny,
        ),
        plan_claim: section.optional("plan_claim", "The claim that holds the caller's plan"),
        tenant_claim: section.optional("tenant_claim", "The claim that holds the caller's tenant"),
        issuer: issuer.clone().unwrap_or(Accepted::Any),
        audience: audience.clone().unwrap_or(Accepted::Any),
        keys,
        secret,
        key_set,
    };
    if settings.keys.is_empty() && settings.secret.is_none() && settings.key_set.is_none() {
        let others = [
            "issuer",
            "audience",
            "leeway",
            "place",
            "plan_claim",
            "tenant_claim",
        ];
        section.refuse_alone(&others, "`keys`, `jwks` or `secret_file`");
        return None;
    }
    refuse_mixed(&mut section, &settings);
    for (name, is_set) in [
        ("issuer", issuer.is_some()),
        ("audience", audience.is_some()),
    ] {
        if !is_set {
            let hint = format!("list those that are accepted, or write `{name}: {ANY}`");
            section.missing(name, &hint);
        }
    }
    Some(settings)
}

/// Keys come from one place: a secret beside public keys would let a caller choose how a token is verified.
fn refuse_mixed(section: &mut Section<'_, '_>, settings: &TokenSettings) {
    let places = [
        ("keys", !settings.keys.is_empty()),
        ("secret_file", settings.secret.is_some()),
        ("jwks", settings.key_set.is_some()),
    ];
    let set = places.into_iter().filter(|(_, is_set)| *is_set);
    for (name, _) in set.skip(1) {
        let message = format!("`{name}` cannot stand beside other keys");
        let hint = "keep one of `keys`, `secret_file` and `jwks`";
        section.fault(name, Code::Conflict, message, hint);
    }
}

fn accepted(section: &mut Section<'_, '_>, name: &str, about: &'static str) -> Option<Accepted> {
    let names: Vec<String> = section.list(name, about, Vec::new());
    match names.as_slice() {
        [] => None,
        [one] if one == ANY => Some(Accepted::Any),
        _ => Some(Accepted::Named(names)),
    }
}

fn api_keys(mut section: Section<'_, '_>) -> Option<ApiKeyFiles> {
    let file: Option<PathBuf> = section.optional(
        "file",
        "The table of keys: id, hash, plan and tenant of each",
    );
    let hash_key_file: Option<PathBuf> =
        section.optional("hash_key_file", "A file with the key of the hashes");
    let header = section.optional(
        "header",
        "The header that holds an API key; x-api-key, if not set",
    );
    match (file, hash_key_file) {
        (Some(file), Some(hash_key_file)) => Some(ApiKeyFiles {
            file,
            hash_key_file,
            header,
        }),
        (file, _) => {
            match file {
                Some(_) => section.refuse_alone(&["file"], "`hash_key_file`"),
                None => section.refuse_alone(&["hash_key_file", "header"], "`file`"),
            }
            None
        }
    }
}

// === impl KeySetPlace ===

impl Value for KeySetPlace {
    fn parse(text: &str) -> Result<Self, Mismatch> {
        if !text.contains("://") {
            return PathBuf::parse(text).map(Self::File);
        }
        let uri = text.parse::<Uri>().ok();
        let is_secure = |uri: &Uri| uri.scheme_str() == Some("https") && uri.host().is_some();
        uri.filter(is_secure).map(Self::Url).ok_or_else(|| {
            let hint = "write a file or a URL that begins with https://";
            Mismatch::new("a set of keys", hint)
        })
    }

    fn show(&self) -> Shown {
        Shown::Plain(match self {
            Self::File(path) => json!(path.display().to_string()),
            Self::Url(uri) => json!(uri.to_string()),
        })
    }

    fn schema() -> Json {
        json!({ "type": "string", "minLength": 1 })
    }
}

// === impl BadTokens ===

impl Words for BadTokens {
    const EXPECTED: &'static str = "a treatment";
    const WORDS: &'static [(&'static str, Self)] =
        &[("deny", Self::Deny), ("anonymous", Self::Anonymous)];
}
