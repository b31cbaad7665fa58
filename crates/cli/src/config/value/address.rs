//! Where a listener listens.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use serde_json::{Value as Json, json};

use super::{Mismatch, Shown, Value};

/// Where a listener listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// Nowhere.
    Off,
    /// At an address and port; port 0 takes a free one.
    Tcp(SocketAddr),
    /// At a path of this machine.
    Unix(PathBuf),
}

// === impl Address ===

impl Address {
    /// A port of the loopback address.
    pub(crate) fn loopback(port: u16) -> Self {
        Self::Tcp((Ipv4Addr::LOCALHOST, port).into())
    }
}

impl Value for Address {
    fn parse(text: &str) -> Result<Self, Mismatch> {
        if matches!(text, "off" | "none" | "false") {
            return Ok(Self::Off);
        }
        if let Some(path) = text.strip_prefix("unix:") {
            return PathBuf::parse(path).map(Self::Unix);
        }
        let with_host = match text.split_once(':') {
            Some(("", port)) => format!("0.0.0.0:{port}"),
            Some(("localhost", port)) => format!("127.0.0.1:{port}"),
            _ => text.to_owned(),
        };
        with_host.parse().map(Self::Tcp).map_err(|_| {
            let is_port = text.parse::<u16>().is_ok();
            let hint = if is_port {
                format!("write 127.0.0.1:{text} for this machine alone, or :{text} for every network")
            } else {
                "write IP:PORT, such as 127.0.0.1:8080 or [::]:8080, with a port up to 65535; :PORT for every \
                 network; unix:PATH; or off"
                    .to_owned()
            };
            Mismatch::new("an address", hint)
        })
    }

    fn show(&self) -> Shown {
        Shown::Plain(json!(self.to_string()))
    }

    fn schema() -> Json {
        // YAML reads `off` as a boolean in its older form.
        json!({ "anyOf": [{ "type": "string", "minLength": 1 }, { "const": false }] })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => formatter.write_str("off"),
            Self::Tcp(address) => address.fmt(formatter),
            Self::Unix(path) => write!(formatter, "unix:{}", path.display()),
        }
    }
}
