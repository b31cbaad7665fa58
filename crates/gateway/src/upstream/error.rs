//! The ways in which a request can fail to get a response from an upstream.

use std::io;
use std::path::PathBuf;

use http::StatusCode;
use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::pem;

use crate::body::BodyFault;

/// A request without a response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ForwardError {
    /// Health checks say that all targets are down.
    #[error("no healthy target")]
    NoHealthyTarget,
    /// No connection became free in time: as many are open as may be, or a connect for earlier requests took too long.
    #[error("no connection became free in time")]
    PoolExhausted,
    /// No connection could be made.
    #[error("connect failed")]
    ConnectFailed(#[source] io::Error),
    /// A connection was not open in time.
    #[error("connect timed out")]
    ConnectTimedOut,
    /// The head of the response did not come in time.
    #[error("response timed out")]
    ResponseTimedOut,
    /// The target said that it has not looked at the request.
    #[error("request refused by the target")]
    Refused(#[source] hyper::Error),
    /// The connection broke, or the response is malformed.
    #[error("connection broken before the response")]
    Broken {
        /// The cause.
        source: hyper::Error,
        /// The knowledge about the target: it has seen the request, or may have.
        reached: Reached,
    },
    /// The body of the client's request failed.
    #[error("request body failed")]
    RequestBodyFailed(#[source] BodyFault),
    /// The request cannot be written in the protocol of the target.
    #[error("request cannot be sent in the protocol of the target")]
    Unsendable,
}

/// The knowledge whether a target has seen a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reached {
    /// It has not.
    #[default]
    No,
    /// It may have.
    Maybe,
    /// It has: it began to respond.
    Yes,
}

/// An upstream that cannot be made from its settings.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpstreamError {
    /// A file that cannot be read.
    #[error("cannot read {}", path.display())]
    UnreadableFile {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file without a certificate or a key, or with a malformed one.
    #[error("no usable {item} in {}; it must be written in PEM", path.display())]
    BadPem {
        /// The thing that should be in it.
        item: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: pem::Error,
    },
    /// A certificate and a key that cannot be used together.
    #[error("cannot use the client certificate {} with its key", path.display())]
    BadClientCertificate {
        /// The file of the certificate.
        path: PathBuf,
        /// The cause.
        source: rustls::Error,
    },
    /// No root that could vouch for a target.
    #[error("no root certificate found; name a file with `roots`")]
    NoRoots,
    /// A name that no certificate can have.
    #[error("`{name}` is not a server name; write a DNS name or an IP address")]
    BadServerName {
        /// The name.
        name: String,
    },
    /// rustls does not take the settings.
    #[error("cannot set up TLS")]
    Tls(#[source] rustls::Error),
}

// === impl ForwardError ===

impl ForwardError {
    /// The status that tells a client.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::NoHealthyTarget | Self::PoolExhausted => StatusCode::SERVICE_UNAVAILABLE,
            Self::ConnectFailed(_) | Self::Refused(_) | Self::Broken { .. } => {
                StatusCode::BAD_GATEWAY
            }
            Self::ConnectTimedOut | Self::ResponseTimedOut => StatusCode::GATEWAY_TIMEOUT,
            Self::RequestBodyFailed(_) | Self::Unsendable => StatusCode::BAD_REQUEST,
        }
    }

    /// Returns `No` if the target cannot have seen the request in this attempt.
    pub(crate) fn was_reached(&self) -> Reached {
        match self {
            Self::NoHealthyTarget
            | Self::PoolExhausted
            | Self::ConnectFailed(_)
            | Self::ConnectTimedOut
            | Self::Refused(_)
            | Self::Unsendable => Reached::No,
            Self::ResponseTimedOut | Self::RequestBodyFailed(_) => Reached::Maybe,
            Self::Broken { reached, .. } => *reached,
        }
    }
}
