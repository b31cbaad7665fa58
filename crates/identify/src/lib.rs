//! IDENTIFY: the caller of a request, as far as its socket, its headers and signatures can be trusted.
//!
//! [`ClientAddress`] finds the address of a client behind proxies, [`Identities`] holds the keys and tables by which callers are
//! identified, [`Recipes`] makes descriptors of a [`Request`]. No IO, no HTTP types, no clock: a front hands over the bytes of
//! headers and files, and the time.
//!
//! ```
//! use tidegate_identify::{ClientAddress, Peer};
//!
//! // By default the proxies of this machine are believed, by their `X-Forwarded-For`.
//! let config = ClientAddress::default();
//! let proxy = Peer::Address("127.0.0.1".parse().unwrap());
//! // What the client claims stands left of what the proxy saw.
//! let lines: [&[u8]; 1] = [b"10.9.9.9, 203.0.113.7"];
//! assert_eq!(config.find(proxy, lines), "203.0.113.7".parse().ok());
//! ```

mod address;
mod api_key;
mod client;
mod cookie;
mod forwarded;
mod grouping;
mod identities;
mod label;
mod path;
mod recipe;
mod request;
mod text;
mod token;
mod trail;
mod uri;
mod value_list;

pub use api_key::{ApiKeyHasher, ApiKeyPlace, ApiKeyTable, ApiKeys, ShortHashKey};
pub use client::{AddressHeader, ClientAddress, Peer, Proxies, Proxy, ProxyFault, Trust};
pub use grouping::{BadPrefix, Grouping};
pub use identities::Identities;
pub use label::{LabelFault, LabelFaultKind, LabelFaults, LabelTable};
pub use path::{LooseReading, forwarded_path, normal_path};
pub use recipe::{
    DescribedPart, Descriptors, Entries, Ingredient, Recipe, RecipeFault, Recipes, Source,
    SourceFault, Values,
};
pub use request::{HeaderText, Headers, Request, is_same_variable};
pub use text::{plain_text, text_of, uri_text};
pub use token::{
    AcceptedNames, BadToken, ClaimPath, ClaimPathFault, Claims, LeftOutKey, LimitSteps,
    MissingToken, TokenFault, TokenKeyFault, TokenKeys, TokenPlace, TokenPlaceFault,
    TokenRejection, TokenSettings, TokenVerifier,
};
pub use uri::{host as normal_host, query_parameters};
pub use value_list::{AmbiguousValue, ListChoice, ListPlace};

/// A secret from a file, without the line end that editors put after it.
fn without_line_end(secret: &[u8]) -> &[u8] {
    let secret = secret.strip_suffix(b"\n").unwrap_or(secret);
    secret.strip_suffix(b"\r").unwrap_or(secret)
}
