//! How callers prove who they are: tokens, API keys, and labels of networks.

use std::path::PathBuf;
use std::str::FromStr;

use http::Uri;
use serde_json::{Value as Json, json};
use tidegate_identify::{
    AcceptedNames, ApiKeyPlace, BadToken, ClaimPath, MissingToken, TokenPlace, TokenSettings,
};
use tidegate_rules::document::Code;

use crate::config::reader::Section;
use crate::config::value::{Mismatch, Shown, Value, Words};

/// The files and settings by which callers are told apart. Nothing is read of the files here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) tokens: Option<TokenFiles>,
    pub(crate) api_keys: Option<ApiKeyFiles>,
    /// Tables of networks, by name.
    pub(crate) labels: Vec<(String, PathBuf)>,
}

/// Tokens that callers bring (JWT), and the place of the keys that verify them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenFiles {
    pub(crate) settings: TokenSettings,
    pub(crate) keys: TokenKeyPlace,
}

/// The place of the keys that tokens are signed with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TokenKeyPlace {
    /// Files of public keys as PEM.
    Pem(Vec<PathBuf>),
    /// A file with a secret.
    Secret(PathBuf),
    /// A file with a set of keys (JWKS).
    KeySet(PathBuf),
    /// The https URL of a set of keys.
    Url(Uri),
}

/// API keys with their plans and tenants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiKeyFiles {
    /// The table.
    pub(crate) file: PathBuf,
    /// The key of the hashes in it.
    pub(crate) hash_key_file: PathBuf,
    pub(crate) place: ApiKeyPlace,
}

/// A file or a URL, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
enum KeySetPlace {
    File(PathBuf),
    Url(Uri),
}

/// The word for whatever a token says.
const ANY: &str = "any";

/// The header of API keys where nobody names another one.
const API_KEY_HEADER: &str = "x-api-key";

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

fn tokens(mut section: Section<'_, '_>) -> Option<TokenFiles> {
    let pem: Vec<PathBuf> = section.list("keys", "Files of public keys as PEM", Vec::new());
    let secret: Option<PathBuf> = section.optional(
        "secret_file",
        "A file with the secret of HS256 tokens, instead of `keys`",
    );
    let key_set: Option<KeySetPlace> = section.optional(
        "jwks",
        "A JWK set instead of `keys`: a file, or an https URL that is fetched again every 5 minutes",
    );
    let settings = token_settings(&mut section);
    let mut places = [
        ("keys", (!pem.is_empty()).then_some(TokenKeyPlace::Pem(pem))),
        ("secret_file", secret.map(TokenKeyPlace::Secret)),
        ("jwks", key_set.map(TokenKeyPlace::from)),
    ]
    .into_iter()
    .filter_map(|(name, place)| Some((name, place?)));
    let Some((_, keys)) = places.next() else {
        let others = [
            "issuer",
            "audience",
            "leeway",
            "place",
            "plan_claim",
            "tenant_claim",
        ];
        let keys = "`keys`, `jwks` or `secret_file`";
        section.refuse_alone(&others, keys);
        if settings.missing_token == MissingToken::Deny {
            section.refuse_alone(&["missing_token"], keys);
        }
        return None;
    };
    // A secret beside public keys would let a caller choose how a token is verified.
    for (name, _) in places {
        let message = format!("`{name}` cannot stand beside other keys");
        let hint = "keep one of `keys`, `secret_file` and `jwks`";
        section.fault(name, Code::Conflict, message, hint);
    }
    for name in ["issuer", "audience"] {
        if !section.is_written(name) {
            let hint = format!("list those that are accepted, or write `{name}: {ANY}`");
            section.missing(name, &hint);
        }
    }
    Some(TokenFiles { settings, keys })
}

fn token_settings(section: &mut Section<'_, '_>) -> TokenSettings {
    let issuers = accepted(
        section,
        "issuer",
        "Issuers that are accepted, or the word any",
    );
    let audiences = accepted(
        section,
        "audience",
        "Audiences that are accepted, or the word any",
    );
    let default = TokenSettings::new(issuers, audiences);
    let leeway = section.optional("leeway", "Time by which clocks may differ; 30s, if not set");
    let place = section.optional(
        "place",
        "The part of a request that holds the token: bearer, header:NAME or cookie:NAME; bearer, if not set",
    );
    TokenSettings {
        leeway: leeway.unwrap_or(default.leeway),
        place: place.unwrap_or_default(),
        bad_token: section.value(
            "bad_token",
            "The treatment of a request whose token is not good: 401, or as if there were none",
            BadToken::default(),
        ),
        missing_token: section.value(
            "missing_token",
            "The treatment of a request without a token: only the limits that need none, or 401",
            MissingToken::default(),
        ),
        plan_claim: section.optional(
            "plan_claim",
            "The claim that holds the caller's plan, a name or a JSON pointer",
        ),
        tenant_claim: section.optional(
            "tenant_claim",
            "The claim that holds the caller's tenant, a name or a JSON pointer",
        ),
        ..default
    }
}

fn accepted(section: &mut Section<'_, '_>, name: &str, about: &'static str) -> AcceptedNames {
    let names: Vec<String> = section.list(name, about, Vec::new());
    match names.as_slice() {
        [one] if one == ANY => AcceptedNames::Any,
        _ => AcceptedNames::Named(names),
    }
}

fn api_keys(mut section: Section<'_, '_>) -> Option<ApiKeyFiles> {
    let file: Option<PathBuf> = section.optional(
        "file",
        "The table of keys: id, hash, plan and tenant of each",
    );
    let hash_key_file: Option<PathBuf> =
        section.optional("hash_key_file", "A file with the key of the hashes");
    let place: Option<ApiKeyPlace> = section.optional(
        "place",
        "The part of a request that holds an API key: header:NAME, bearer, cookie:NAME or query:NAME; header:x-api-key, if not set",
    );
    let default = || ApiKeyPlace::Header(TokenPlace::Header(API_KEY_HEADER.to_owned()));
    match (file, hash_key_file) {
        (Some(file), Some(hash_key_file)) => Some(ApiKeyFiles {
            file,
            hash_key_file,
            place: place.unwrap_or_else(default),
        }),
        (file, _) => {
            match file {
                Some(_) => section.refuse_alone(&["file"], "`hash_key_file`"),
                None => section.refuse_alone(&["hash_key_file", "place"], "`file`"),
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

impl From<KeySetPlace> for TokenKeyPlace {
    fn from(place: KeySetPlace) -> Self {
        match place {
            KeySetPlace::File(path) => Self::KeySet(path),
            KeySetPlace::Url(url) => Self::Url(url),
        }
    }
}

// === impl Value for what identities are made of ===

impl Words for BadToken {
    const EXPECTED: &'static str = "a treatment";
    const WORDS: &'static [(&'static str, Self)] =
        &[("deny", Self::Deny), ("anonymous", Self::Anonymous)];
}

impl Words for MissingToken {
    const EXPECTED: &'static str = "a treatment";
    const WORDS: &'static [(&'static str, Self)] =
        &[("anonymous", Self::Anonymous), ("deny", Self::Deny)];
}

/// Values that print as they read.
macro_rules! value_by_text {
    ($type:ty, $expected:literal) => {
        impl Value for $type {
            fn parse(text: &str) -> Result<Self, Mismatch> {
                text.parse()
                    .map_err(|fault: <Self as FromStr>::Err| Mismatch::new($expected, fault.to_string()))
            }

            fn show(&self) -> Shown {
                Shown::Plain(json!(self.to_string()))
            }

            fn schema() -> Json {
                json!({ "type": "string", "minLength": 1 })
            }
        }
    };
}

value_by_text!(TokenPlace, "a place for a token");
value_by_text!(ApiKeyPlace, "a place for an API key");
value_by_text!(ClaimPath, "a claim");
