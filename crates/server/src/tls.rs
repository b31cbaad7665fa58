//! TLS by rustls: who we are, who may come in, and files that change under a running server.
//!
//! The provider of cryptography is `ring`: see docs/adr/0007-one-runtime-per-core.md.

mod client_name;
mod material;
mod subject;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tidegate_gateway::ClientProtocol;
use tidegate_observe::LogSampler;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls;
use tokio_rustls::server::TlsStream;
use tracing::{info, warn};
use webpki::EndEntityCert;

use crate::{Front, TlsConfig};

use client_name::ClientName;
pub use material::TlsError;
use material::{Digest, Material};

/// The TLS of one listener.
#[derive(Debug)]
pub(crate) struct Tls {
    front: Front,
    files: TlsConfig,
    names: Vec<ClientName>,
    in_force: ArcSwap<rustls::ServerConfig>,
    digests: Mutex<FileDigests>,
    failure_log: LogSampler,
}

/// The certificates of all listeners of a server, to have them read again.
#[derive(Clone, Debug)]
pub struct Certificates(Arc<[Arc<Tls>]>);

/// Digests of the files, so that each change is handled once.
#[derive(Clone, Copy, Debug)]
struct FileDigests {
    /// Of the content that was handled last, with or without success.
    handled: Digest,
    /// Of the content that was read last.
    latest: Digest,
}

/// The moment at which changed files are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReloadMoment {
    /// At once.
    Now,
    /// When two reads in a row gave the same: the certificate may be replaced already, and its key not yet.
    OnceUnchanged,
}

/// The time between two reads of the files.
const LOOK: Duration = Duration::from_secs(1);

// === impl Tls ===

impl Tls {
    /// Reads the files for the first time.
    pub(crate) fn load(front: Front, files: &TlsConfig) -> Result<Self, TlsError> {
        let names = client_name::parse(files)?;
        let material = Material::read(files)?;
        let config = material.config(files, &names, protocols(front))?;
        let digest = material.digest();
        Ok(Self {
            front,
            files: files.clone(),
            names,
            in_force: ArcSwap::from_pointee(config),
            digests: Mutex::new(FileDigests {
                handled: digest,
                latest: digest,
            }),
            failure_log: LogSampler::default(),
        })
    }

    /// Shakes hands with a client; `None` if that came to nothing, which is the client's affair.
    pub(crate) async fn accept<I>(&self, io: I) -> Option<TlsStream<I>>
    where
        I: AsyncRead + AsyncWrite + Unpin,
    {
        let acceptor = TlsAcceptor::from(self.in_force.load_full());
        match timeout(self.files.handshake_timeout, acceptor.accept(io)).await {
            Ok(Ok(stream)) => return Some(stream),
            Ok(Err(reason)) => self.failed(&reason),
            Err(_) => self.failed(&"it took too long"),
        }
        None
    }

    /// Logs a handshake that failed, with the number of those since the last line.
    fn failed(&self, reason: &dyn fmt::Display) {
        if let Some(n_failed) = self.failure_log.count() {
            warn!(front = %self.front, %reason, n_failed, "TLS handshake failed");
        }
    }

    /// Looks at the files, and acts if they have changed. Blocks for as long as reading takes.
    fn look(&self, moment: ReloadMoment) -> Result<(), TlsError> {
        let read = Material::read(&self.files);
        let digest = match &read {
            Ok(material) => material.digest(),
            Err(error) => Digest::of(&error.to_string()),
        };
        if !self.is_due(digest, moment) {
            return Ok(());
        }
        let taken = read.and_then(|material| self.take(&material));
        match &taken {
            Ok(()) => info!(
                front = %self.front,
                certificate = %self.files.certificate.display(),
                "reloaded TLS certificate"
            ),
            Err(error) => warn!(
                front = %self.front,
                %error,
                "cannot reload TLS certificate; the previous one stays in force"
            ),
        }
        taken
    }

    fn is_due(&self, digest: Digest, moment: ReloadMoment) -> bool {
        // No panic can happen while it is held.
        let mut digests = self.digests.lock().unwrap_or_else(PoisonError::into_inner);
        let is_unchanged = digests.latest == digest;
        let is_due = digests.handled != digest && (is_unchanged || moment == ReloadMoment::Now);
        digests.latest = digest;
        if is_due {
            digests.handled = digest;
        }
        is_due
    }

    /// Connections made before keep what they have.
    fn take(&self, material: &Material) -> Result<(), TlsError> {
        let config = material.config(&self.files, &self.names, protocols(self.front))?;
        self.in_force.store(Arc::new(config));
        Ok(())
    }
}

// === impl Certificates ===

impl Certificates {
    pub(crate) fn new(all: Vec<Arc<Tls>>) -> Self {
        Self(all.into())
    }

    /// Reads all files again at once, and gives what is wrong with those that have changed and are no
    /// good; the certificates before them stay in force. Blocks for as long as reading takes.
    pub fn reload(&self) -> Vec<TlsError> {
        let looks = self.0.iter().map(|tls| tls.look(ReloadMoment::Now));
        looks.filter_map(Result::err).collect()
    }

    /// Looks at all files again and again, for ever.
    pub(crate) async fn watch(self) {
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !self.0.is_empty() {
            looks.tick().await;
            let all = Arc::clone(&self.0);
            let look = move || {
                for tls in all.iter() {
                    // It has been told.
                    let _ = tls.look(ReloadMoment::OnceUnchanged);
                }
            };
            // A file system may be slow, and this thread accepts connections.
            let _ = spawn_blocking(look).await;
        }
    }
}

/// The outcome of a handshake, as far as the gateway wants to know.
#[derive(Clone, Debug)]
pub(crate) struct Handshake {
    /// The protocol that was settled; HTTP/1.1 if the client offered none.
    pub(crate) protocol: ClientProtocol,
    /// The subject of the client's certificate.
    pub(crate) certificate: Option<Arc<str>>,
}

/// Gives the outcome of a handshake.
pub(crate) fn handshake<I>(stream: &TlsStream<I>) -> Handshake {
    let (_, connection) = stream.get_ref();
    let protocol = match connection.alpn_protocol() {
        Some(b"h2") => ClientProtocol::Http2,
        _ => ClientProtocol::Http1,
    };
    let certificate = connection.peer_certificates().and_then(|chain| {
        let certificate = EndEntityCert::try_from(chain.first()?).ok()?;
        subject::text(certificate.subject())
    });
    Handshake {
        protocol,
        certificate: certificate.map(Arc::from),
    }
}

/// The protocols spoken inside, by their registered names, the preferred one first.
const fn protocols(front: Front) -> &'static [&'static [u8]] {
    match front {
        Front::Gateway => &[b"h2", b"http/1.1"],
        Front::Grpc => &[b"h2"],
        Front::Http | Front::Admin | Front::Metrics => &[b"http/1.1"],
    }
}
