//! IDENTIFY: who asks, as far as a request's socket and headers can be trusted to tell.
//!
//! [`ClientAddress`] finds the address of a client behind proxies, [`Recipes`] makes descriptors of a
//! [`Request`]. No IO, no HTTP types, no clock: a front door hands over the bytes of the headers.
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
mod client;
mod forwarded;
mod grouping;
mod identities;
mod recipe;
mod request;
mod trail;
mod uri;

pub use client::{AddressHeader, ClientAddress, Peer, Proxies, Proxy, ProxyFault, Trust};
pub use grouping::{BadPrefix, Grouping};
pub use identities::Identities;
pub use recipe::{Described, Ingredient, Recipe, RecipeFault, Recipes, Source, SourceFault};
pub use request::{Headers, Request};
pub use uri::{host as normal_host, path as normal_path, query_parameters};
