//! What is known of the request that a client made.

use std::borrow::Cow;
use std::net::IpAddr;

/// A request, as far as somebody trusted told of it. What nobody told is `None`.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// Its method.
    pub method: Option<&'a str>,
    /// Its path and query, as the client sent them.
    pub uri: Option<&'a str>,
    /// The host it was sent to.
    pub host: Option<&'a str>,
    /// Who sent it, as [`ClientAddress::find`](crate::ClientAddress::find) says.
    pub client: Option<IpAddr>,
    /// Its headers.
    pub headers: &'a dyn Headers,
}

/// The headers of a request.
pub trait Headers {
    /// The value of the header with this name, in lower case; several lines joined by commas.
    fn value(&self, name: &str) -> Option<Cow<'_, str>>;
}
