//! Where requests and operators come in.

use std::path::PathBuf;

use tidegate_rules::document::Code;

use crate::config::reader::Section;
use crate::config::value::{Address, Mode};

/// Where requests and operators come in.
#[derive(Clone, Debug)]
pub(crate) struct Listeners {
    pub(crate) http: Listener,
    pub(crate) grpc: Listener,
    pub(crate) gateway: Listener,
    pub(crate) admin: Listener,
    pub(crate) metrics: Listener,
}

/// One listener.
#[derive(Clone, Debug)]
pub(crate) struct Listener {
    pub(crate) address: Address,
    pub(crate) socket_mode: Option<Mode>,
    pub(crate) tls: Option<Tls>,
}

/// How a listener proves who it is, and has clients prove it.
#[derive(Clone, Debug)]
pub(crate) struct Tls {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) client_ca: Option<PathBuf>,
    pub(crate) client_san: Vec<String>,
}

// === impl Listeners ===

impl Listeners {
    /// Reads the listeners; that of the gateway is on by default if there is somewhere to send requests.
    pub(super) fn read(mut section: Section<'_, '_>, gateway_is_wanted: bool) -> Self {
        let mut listener = |name, about, default| {
            Listener::read(section.block_or(name, about, "address"), default)
        };
        let loopback = Address::loopback;
        let listeners = Self {
            http: listener("http", "Decisions over HTTP: /json and /v1", loopback(8080)),
            grpc: listener(
                "grpc",
                "Envoy's rate limit service over gRPC",
                loopback(8081),
            ),
            gateway: listener(
                "gateway",
                "The gateway: requests of clients, limited and sent on; 127.0.0.1:8000 once there is an upstream or a route",
                if gateway_is_wanted {
                    loopback(8000)
                } else {
                    Address::Off
                },
            ),
            admin: listener(
                "admin",
                "Metrics, health and the admin API, for operators",
                loopback(6070),
            ),
            metrics: listener(
                "metrics",
                "Metrics and health alone, for who scrapes at a port of their own",
                Address::Off,
            ),
        };
        let asked = [&listeners.http, &listeners.grpc, &listeners.gateway];
        if asked.iter().all(|it| it.address == Address::Off) {
            section.fault(
                "http.address",
                Code::Conflict,
                "nobody could ask: `http`, `grpc` and `gateway` are all off".to_owned(),
                "listen on one of them",
            );
        }
        if listeners.gateway.address != Address::Off && !gateway_is_wanted {
            section.fault(
                "gateway.address",
                Code::MissingField,
                "the gateway has nowhere to send requests".to_owned(),
                "name the server behind it with --upstream or `gateway.upstream`",
            );
        }
        listeners
    }
}

// === impl Listener ===

impl Listener {
    pub(super) fn read(mut section: Section<'_, '_>, default: Address) -> Self {
        let address = section.value(
            "address",
            "IP:PORT, unix:PATH or off; port 0 takes a free one",
            default,
        );
        let socket_mode = section.optional(
            "socket_mode",
            "Who may connect to a unix socket, as chmod has it; by default the umask says",
        );
        let tls = Tls::read(section.block("tls", "Certificates; none means no TLS"));
        Self {
            address,
            socket_mode,
            tls,
        }
    }
}

// === impl Tls ===

impl Tls {
    pub(super) fn read(mut section: Section<'_, '_>) -> Option<Self> {
        let cert = section.optional(
            "cert",
            "The certificate chain as PEM, read again when it changes",
        );
        let key = section.optional("key", "Its private key as PEM");
        let client_ca = section.optional(
            "client_ca",
            "Who signs the certificates of clients, as PEM; clients then need one",
        );
        let client_san: Vec<String> = section.list(
            "client_san",
            "Names of which a client's certificate must carry one",
            Vec::new(),
        );
        match (cert, key) {
            (Some(cert), Some(key)) => Some(Self {
                cert,
                key,
                client_ca,
                client_san,
            }),
            (cert, key) => {
                let alone = [
                    (
                        "cert",
                        cert.is_some(),
                        "name the private key too, with `key`",
                    ),
                    (
                        "key",
                        key.is_some(),
                        "name the certificate too, with `cert`",
                    ),
                    (
                        "client_ca",
                        client_ca.is_some(),
                        "clients can be asked for a certificate only with TLS: set `cert` and `key`",
                    ),
                    (
                        "client_san",
                        !client_san.is_empty(),
                        "clients can be asked for a certificate only with TLS: set `cert` and `key`",
                    ),
                ];
                for (name, is_set, hint) in alone {
                    if is_set {
                        let message = format!("`{name}` does nothing alone");
                        section.fault(name, Code::NotApplicable, message, hint);
                    }
                }
                None
            }
        }
    }
}
