//! Upstreams: the servers behind the gateway.

use std::path::PathBuf;
use std::time::Duration;

use http::StatusCode;
use serde_json::{Value as Json, json};
use tidegate_gateway::{
    Balance, HealthCheck, PassiveHealth, RetryConfig, RetryOn, TargetConfig, TargetFault, Timeouts,
    UpstreamConfig, UpstreamProtocol, UpstreamTls,
};
use tidegate_rules::document::Code;

use super::bounds::longer_than_zero;
use crate::config::reader::Section;
use crate::config::value::{Count, Mismatch, Shown, Value, Words};

/// Reads one upstream, whose name the caller knows.
pub(super) fn read(section: &mut Section<'_, '_>) -> UpstreamConfig {
    let targets: Vec<TargetConfig> = section.list(
        "targets",
        "Its servers: http://HOST:PORT or https://HOST:PORT",
        Vec::new(),
    );
    if targets.is_empty() && !section.is_written("targets") {
        section.missing("targets", "write http://HOST:PORT of each server");
    }
    let default = UpstreamConfig::new(String::new(), targets);
    UpstreamConfig {
        balance: section.value("balance", "The choice among its servers", default.balance),
        protocol: section.value("protocol", "The protocol spoken to them", default.protocol),
        tls: tls(section.block("tls", "TLS to targets that begin with https")),
        max_connections: count(
            section,
            "max_connections",
            "Connections to one server, over all threads",
            default.max_connections,
        ),
        idle_timeout: longer_than_zero(
            section,
            "idle_timeout",
            "Time an unused connection is kept; keep it below that of the server",
            default.idle_timeout,
        ),
        max_streams: count(
            section,
            "max_streams",
            "Streams of one HTTP/2 connection before another one is opened",
            default.max_streams,
        ),
        timeouts: timeouts(section.block("timeouts", "Bounds on waiting for a server")),
        health_check: health_check(section.block_or(
            "health_check",
            "Requests by which a server's health is checked; none, if not set",
            "path",
        )),
        passive_health: passive_health(section.block(
            "passive_health",
            "The judgement of a server by the requests of clients",
        )),
        resolve_interval: longer_than_zero(
            section,
            "resolve_interval",
            "Time between two look-ups of a server's name",
            default.resolve_interval,
        ),
        ..default
    }
}

/// Reads the retries of a route.
pub(super) fn retry(mut section: Section<'_, '_>) -> Option<RetryConfig> {
    let on: Vec<RetryOn> = section.list(
        "on",
        "Failures that are retried: connect, reset, 502, 503, 504",
        Vec::new(),
    );
    let attempts: Option<Count<1>> =
        section.optional("attempts", "Attempts besides the first; 1, if not set");
    let budget: Option<Count<1>> = section.optional(
        "budget_percent",
        "Share of requests that may be retried; 20, if not set",
    );
    if on.is_empty() {
        section.refuse_alone(&["attempts", "budget_percent"], "`on`");
        return None;
    }
    for (name, value, most) in [("attempts", attempts, 10), ("budget_percent", budget, 100)] {
        if value.is_some_and(|Count(value)| value > most) {
            let message = format!("`{name}` is at most {most}");
            section.fault(name, Code::BadValue, message, &format!("write 1 to {most}"));
        }
    }
    let default = RetryConfig::default();
    Some(RetryConfig {
        on,
        attempts: attempts.map_or(default.attempts, |count| count.0),
        budget_percent: budget.map_or(default.budget_percent, |count| count.0),
    })
}

fn tls(mut section: Section<'_, '_>) -> UpstreamTls {
    let roots = section.optional(
        "roots",
        "The certificates that vouch for servers, as PEM; those of the system, if not set",
    );
    let cert: Option<PathBuf> = section.optional("cert", "Our certificate as PEM");
    let key: Option<PathBuf> = section.optional("key", "Its private key as PEM");
    let server_name = section.optional(
        "server_name",
        "The name that a server's certificate must have; the target's host, if not set",
    );
    let client_certificate = match (cert, key) {
        (Some(cert), Some(key)) => Some((cert, key)),
        (cert, _) => {
            match cert {
                Some(_) => section.refuse_alone(&["cert"], "`key`"),
                None => section.refuse_alone(&["key"], "`cert`"),
            }
            None
        }
    };
    UpstreamTls {
        roots,
        client_certificate,
        server_name,
    }
}

fn timeouts(mut section: Section<'_, '_>) -> Timeouts {
    let default = Timeouts::default();
    Timeouts {
        connect: longer_than_zero(
            &mut section,
            "connect",
            "Time until a connection is open, TLS included",
            default.connect,
        ),
        first_byte: longer_than_zero(
            &mut section,
            "first_byte",
            "Time from the end of the request to the head of the response",
            default.first_byte,
        ),
        idle: longer_than_zero(
            &mut section,
            "idle",
            "Time between two pieces of the response, and of an upgraded connection",
            default.idle,
        ),
    }
}

fn health_check(mut section: Section<'_, '_>) -> Option<HealthCheck> {
    let path: Option<String> = section.optional("path", "The path that is asked for with GET");
    let host = section.optional(
        "host",
        "The Host of the request; the target's host, if not set",
    );
    let interval = section.optional("interval", "Time between two checks; 2s, if not set");
    let timeout = section.optional("timeout", "Time an answer may take; 1s, if not set");
    let healthy_after: Option<Count<1>> = section.optional(
        "healthy_after",
        "Successes in a row after which a server is healthy; 2, if not set",
    );
    let unhealthy_after: Option<Count<1>> = section.optional(
        "unhealthy_after",
        "Failures in a row after which it is not; 3, if not set",
    );
    let Some(path) = path else {
        let others = [
            "host",
            "interval",
            "timeout",
            "healthy_after",
            "unhealthy_after",
        ];
        section.refuse_alone(&others, "`path`");
        return None;
    };
    if !path.starts_with('/') {
        let message = "the path of a health check begins with `/`".to_owned();
        section.fault(
            "path",
            Code::BadValue,
            message,
            "write a path such as /healthz",
        );
    }
    for (name, duration) in [("interval", interval), ("timeout", timeout)] {
        if duration.is_some_and(|duration: Duration| duration.is_zero()) {
            let message = format!("`{name}` must be greater than zero");
            section.fault(name, Code::BadValue, message, "write a duration such as 1s");
        }
    }
    let default = HealthCheck::new(path);
    Some(HealthCheck {
        host,
        interval: interval.unwrap_or(default.interval),
        timeout: timeout.unwrap_or(default.timeout),
        healthy_after: healthy_after.map_or(default.healthy_after, |count| count.0),
        unhealthy_after: unhealthy_after.map_or(default.unhealthy_after, |count| count.0),
        path: default.path,
    })
}

fn passive_health(mut section: Section<'_, '_>) -> PassiveHealth {
    let default = PassiveHealth::default();
    let failures: Count<0> = section.value(
        "failures",
        "Failures in a row after which a server is left out; 0 switches it off",
        Count(default.failures),
    );
    PassiveHealth {
        failures: failures.0,
        eject_for: longer_than_zero(
            &mut section,
            "eject_for",
            "Time it is left out",
            default.eject_for,
        ),
    }
}

fn count(section: &mut Section<'_, '_>, name: &str, about: &'static str, default: usize) -> usize {
    let default = u32::try_from(default).unwrap_or(u32::MAX);
    section.value::<Count<1>>(name, about, Count(default)).get()
}

// === impl Value ===

impl Value for TargetConfig {
    fn parse(text: &str) -> Result<Self, Mismatch> {
        text.parse()
            .map_err(|fault: TargetFault| Mismatch::new("a server", fault.to_string()))
    }

    fn show(&self) -> Shown {
        Shown::Plain(json!(self.to_string()))
    }

    fn schema() -> Json {
        json!({ "type": "string", "pattern": "^https?://" })
    }
}

impl Value for RetryOn {
    fn parse(text: &str) -> Result<Self, Mismatch> {
        match text {
            "connect" => Ok(Self::Connect),
            "reset" => Ok(Self::Reset),
            "502" => Ok(Self::Status(StatusCode::BAD_GATEWAY)),
            "503" => Ok(Self::Status(StatusCode::SERVICE_UNAVAILABLE)),
            "504" => Ok(Self::Status(StatusCode::GATEWAY_TIMEOUT)),
            _ => Err(Mismatch::new(
                "a failure",
                "write connect, reset, 502, 503 or 504",
            )),
        }
    }

    fn show(&self) -> Shown {
        Shown::Plain(match self {
            Self::Connect => json!("connect"),
            Self::Reset => json!("reset"),
            Self::Status(status) => json!(status.as_u16()),
        })
    }

    fn schema() -> Json {
        json!({ "enum": ["connect", "reset", 502, 503, 504] })
    }
}

impl Words for Balance {
    const EXPECTED: &'static str = "a choice";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("round_robin", Self::RoundRobin),
        ("least_requests", Self::LeastRequests),
    ];
}

impl Words for UpstreamProtocol {
    const EXPECTED: &'static str = "a protocol";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("auto", Self::Auto),
        ("http1", Self::Http1),
        ("http2", Self::Http2),
    ];
}
