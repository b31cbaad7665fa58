//! TLS to Redis, by rustls.

mod unverified;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use super::config::{TlsOptions, Verification};
use unverified::Unverified;

/// Who we are to servers, and whom we trust.
#[derive(Clone)]
pub(crate) struct Tls(Arc<ClientConfig>);

/// What is wrong with the files of TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file that cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: io::Error,
    },
    /// A file larger than any certificate.
    #[error("{} has more than {MAX_FILE_BYTES} bytes; is it the right file?", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// A file that is not well-formed.
    #[error("{} is no good PEM: {reason}", path.display())]
    BadPem {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: pem::Error,
    },
    /// A file without what it is for.
    #[error("there is no certificate in {}; it must be written in PEM", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// Nobody to trust.
    #[error(
        "this system has no list of certificates to trust; name a file of them by `?ca=FILE` in the URL"
    )]
    NoAuthorities,
    /// A certificate without its key, or a key without its certificate.
    #[error("a certificate needs its key; write both `cert=FILE` and `key=FILE` in the URL")]
    HalfAPair,
    /// What rustls does not take.
    #[error("the certificates cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
}

/// The list of every public authority takes 220 KiB.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// Where systems keep the authorities they trust: Debian and Alpine, Fedora and its kin, the BSDs.
const AUTHORITIES: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
];

// === impl Tls ===

impl Tls {
    /// Reads the files.
    pub(crate) fn load(options: &TlsOptions) -> Result<Self, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let builder = match options.verification {
            Verification::Full => builder.with_root_certificates(authorities(options)?),
            Verification::None => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Unverified(provider))),
        };
        let config = match (&options.certificate, &options.key) {
            (Some(certificate), Some(key)) => {
                builder.with_client_auth_cert(certificates(certificate)?, private_key(key)?)?
            }
            (None, None) => builder.with_no_client_auth(),
            _ => return Err(TlsError::HalfAPair),
        };
        Ok(Self(Arc::new(config)))
    }

    /// The same for who waits for a server without a runtime.
    #[cfg(feature = "test-util")]
    pub(crate) fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.0)
    }

    /// Shakes hands with the server of this name.
    pub(crate) async fn handshake(
        &self,
        host: &str,
        stream: TcpStream,
    ) -> io::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let connector = TlsConnector::from(Arc::clone(&self.0));
        connector.connect(name, stream).await
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

/// Whether a connection could not be made because of the certificate of the server.
pub(crate) fn is_untrusted(error: &io::Error) -> bool {
    let error = error.get_ref().and_then(|error| error.downcast_ref());
    matches!(error, Some(rustls::Error::InvalidCertificate(_)))
}

fn authorities(options: &TlsOptions) -> Result<RootCertStore, TlsError> {
    let path = match &options.ca {
        Some(path) => path,
        None => AUTHORITIES
            .iter()
            .map(Path::new)
            .find(|path| path.exists())
            .ok_or(TlsError::NoAuthorities)?,
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate)?;
    }
    Ok(roots)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bytes = read(path)?;
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&bytes)
        .collect::<Result<_, _>>()
        .map_err(bad_pem(path))?;
    if certificates.is_empty() {
        return Err(TlsError::NoCertificate {
            path: path.to_owned(),
        });
    }
    Ok(certificates)
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(&read(path)?).map_err(bad_pem(path))
}

fn bad_pem(path: &Path) -> impl Fn(pem::Error) -> TlsError {
    move |reason| TlsError::BadPem {
        path: path.to_owned(),
        reason,
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let unreadable = |reason| TlsError::Unreadable {
        path: path.to_owned(),
        reason,
    };
    let file = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    let taken = file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes);
    let length = taken.map_err(unreadable)?;
    if u64::try_from(length).is_ok_and(|length| length > MAX_FILE_BYTES) {
        return Err(TlsError::TooLarge {
            path: path.to_owned(),
        });
    }
    Ok(bytes)
}
