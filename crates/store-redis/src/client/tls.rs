//! TLS to Redis, by rustls.

mod unverified;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::TcpStream;
use tokio::task::spawn_blocking;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};
use tracing::{info, warn};

use super::config::{TlsOptions, Verification, read_regular};
use unverified::Unverified;

/// Who we are to servers, and whom we trust. The files are read again for every connection.
#[derive(Clone)]
pub(crate) struct Tls(Arc<TlsFiles>);

/// The files of TLS, and what was made of them last.
struct TlsFiles {
    options: TlsOptions,
    current: Mutex<TlsMaterial>,
}

/// The content of the files, and the configuration that was made of it.
struct TlsMaterial {
    content: FileContent,
    config: Arc<ClientConfig>,
    /// The fault of files that could not be used since, which is logged once.
    fault: Option<String>,
}

/// The content of the files that the options name.
#[derive(PartialEq, Eq)]
struct FileContent {
    ca: Option<Vec<u8>>,
    certificate: Option<Vec<u8>>,
    key: Option<Vec<u8>>,
}

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
        "this system has no certificates to trust{faults}; name a file of them by `?ca=FILE` in the URL, or by the variable SSL_CERT_FILE"
    )]
    NoAuthorities {
        /// What is wrong with those that were found, or nothing.
        faults: String,
    },
    /// A certificate without its key, or a key without its certificate.
    #[error("a certificate needs its key; write both `cert=FILE` and `key=FILE` in the URL")]
    HalfAPair,
    /// What rustls does not take.
    #[error("the certificates cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
}

/// The list of every public authority takes 220 KiB.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// Faults of the system's certificates that are shown.
const MAX_FAULTS: usize = 3;

// === impl Tls ===

impl Tls {
    /// Reads the files.
    pub(crate) fn load(options: &TlsOptions) -> Result<Self, TlsError> {
        let content = FileContent::read(options)?;
        let config = Arc::new(client_config(options, &content)?);
        Ok(Self(Arc::new(TlsFiles {
            options: options.clone(),
            current: Mutex::new(TlsMaterial {
                content,
                config,
                fault: None,
            }),
        })))
    }

    /// The same for who waits for a server without a runtime.
    #[cfg(feature = "test-util")]
    pub(crate) fn config(&self) -> Arc<ClientConfig> {
        self.0.renewed()
    }

    /// Shakes hands with the server of this name.
    pub(crate) async fn handshake(
        &self,
        host: &str,
        stream: TcpStream,
    ) -> io::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let config = if self.0.options.has_files() {
            let files = Arc::clone(&self.0);
            spawn_blocking(move || files.renewed()).await?
        } else {
            self.0.current()
        };
        TlsConnector::from(config).connect(name, stream).await
    }
}

// === impl TlsFiles ===

impl TlsFiles {
    /// The configuration of the files as they are now. Bad ones never replace good ones.
    fn renewed(&self) -> Arc<ClientConfig> {
        let read = FileContent::read(&self.options);
        let mut current = lock(&self.current);
        let renewed = read.and_then(|content| {
            if content == current.content {
                return Ok(None);
            }
            let config = client_config(&self.options, &content)?;
            Ok(Some((content, Arc::new(config))))
        });
        match renewed {
            Ok(renewed) => {
                current.fault = None;
                if let Some((content, config)) = renewed {
                    info!("the TLS files for Redis have changed; new connections use them");
                    (current.content, current.config) = (content, config);
                }
            }
            Err(error) => {
                let fault = error.to_string();
                if current.fault.as_ref() != Some(&fault) {
                    warn!(%error, "the TLS files for Redis cannot be used; those before stay in use");
                    current.fault = Some(fault);
                }
            }
        }
        Arc::clone(&current.config)
    }

    fn current(&self) -> Arc<ClientConfig> {
        Arc::clone(&lock(&self.current).config)
    }
}

// === impl FileContent ===

impl FileContent {
    fn read(options: &TlsOptions) -> Result<Self, TlsError> {
        let read = |path: &Option<PathBuf>| path.as_deref().map(read).transpose();
        Ok(Self {
            ca: read(&options.ca)?,
            certificate: read(&options.certificate)?,
            key: read(&options.key)?,
        })
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

fn client_config(options: &TlsOptions, content: &FileContent) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?;
    let builder = match options.verification {
        Verification::Full => builder.with_root_certificates(authorities(options, content)?),
        Verification::None => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Unverified(provider))),
    };
    match (
        options
            .certificate
            .as_deref()
            .zip(content.certificate.as_deref()),
        options.key.as_deref().zip(content.key.as_deref()),
    ) {
        (Some((path, chain)), Some((key_path, key))) => {
            let key = PrivateKeyDer::from_pem_slice(key).map_err(bad_pem(key_path))?;
            Ok(builder.with_client_auth_cert(certificates(path, chain)?, key)?)
        }
        (None, None) => Ok(builder.with_no_client_auth()),
        _ => Err(TlsError::HalfAPair),
    }
}

/// The authorities of the file that is named, else those that the system trusts. One of the system's that is bad is left
/// out: operators name a file of their own, but not the system's.
fn authorities(options: &TlsOptions, content: &FileContent) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    if let Some((path, bytes)) = options.ca.as_deref().zip(content.ca.as_deref()) {
        for certificate in certificates(path, bytes)? {
            roots.add(certificate)?;
        }
        return Ok(roots);
    }
    let found = rustls_native_certs::load_native_certs();
    let (_, n_bad) = roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let faults = found.errors.iter().map(|fault| format!("; {fault}"));
        let faults = faults.take(MAX_FAULTS).collect();
        return Err(TlsError::NoAuthorities { faults });
    }
    if n_bad > 0 || !found.errors.is_empty() {
        let n_bad = n_bad + found.errors.len();
        warn!(
            n_bad,
            "ignored invalid certificates in the trust store of the system"
        );
    }
    Ok(roots)
}

fn certificates(path: &Path, bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(bytes)
        .collect::<Result<_, _>>()
        .map_err(bad_pem(path))?;
    if certificates.is_empty() {
        return Err(TlsError::NoCertificate {
            path: path.to_owned(),
        });
    }
    Ok(certificates)
}

fn bad_pem(path: &Path) -> impl Fn(pem::Error) -> TlsError {
    move |reason| TlsError::BadPem {
        path: path.to_owned(),
        reason,
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    read_regular(path, MAX_FILE_BYTES).map_err(|reason| match reason.kind() {
        io::ErrorKind::FileTooLarge => TlsError::TooLarge {
            path: path.to_owned(),
        },
        _ => TlsError::Unreadable {
            path: path.to_owned(),
            reason,
        },
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
