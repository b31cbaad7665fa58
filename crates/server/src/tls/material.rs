//! The files of TLS, read and made into what rustls needs.

use std::fs::{self, File};
use std::hash::{BuildHasher, Hash, RandomState};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};

use super::client_name::{ClientName, NamedClients};
use crate::TlsConfig;

/// What the files held when they were read.
#[derive(Hash)]
pub(super) struct Material {
    certificate: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

/// Tells one content from another. No copy of a key is kept for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digest(u64);

/// What is wrong with the files of TLS, or with the names of clients.
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
    /// A file without what it is for.
    #[error("there is no {what} in {}; it must be written in PEM", path.display())]
    Missing {
        /// What should be in it.
        what: &'static str,
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
    /// A certificate or a key that cannot be used, or that do not belong together.
    #[error("cannot use {} with {}: {reason}", certificate.display(), key.display())]
    BadPair {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// What is wrong.
        reason: rustls::Error,
    },
    /// A certificate that cannot vouch for clients.
    #[error("cannot trust {} to vouch for clients: {reason}", path.display())]
    BadClientCa {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: VerifierBuilderError,
    },
    /// A name that no certificate can be for.
    #[error("{name:?} is no name of a client; write a DNS name, an IP address or a URI")]
    BadClientName {
        /// The name.
        name: String,
    },
    /// Names that nobody vouches for.
    #[error("names of clients are given, but no CA to vouch for them")]
    NamesWithoutCa,
}

/// A chain of certificates takes a few KiB; a bundle of every public CA takes 220 KiB.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

// === impl Material ===

impl Material {
    pub(super) fn read(files: &TlsConfig) -> Result<Self, TlsError> {
        Ok(Self {
            certificate: read(&files.certificate)?,
            key: read(&files.key)?,
            client_ca: files.client_ca.as_deref().map(read).transpose()?,
        })
    }

    pub(super) fn digest(&self) -> Digest {
        Digest::of(self)
    }

    /// What rustls is told. `files` only names them in errors.
    pub(super) fn config(
        &self,
        files: &TlsConfig,
        names: &[ClientName],
        protocols: &[&[u8]],
    ) -> Result<ServerConfig, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let chain = certificates(&self.certificate, &files.certificate)?;
        let key = private_key(&self.key, &files.key)?;
        let bad_pair = |reason| TlsError::BadPair {
            certificate: files.certificate.clone(),
            key: files.key.clone(),
            reason,
        };
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(bad_pair)?;
        let builder = match (&self.client_ca, &files.client_ca) {
            (Some(bytes), Some(path)) => {
                builder.with_client_cert_verifier(verifier(bytes, path, names, provider)?)
            }
            _ => builder.with_no_client_auth(),
        };
        let mut config = builder.with_single_cert(chain, key).map_err(bad_pair)?;
        config.alpn_protocols = protocols.iter().map(|it| it.to_vec()).collect();
        Ok(config)
    }
}

// === impl Digest ===

impl Digest {
    pub(super) fn of(content: &(impl Hash + ?Sized)) -> Self {
        static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        Self(KEYS.hash_one(content))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let unreadable = |reason| TlsError::Unreadable {
        path: path.to_owned(),
        reason,
    };
    // To open or to read a FIFO or a device may take for ever.
    if !fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(unreadable(io::Error::other("not a regular file")));
    }
    let file = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    let mut bounded = file.take(MAX_FILE_BYTES + 1);
    let length = bounded.read_to_end(&mut bytes).map_err(unreadable)?;
    if u64::try_from(length).is_ok_and(|length| length <= MAX_FILE_BYTES) {
        Ok(bytes)
    } else {
        Err(TlsError::TooLarge {
            path: path.to_owned(),
        })
    }
}

fn certificates(bytes: &[u8], path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bytes).collect();
    match certificates {
        Ok(certificates) if certificates.is_empty() => Err(missing("certificate", path)),
        Ok(certificates) => Ok(certificates),
        Err(reason) => Err(bad_pem(path, reason)),
    }
}

fn private_key(bytes: &[u8], path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    match PrivateKeyDer::from_pem_slice(bytes) {
        Err(pem::Error::NoItemsFound) => Err(missing("private key", path)),
        read => read.map_err(|reason| bad_pem(path, reason)),
    }
}

fn verifier(
    bytes: &[u8],
    path: &Path,
    names: &[ClientName],
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let bad = |reason| TlsError::BadClientCa {
        path: path.to_owned(),
        reason,
    };
    let mut roots = RootCertStore::empty();
    // What cannot be parsed is left out; if nothing is left, building the verifier fails.
    roots.add_parsable_certificates(certificates(bytes, path)?);
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(bad)?;
    Ok(if names.is_empty() {
        verifier
    } else {
        Arc::new(NamedClients::new(verifier, names.to_vec()))
    })
}

fn missing(what: &'static str, path: &Path) -> TlsError {
    TlsError::Missing {
        what,
        path: path.to_owned(),
    }
}

fn bad_pem(path: &Path, reason: pem::Error) -> TlsError {
    TlsError::BadPem {
        path: path.to_owned(),
        reason,
    }
}
