//! Upstreams: the servers behind the gateway.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use http::{StatusCode, Uri};

/// The servers that answer the same requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamConfig {
    /// Its name, for routes, logs and metrics.
    pub name: String,
    /// Its servers, at least one.
    pub targets: Vec<TargetConfig>,
    /// The choice among the targets.
    pub balance: Balance,
    /// The protocol spoken to them.
    pub protocol: UpstreamProtocol,
    /// TLS to targets that begin with `https`.
    pub tls: UpstreamTls,
    /// Connections to one target, over all threads.
    pub max_connections: usize,
    /// Time an unused connection is kept.
    pub idle_timeout: Duration,
    /// Streams of one HTTP/2 connection before another one is opened.
    pub max_streams: usize,
    /// Bounds on waiting.
    pub timeouts: Timeouts,
    /// Requests by which a target's health is checked.
    pub health_check: Option<HealthCheck>,
    /// The judgement of a target by the requests of clients.
    pub passive_health: PassiveHealth,
    /// Time between two look-ups of a target's name.
    pub resolve_interval: Duration,
}

/// One server: `http://HOST:PORT` or `https://HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TargetConfig {
    /// Whether it is spoken to over TLS.
    pub is_tls: bool,
    /// A DNS name or an address, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// A text that is not a target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetFault {
    /// It is not a URL with a host.
    #[error("`{text}` is not a target; write http://HOST:PORT or https://HOST:PORT")]
    NotAUrl {
        /// The text.
        text: String,
    },
    /// It has a path, a query or a user.
    #[error("`{text}` has more than a host and a port; to change paths, use a route's `rewrite`")]
    TooMuch {
        /// The text.
        text: String,
    },
}

/// The choice among the targets that are healthy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balance {
    /// One after the other.
    #[default]
    RoundRobin,
    /// Of two picked at random the one with fewer requests in progress.
    LeastRequests,
}

/// The protocol spoken to targets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpstreamProtocol {
    /// HTTP/1.1; over TLS, HTTP/2 if the target offers it.
    #[default]
    Auto,
    /// HTTP/1.1.
    Http1,
    /// HTTP/2; without TLS by prior knowledge, as gRPC servers speak it.
    Http2,
}

/// TLS to the targets of one upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpstreamTls {
    /// The roots that vouch for targets, in PEM; without it, those of the system.
    pub roots: Option<PathBuf>,
    /// Our certificate and its key, in PEM.
    pub client_certificate: Option<(PathBuf, PathBuf)>,
    /// The name that the target's certificate must have; without it, the target's host.
    pub server_name: Option<String>,
}

/// Bounds on waiting for a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until a connection is open, TLS included.
    pub connect: Duration,
    /// From the end of the request to the head of the response.
    pub first_byte: Duration,
    /// Between two pieces of the response's body, and between two of an upgraded connection.
    pub idle: Duration,
}

/// Requests by which a target's health is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthCheck {
    /// The path that is asked for with GET.
    pub path: String,
    /// The `Host` of the request; without it, the target's host.
    pub host: Option<String>,
    /// Time between two checks.
    pub interval: Duration,
    /// Time an answer may take.
    pub timeout: Duration,
    /// Answers of 200 to 399 in a row after which a target is healthy.
    pub healthy_after: u32,
    /// Failures in a row after which it is not.
    pub unhealthy_after: u32,
}

/// The judgement of a target by the requests of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassiveHealth {
    /// Failures in a row (connections that fail or break, timeouts) after which a target is left out; 0 switches it off.
    pub failures: u32,
    /// Time it is left out.
    pub eject_for: Duration,
}

/// Retries that a route asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryConfig {
    /// The failures that are retried.
    pub on: Vec<RetryOn>,
    /// Attempts besides the first.
    pub attempts: u32,
    /// Share of requests that may be retried, in percent.
    pub budget_percent: u32,
}

/// A failure that may be retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryOn {
    /// No connection could be made: any method.
    Connect,
    /// The connection broke before the response: idempotent methods whose body, if there is one, can be sent again.
    Reset,
    /// A response of this status, 502, 503 or 504: the same methods.
    Status(StatusCode),
}

// === impl UpstreamConfig ===

impl UpstreamConfig {
    /// An upstream with the usual settings.
    pub fn new(name: impl Into<String>, targets: Vec<TargetConfig>) -> Self {
        Self {
            name: name.into(),
            targets,
            balance: Balance::default(),
            protocol: UpstreamProtocol::default(),
            tls: UpstreamTls::default(),
            max_connections: 1_024,
            // Below the 5 s after which Node.js and uvicorn close a connection.
            idle_timeout: Duration::from_secs(4),
            // As many as most servers allow.
            max_streams: 100,
            timeouts: Timeouts::default(),
            health_check: None,
            passive_health: PassiveHealth::default(),
            resolve_interval: Duration::from_secs(10),
        }
    }
}

// === impl TargetConfig ===

impl FromStr for TargetConfig {
    type Err = TargetFault;

    fn from_str(text: &str) -> Result<Self, TargetFault> {
        let not_a_url = || TargetFault::NotAUrl {
            text: text.to_owned(),
        };
        let uri: Uri = text.parse().map_err(|_| not_a_url())?;
        let is_tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(not_a_url()),
        };
        let authority = uri.authority().ok_or_else(not_a_url)?;
        let has_more = uri.path() != "/" || uri.query().is_some();
        if has_more || authority.as_str().contains('@') {
            return Err(TargetFault::TooMuch {
                text: text.to_owned(),
            });
        }
        let host = authority.host().trim_matches(['[', ']']);
        if host.is_empty() {
            return Err(not_a_url());
        }
        Ok(Self {
            is_tls,
            host: host.to_owned(),
            port: match authority.port_u16() {
                Some(port) => port,
                None if authority.as_str().ends_with(authority.host()) => {
                    if is_tls {
                        443
                    } else {
                        80
                    }
                }
                None => return Err(not_a_url()),
            },
        })
    }
}

impl TargetConfig {
    /// Its host and port, as a `Host` header has them.
    pub fn authority(&self) -> String {
        let (host, port) = (&self.host, self.port);
        if host.contains(':') {
            format!("[{host}]:{port}")
        } else {
            format!("{host}:{port}")
        }
    }
}

impl fmt::Display for TargetConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority())
    }
}

// === impl Timeouts ===

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(2),
            // As nginx's `proxy_read_timeout`.
            first_byte: Duration::from_mins(1),
            idle: Duration::from_mins(1),
        }
    }
}

// === impl HealthCheck ===

impl HealthCheck {
    /// Checks of this path with the usual settings.
    pub fn new(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            host: None,
            interval: Duration::from_secs(2),
            timeout: Duration::from_secs(1),
            healthy_after: 2,
            unhealthy_after: 3,
        }
    }
}

// === impl PassiveHealth ===

impl Default for PassiveHealth {
    fn default() -> Self {
        Self {
            failures: 5,
            eject_for: Duration::from_secs(10),
        }
    }
}

// === impl RetryConfig ===

impl Default for RetryConfig {
    fn default() -> Self {
        Self {
            on: vec![RetryOn::Connect],
            attempts: 1,
            budget_percent: 20,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TargetConfig;

    fn check(text: &str, expected: Result<&str, &str>) {
        let parsed = text.parse::<TargetConfig>();
        let shown = parsed.map(|it| it.to_string()).map_err(|it| it.to_string());
        let expected = expected.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(shown, expected);
    }

    #[test]
    fn targets_are_urls_without_a_path() {
        check("http://127.0.0.1:9000", Ok("http://127.0.0.1:9000"));
        check("https://api.example", Ok("https://api.example:443"));
        check("http://[::1]:9000/", Ok("http://[::1]:9000"));
        check(
            "127.0.0.1:9000",
            Err("`127.0.0.1:9000` is not a target; write http://HOST:PORT or https://HOST:PORT"),
        );
        check(
            "http://api/v1",
            Err(
                "`http://api/v1` has more than a host and a port; to change paths, use a route's `rewrite`",
            ),
        );
    }
}
