//! What a server is told, once.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::thread::available_parallelism;
use std::time::Duration;

use tidegate_gateway::GatewayBounds;
use tidegate_identify::Proxies;

use crate::{Address, Answers, AuthorizeConfig, GrpcConfig, HttpConfig};

/// All that a server is told.
#[derive(Clone, Debug, Default)]
pub struct ServerConfig {
    /// Where clients of the reverse proxy are answered.
    pub gateway: Vec<ListenConfig>,
    /// Where HTTP requests are answered.
    pub http: Vec<ListenConfig>,
    /// Where Envoy's rate limit service is answered.
    pub grpc: Vec<ListenConfig>,
    /// Where operators are answered.
    pub admin: Vec<ListenConfig>,
    /// Where metrics and health are told, and nothing else.
    pub metrics: Vec<ListenConfig>,
    /// What a client of the reverse proxy is allowed.
    pub gateway_bounds: GatewayBounds,
    /// What one HTTP connection is allowed.
    pub http_bounds: HttpConfig,
    /// What one gRPC connection is allowed.
    pub grpc_bounds: GrpcConfig,
    /// How answers look where a rule does not say.
    pub answers: Answers,
    /// How `/v1/authorize` reads the requests it is asked about.
    pub authorize: AuthorizeConfig,
    /// How many threads answer.
    pub cores: CoreCount,
    /// How the server ends.
    pub drain: DrainConfig,
}

/// What one listener is told.
#[derive(Clone, Debug)]
pub struct ListenConfig {
    /// Where it listens.
    pub address: Address,
    /// Who may connect to a unix socket, as `chmod` has it; without it, the umask says.
    pub socket_mode: Option<u32>,
    /// With it, clients must speak TLS.
    pub tls: Option<TlsConfig>,
    /// Connections open at once, at least one. A further one evicts the one that has been idle for longest, and
    /// waits if there is none.
    pub max_connections: usize,
    /// Connections of one peer address open at once; further ones are closed. Half of all places, if not set.
    pub max_connections_per_address: Option<usize>,
    /// Peers that may have as many as they like: proxies that speak for many clients.
    pub exempt_peers: Proxies,
    /// Connections that wait in the kernel until they are accepted; the kernel may have a lower bound.
    pub backlog: u32,
}

/// The files that a listener needs for TLS, and whom it lets in. They are read again when they change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsConfig {
    /// The certificate and those between it and the root, in PEM.
    pub certificate: PathBuf,
    /// The private key of the certificate, in PEM.
    pub key: PathBuf,
    /// With it, clients must show a certificate that one of these vouches for.
    pub client_ca: Option<PathBuf>,
    /// With them, a client's certificate must be for one of these names: DNS names or IP addresses.
    pub client_names: Vec<String>,
    /// How long a client may take over the handshake.
    pub handshake_timeout: Duration,
}

/// How many threads answer, each with a runtime of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreCount(pub NonZeroUsize);

/// How a server ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainConfig {
    /// The time in which it still takes connections once health checks are told, so that load balancers notice.
    pub delay: Duration,
    /// The time after that in which requests under way may end, and idle HTTP/1 connections may bring one more.
    pub grace: Duration,
}

// === impl ListenConfig ===

impl ListenConfig {
    /// Connections open at once where nobody says: with every head and body as large as can be, they
    /// take at most 512 MiB.
    pub const MAX_CONNECTIONS: usize = 4_096;

    /// Enough for every client of a large fleet to come back at once; the kernel's own bound is
    /// `net.core.somaxconn`, 4,096 on most.
    pub const BACKLOG: u32 = 4_096;

    /// A listener in plain text with the usual bounds.
    pub fn new(address: impl Into<Address>) -> Self {
        Self {
            address: address.into(),
            socket_mode: None,
            tls: None,
            max_connections: Self::MAX_CONNECTIONS,
            max_connections_per_address: None,
            exempt_peers: Proxies::default(),
            backlog: Self::BACKLOG,
        }
    }
}

// === impl TlsConfig ===

impl TlsConfig {
    /// A handshake takes two round trips; ten seconds are enough for the slowest line.
    pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

    /// TLS that lets in everybody.
    pub fn new(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self {
            certificate: certificate.into(),
            key: key.into(),
            client_ca: None,
            client_names: Vec::new(),
            handshake_timeout: Self::HANDSHAKE_TIMEOUT,
        }
    }
}

// === impl CoreCount ===

impl Default for CoreCount {
    /// As many as the process may use; one if the system does not say.
    fn default() -> Self {
        Self(available_parallelism().unwrap_or(NonZeroUsize::MIN))
    }
}

// === impl DrainConfig ===

impl DrainConfig {
    /// The usual grace. With what comes after it, a server ends within the ten seconds that `docker stop` waits.
    pub const GRACE: Duration = Duration::from_secs(5);
}

impl Default for DrainConfig {
    fn default() -> Self {
        Self {
            delay: Duration::ZERO,
            grace: Self::GRACE,
        }
    }
}
