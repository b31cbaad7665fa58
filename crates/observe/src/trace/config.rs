//! Where spans go, which are made, and who they say they are from.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// How decisions are traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceConfig {
    /// Where spans are sent.
    pub endpoint: Endpoint,
    /// Headers that go with every batch, such as a key. Their values do not show in a log.
    pub headers: Vec<(String, String)>,
    /// Which requests are traced.
    pub sampling: Sampling,
    /// `service.name` of the resource.
    pub service_name: String,
    /// Further attributes of the resource.
    pub resource: Vec<(String, String)>,
    /// How many spans may wait to be sent; more are dropped and counted.
    pub max_queue: usize,
    /// How many spans are sent at once.
    pub max_batch: usize,
    /// How long a span waits for others at most.
    pub delay: Duration,
    /// How long one attempt to send a batch may take.
    pub timeout: Duration,
}

/// Which requests are traced, in millionths of those that come without a trace of their own. One that
/// comes with a trace is traced if that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling(u32);

/// An address of the form `http://host:port/path`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Host and port, as they stand in the address.
    authority: Box<str>,
    path: Box<str>,
}

/// Why a text is no endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// It does not begin with `http://`.
    #[error(
        "spans are sent over plain http; write http://host:port, and send them to a collector on this host or network"
    )]
    NotHttp,
    /// It has no host, or a port that is none.
    #[error("the host or the port is missing or wrong; write http://host:port")]
    BadAuthority,
    /// It holds a character that no address holds.
    #[error("there is a space or a control character in the address")]
    BadCharacter,
}

// === impl TraceConfig ===

impl TraceConfig {
    /// Everything to `endpoint`, under the name `tidegate`. The numbers are OpenTelemetry's.
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            headers: Vec::new(),
            sampling: Sampling::ALL,
            service_name: "tidegate".to_owned(),
            resource: Vec::new(),
            max_queue: 2_048,
            max_batch: 512,
            delay: Duration::from_secs(5),
            timeout: Duration::from_secs(10),
        }
    }
}

// === impl Sampling ===

impl Sampling {
    /// Every request.
    pub const ALL: Self = Self(Self::WHOLE);

    /// Those only that come with a trace.
    pub const NONE: Self = Self(0);

    const WHOLE: u32 = 1_000_000;

    /// A share in millionths, at most the whole.
    pub const fn from_millionths(millionths: u32) -> Self {
        if millionths > Self::WHOLE {
            Self::ALL
        } else {
            Self(millionths)
        }
    }

    /// The share in millionths.
    pub const fn millionths(self) -> u32 {
        self.0
    }
}

// === impl Endpoint ===

impl Endpoint {
    /// The path that OTLP has for traces.
    pub const TRACES_PATH: &'static str = "/v1/traces";

    /// Host and port.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The path, from its slash on.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The same host, with the path that OTLP has for traces below this one.
    #[must_use]
    pub fn for_traces(&self) -> Self {
        let base = self.path.trim_end_matches('/');
        Self {
            authority: self.authority.clone(),
            path: format!("{base}{}", Self::TRACES_PATH).into(),
        }
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let rest = text.strip_prefix("http://").ok_or(EndpointError::NotHttp)?;
        if !rest.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(EndpointError::BadCharacter);
        }
        let at = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(at);
        let has_port = authority
            .rfind(':')
            .is_some_and(|at| !authority[at..].contains(']'));
        let authority = if has_port {
            authority.to_owned()
        } else {
            format!("{authority}:80")
        };
        let (host, port) = authority
            .rsplit_once(':')
            .ok_or(EndpointError::BadAuthority)?;
        if host.is_empty() || host.contains('@') || port.parse::<u16>().is_err() {
            return Err(EndpointError::BadAuthority);
        }
        Ok(Self {
            authority: authority.into(),
            path: if path.is_empty() { "/" } else { path }.into(),
        })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "http://{}{}", self.authority, self.path)
    }
}
