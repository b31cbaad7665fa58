//! Where spans go, which are made, and who they say they are from.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use hyper::header::{HeaderName, HeaderValue};

/// How decisions are traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceConfig {
    /// Where spans are sent.
    pub endpoint: Endpoint,
    /// Headers that go with every batch, such as a key.
    pub headers: Vec<TraceHeader>,
    /// Which of the requests are traced that come without a trace of their own. One that comes with a
    /// trace is traced if that is.
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
    /// How long to wait after an attempt that failed; twice as long after the next.
    pub first_pause: Duration,
}

/// A header that goes with every batch. Its value does not show in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceHeader {
    pub(super) name: HeaderName,
    pub(super) value: HeaderValue,
}

/// A text that is no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this name or value cannot stand in a header")]
pub struct BadHeader;

/// A share of all requests, in millionths.
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
            first_pause: Duration::from_secs(1),
        }
    }
}

// === impl TraceHeader ===

impl TraceHeader {
    /// A header of this name and value.
    pub fn new(name: &str, value: &str) -> Result<Self, BadHeader> {
        let name = name.parse().map_err(|_| BadHeader)?;
        let mut value: HeaderValue = value.parse().map_err(|_| BadHeader)?;
        value.set_sensitive(true);
        Ok(Self { name, value })
    }
}

// === impl Sampling ===

impl Sampling {
    /// Every request.
    pub const ALL: Self = Self(Self::WHOLE);

    /// No request.
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

    /// A share that is written as a ratio from 0 to 1, such as `0.25`; what is less than a millionth
    /// is cut off.
    pub fn from_ratio(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
        if !is_digits(whole) || !is_digits(fraction) {
            return None;
        }
        let fraction: String = fraction.chars().chain("000000".chars()).take(6).collect();
        let whole: u32 = whole.parse().ok()?;
        let millionths = whole.checked_mul(Self::WHOLE)?;
        let millionths = millionths.checked_add(fraction.parse().ok()?)?;
        (millionths <= Self::WHOLE).then_some(Self(millionths))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, authority: &str, path: &str) {
        let endpoint: Endpoint = text.parse().unwrap();
        assert_eq!((endpoint.authority(), endpoint.path()), (authority, path));
    }

    #[test]
    fn reads_addresses() {
        check("http://collector", "collector:80", "/");
        check(
            "http://collector:4318/v1/traces",
            "collector:4318",
            "/v1/traces",
        );
        check("http://10.0.0.1:4318/", "10.0.0.1:4318", "/");
        check("http://[::1]", "[::1]:80", "/");
        check("http://[::1]:4318/x?y", "[::1]:4318", "/x?y");
    }

    #[test]
    fn refuses_what_is_no_address() {
        let check = |text: &str, expected| assert_eq!(text.parse::<Endpoint>(), Err(expected));
        check("https://collector:4318", EndpointError::NotHttp);
        check("collector:4318", EndpointError::NotHttp);
        check("http://", EndpointError::BadAuthority);
        check("http:///v1/traces", EndpointError::BadAuthority);
        check("http://collector:port", EndpointError::BadAuthority);
        check("http://user@collector", EndpointError::BadAuthority);
        check("http://a b", EndpointError::BadCharacter);
    }

    #[test]
    fn a_base_gets_the_path_of_traces() {
        let of = |text: &str| text.parse::<Endpoint>().unwrap().for_traces().to_string();
        assert_eq!(of("http://c:1"), "http://c:1/v1/traces");
        assert_eq!(of("http://c:1/base/"), "http://c:1/base/v1/traces");
    }

    #[test]
    fn ratios_are_from_zero_to_one() {
        assert_eq!(Sampling::from_ratio("1.0"), Some(Sampling::ALL));
        assert_eq!(Sampling::from_ratio("0"), Some(Sampling::NONE));
        assert_eq!(Sampling::from_ratio("0.1"), Some(Sampling(100_000)));
        assert_eq!(Sampling::from_ratio("0.0000019"), Some(Sampling(1)));
        for bad in [
            "",
            "-0.1",
            "1.1",
            "NaN",
            "1.",
            ".5",
            "1e-3",
            "99999999999",
            "x",
        ] {
            assert_eq!(Sampling::from_ratio(bad), None, "{bad}");
        }
    }
}
