//! The environment of envoyproxy/ratelimit, in our words.
//!
//! Every name it knows stands in `names.rs`: honoured here, or told at start as not supported, with
//! what to do instead. None is passed over in silence.

mod names;
mod redis;
mod refuse;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use tidegate_observe::Endpoint;
use tidegate_rules::document::Span;

use super::raw::{Origin, RawConfig, Written, list, scalar};
use super::reader::Known;
use super::value::Value as _;
pub(crate) use names::{Fate, NAMES, Reason};
use redis::ENGINE;

/// What is set of the names that the reference knows.
#[derive(Debug, Default)]
pub(crate) struct Reference {
    set: BTreeMap<&'static str, Variable>,
}

/// A variable that is set.
#[derive(Clone, Debug)]
struct Variable {
    value: String,
    span: Span,
}

/// Whether we stand in for the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StandIn {
    /// Somebody put our image in its place: its rules' folder is named.
    Yes,
    /// We are ourselves.
    No,
}

/// Names of one reason that are set in vain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unsupported {
    pub(crate) names: Vec<&'static str>,
    pub(crate) reason: Reason,
}

/// Where the reference has its rules if nothing is said.
const RUNTIME_ROOT: &str = "/srv/runtime_data/current";

// === impl Reference ===

impl Reference {
    /// The reference's name that `name` is, if it is one.
    pub(crate) fn known(name: &str) -> Option<&'static str> {
        let exact = NAMES.iter().map(|(known, _)| *known);
        exact.into_iter().find(|known| *known == name).or_else(|| {
            let families = [names::MOGRIFIER, names::OTLP, names::OTLP_TRACES];
            families.into_iter().find(|family| name.starts_with(family))
        })
    }

    /// Notes a variable.
    pub(crate) fn insert(&mut self, name: &'static str, value: String, span: Span) {
        self.set.insert(name, Variable { value, span });
    }

    /// Whether the environment is that of the reference.
    pub(crate) fn stand_in(&self) -> StandIn {
        if self.set.keys().any(|name| name.starts_with("RUNTIME_")) {
            StandIn::Yes
        } else {
            StandIn::No
        }
    }

    /// Puts into `raw` what the variables say.
    pub(crate) fn translate(&self, raw: &mut RawConfig) {
        raw.reference = [
            self.plain(),
            self.addresses(),
            self.rules(),
            self.tls(),
            self.metrics(),
            self.choices(),
            self.traces(),
            self.redis(),
        ]
        .concat();
        if self.stand_in() == StandIn::Yes {
            raw.assumed = assumed();
        }
    }

    /// The names that are set and not supported, by reason, where the settings are `known`.
    pub(crate) fn unsupported(&self, known: &[Known]) -> Vec<Unsupported> {
        let mut found: Vec<Unsupported> = Vec::new();
        for (name, fate) in NAMES {
            let Some(reason) = self.reason_against(name, *fate, known) else {
                continue;
            };
            match found.iter_mut().find(|one| one.reason == reason) {
                Some(one) => one.names.push(name),
                None => found.push(Unsupported {
                    names: vec![name],
                    reason,
                }),
            }
        }
        found
    }

    /// Why a name is set in vain, if it is.
    fn reason_against(&self, name: &'static str, fate: Fate, known: &[Known]) -> Option<Reason> {
        self.set.get(name)?;
        match fate {
            Fate::Unsupported(reason) => Some(reason),
            Fate::OfListener(_) if self.stand_in() == StandIn::No => Some(Reason::HostOfAnother),
            Fate::OfRedis(_) if self.stand_in() == StandIn::No => Some(Reason::RedisOfAnother),
            Fate::OfRedis(ENGINE) if !self.is_in_url(name, known) => Some(Reason::NotInUrl),
            Fate::OnlyIf(value, reason) => self.not(name, value).map(|_| reason),
            Fate::Sets(_)
            | Fate::Makes(_)
            | Fate::OfListener(_)
            | Fate::OfRedis(_)
            | Fate::Always => None,
        }
    }

    /// Those that mean the same as one of our settings.
    fn plain(&self) -> Vec<Written> {
        let pairs = NAMES.iter().filter_map(|(name, fate)| match fate {
            Fate::Sets(path) => Some((*name, *path)),
            _ => None,
        });
        let set = pairs.filter_map(|(name, path)| {
            let Variable { value, span } = self.set.get(name)?;
            Some(written(path, name, scalar(*span, value)))
        });
        set.collect()
    }

    /// Those of host and port, of which two make an address.
    fn addresses(&self) -> Vec<Written> {
        let mut addresses = Vec::new();
        for (path, host, port, default_port) in [
            ("listeners.http.address", "HOST", "PORT", "8080"),
            ("listeners.grpc.address", "GRPC_HOST", "GRPC_PORT", "8081"),
            (
                "listeners.admin.address",
                "DEBUG_HOST",
                "DEBUG_PORT",
                "6070",
            ),
        ] {
            let host_is_ours = host != "HOST" || self.stand_in() == StandIn::Yes;
            let host_set = self.set.get(host).filter(|_| host_is_ours);
            let port_set = self.set.get(port);
            let (Some(Variable { span, .. }), name) = (match (host_set, port_set) {
                (_, Some(set)) => (Some(set), port),
                (set, None) => (set, host),
            }) else {
                continue;
            };
            let everywhere = match self.stand_in() {
                StandIn::Yes => "0.0.0.0",
                StandIn::No => "127.0.0.1",
            };
            let host = host_set.map_or(everywhere, |set| set.value.as_str());
            let port = port_set.map_or(default_port, |set| set.value.as_str());
            addresses.push(written(path, name, scalar(*span, address(host, port))));
        }
        if let Some(Variable { value, span }) = self.set.get("GRPC_UDS") {
            addresses.retain(|written| written.path != "listeners.grpc.address");
            let node = scalar(*span, format!("unix:{value}"));
            addresses.push(written("listeners.grpc.address", "GRPC_UDS", node));
        }
        addresses
    }

    /// The folder of the rules: root, subdirectory and `config`.
    fn rules(&self) -> Vec<Written> {
        let Some((name, Variable { span, .. })) = self
            .set
            .iter()
            .find(|(name, _)| name.starts_with("RUNTIME_"))
        else {
            return Vec::new();
        };
        let value = |name, default| self.value(name).unwrap_or(default);
        let path = Path::new(value("RUNTIME_ROOT", RUNTIME_ROOT))
            // Joined as Go joins them: a slash at the front does not begin anew.
            .join(value("RUNTIME_SUBDIRECTORY", "").trim_start_matches('/'))
            .join(value("RUNTIME_APPDIRECTORY", "config").trim_start_matches('/'));
        let paths = list(*span, [path.display().to_string()]);
        let files = scalar(*span, "every");
        vec![
            written("rules.paths", name, paths),
            written("rules.files", name, files),
        ]
    }

    /// Certificates, once TLS is switched on.
    fn tls(&self) -> Vec<Written> {
        if !self.is_on("GRPC_SERVER_USE_TLS") {
            return Vec::new();
        }
        let names = [
            ("listeners.grpc.tls.cert", "GRPC_SERVER_TLS_CERT"),
            ("listeners.grpc.tls.key", "GRPC_SERVER_TLS_KEY"),
            ("listeners.grpc.tls.client_ca", "GRPC_CLIENT_TLS_CACERT"),
            ("listeners.grpc.tls.client_san", "GRPC_CLIENT_TLS_SAN"),
        ];
        let set = names.into_iter().filter_map(|(path, name)| {
            let Variable { value, span } = self.set.get(name)?;
            Some(written(path, name, scalar(*span, value)))
        });
        set.collect()
    }

    /// The address of the metrics, once Prometheus is switched on. It is a default there as well.
    fn metrics(&self) -> Vec<Written> {
        let name = "USE_PROMETHEUS";
        let Some(on) = self.set.get(name).filter(|_| self.is_on(name)) else {
            return Vec::new();
        };
        let path = "listeners.metrics.address";
        vec![match self.set.get("PROMETHEUS_ADDR") {
            Some(set) => written(path, "PROMETHEUS_ADDR", scalar(set.span, &set.value)),
            None => written(path, name, scalar(on.span, ":9090")),
        }]
    }

    /// Switches of the reference that choose among more than two of ours. Keys that stop counting are
    /// charged as ours are by default.
    fn choices(&self) -> Vec<Written> {
        let names = [
            (
                "answers.headers",
                "LIMIT_RESPONSE_HEADERS_ENABLED",
                "named",
                "none",
            ),
            (
                "charging",
                "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT",
                "all_or_none",
                "every_match",
            ),
            ("rules.refusals", "QUOTA_MODE", "quota", "enforce"),
        ];
        let set = names.into_iter().filter_map(|(path, name, on, off)| {
            let Variable { span, .. } = self.set.get(name)?;
            let choice = if self.is_on(name) { on } else { off };
            Some(written(path, name, scalar(*span, choice)))
        });
        set.collect()
    }

    /// Traces go where OpenTelemetry's own variables say, once they are switched on.
    fn traces(&self) -> Vec<Written> {
        let name = "TRACING_ENABLED";
        match self.set.get(name) {
            Some(Variable { span, .. }) if self.is_on(name) => {
                let of_traces = self.value(names::OTLP_TRACES);
                let endpoint = of_traces
                    .map(|endpoint| endpoint.trim_end_matches(Endpoint::TRACES_PATH))
                    .or(self.value(names::OTLP))
                    .unwrap_or("http://localhost:4318");
                vec![written(
                    "observing.traces.endpoint",
                    name,
                    scalar(*span, endpoint),
                )]
            }
            _ => Vec::new(),
        }
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.set.get(name).map(|variable| variable.value.as_str())
    }

    /// What a variable is set to, if that is not `value`.
    fn not(&self, name: &str, value: &str) -> Option<&Variable> {
        let variable = self.set.get(name)?;
        let is_same = match (bool::parse(&variable.value), bool::parse(value)) {
            (Ok(set), Ok(wanted)) => set == wanted,
            _ => variable.value.eq_ignore_ascii_case(value),
        };
        (!is_same).then_some(variable)
    }

    fn is_on(&self, name: &str) -> bool {
        self.value(name)
            .is_some_and(|value| bool::parse(value) == Ok(true))
    }
}

/// What goes without saying where the reference ran before.
fn assumed() -> Vec<Written> {
    let nowhere = Span {
        file: 0,
        line: 1,
        column: 1,
        end_column: 1,
    };
    let settings = [
        ("listeners.http.address", "0.0.0.0:8080"),
        ("listeners.grpc.address", "0.0.0.0:8081"),
        ("listeners.admin.address", "0.0.0.0:6070"),
        ("charging", "every_match"),
        ("looks_at_limit", "allow"),
        ("store.consistency", "strict"),
        ("answers.headers", "none"),
        ("answers.body", "none"),
        ("limits.connection_age", "24h"),
        ("limits.connection_age_grace", "1h"),
    ];
    let assume = |(path, value): (&str, &str)| Written {
        path: path.to_owned(),
        origin: Origin::Assumed("RUNTIME_ROOT"),
        node: scalar(nowhere, value),
    };
    settings.map(assume).into()
}

fn written(path: &str, name: &str, node: tidegate_rules::document::Node) -> Written {
    Written {
        path: path.to_owned(),
        origin: Origin::Environment(name.to_owned()),
        node,
    }
}

fn address(host: &str, port: &str) -> String {
    let is_ipv6 = host.contains(':') && !host.starts_with('[');
    if is_ipv6 {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}
