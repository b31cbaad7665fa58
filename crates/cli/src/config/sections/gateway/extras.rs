//! Access lists, CORS, denial bodies and the paths of Tidegate's own.

use http::HeaderValue;
use serde_json::{Value as Json, json};
use tidegate_gateway::{AccessConfig, CorsConfig, GatewayConfig};
use tidegate_identify::normal_path;
use tidegate_rules::document::Code;
use tidegate_rules::{Network, NetworkFault, Networks};

use super::DenialTemplate;
use crate::config::reader::Section;
use crate::config::value::{Mismatch, Shown, Value};

/// An origin of web pages, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Origin {
    /// Every origin.
    Any,
    /// This one.
    Named(HeaderValue),
}

pub(super) fn access(mut section: Section<'_, '_>) -> AccessConfig {
    let mut networks = |name, about| {
        let list: Vec<Network> = section.list(name, about, Vec::new());
        (!list.is_empty()).then(|| Networks::new(&list))
    };
    AccessConfig {
        allow: networks("allow", "Networks; clients from elsewhere get 403"),
        deny: networks("deny", "Networks whose clients get 403"),
    }
}

pub(super) fn cors(mut section: Section<'_, '_>) -> Option<CorsConfig> {
    let origins: Vec<Origin> = section.list(
        "origins",
        "Origins such as https://shop.example, or * for every origin; none means no CORS headers",
        Vec::new(),
    );
    let credentials = section.value(
        "credentials",
        "Allow web pages to send cookies: adds Access-Control-Allow-Credentials",
        false,
    );
    let is_any = origins.contains(&Origin::Any);
    if credentials && (is_any || origins.is_empty()) {
        let message = "`credentials` are for origins that are named".to_owned();
        let hint = "name each origin, such as https://shop.example";
        section.fault("credentials", Code::Conflict, message, hint);
    }
    let named = origins.iter().filter_map(|origin| match origin {
        Origin::Named(value) => Some(value.clone()),
        Origin::Any => None,
    });
    (!origins.is_empty()).then(|| CorsConfig {
        // An empty list stands for every origin.
        origins: if is_any { Vec::new() } else { named.collect() },
        credentials,
    })
}

pub(super) fn own_prefix(section: &mut Section<'_, '_>) -> String {
    let prefix: String = section.value(
        "own_prefix",
        "The path under which Tidegate's own endpoints lie",
        GatewayConfig::OWN_PREFIX.to_owned(),
    );
    let is_path = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let is_inner = prefix.len() > 2 && prefix.starts_with('/') && prefix.ends_with('/');
    let is_normal = normal_path(&prefix).as_deref() == Some(prefix.as_str());
    if !is_inner || !is_normal || !prefix.bytes().all(is_path) {
        let message = "`own_prefix` is a path with a slash at both ends".to_owned();
        section.fault(
            "own_prefix",
            Code::BadValue,
            message,
            "write a path such as /.tidegate/",
        );
    }
    prefix
}

pub(super) fn denial_body(mut section: Section<'_, '_>) -> Option<DenialTemplate> {
    let content_type: Option<HeaderValue> = section.optional(
        "content_type",
        "The media type, which says how values are escaped: JSON, HTML, or not at all",
    );
    let file = section.optional(
        "file",
        "A file with the text, in which {{limit}}, {{retry_after}}, {{detail}}, {{decision}} and {{status}} are filled in",
    );
    match (content_type, file) {
        (Some(content_type), Some(file)) => Some(DenialTemplate { content_type, file }),
        (None, None) => None,
        (Some(_), None) => {
            section.refuse_alone(&["content_type"], "`file`");
            None
        }
        (None, Some(_)) => {
            section.refuse_alone(&["file"], "`content_type`");
            None
        }
    }
}

// === impl Value ===

impl Value for Origin {
    fn parse(text: &str) -> Result<Self, Mismatch> {
        if matches!(text, "*" | "any") {
            return Ok(Self::Any);
        }
        let mismatch = || {
            Mismatch::new(
                "an origin",
                "write a scheme and a host, such as https://shop.example, or *",
            )
        };
        let (scheme, host) = text.split_once("://").ok_or_else(mismatch)?;
        let is_host = !host.is_empty() && !host.contains(['/', '?', '#', '@', ' ']);
        if !matches!(scheme, "http" | "https") || !is_host {
            return Err(mismatch());
        }
        HeaderValue::parse(text).map(Self::Named)
    }

    fn show(&self) -> Shown {
        match self {
            Self::Any => Shown::Plain(json!("*")),
            Self::Named(value) => value.show(),
        }
    }

    fn schema() -> Json {
        json!({ "type": "string", "minLength": 1 })
    }
}

impl Value for Network {
    fn parse(text: &str) -> Result<Self, Mismatch> {
        text.parse()
            .map_err(|fault: NetworkFault| Mismatch::new("a network", fault.to_string()))
    }

    fn show(&self) -> Shown {
        Shown::Plain(json!(self.to_string()))
    }

    fn schema() -> Json {
        json!({ "type": "string", "minLength": 1 })
    }
}
