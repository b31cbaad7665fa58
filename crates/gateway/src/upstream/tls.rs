//! TLS to targets: roots, our certificate, the protocols offered.

use std::fmt;
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, LazyLock};

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::connect::ProtocolNeed;
use super::error::UpstreamError;
use crate::config::{TargetConfig, UpstreamConfig, UpstreamProtocol, UpstreamTls};

/// TLS to the targets of one upstream. Sessions are resumed.
#[derive(Clone)]
pub(super) struct ClientTls {
    connector: TlsConnector,
    /// Offers HTTP/1 alone.
    http1_connector: TlsConnector,
    server_name: Option<ServerName<'static>>,
    digest: u64,
}

/// The certificates and keys that the settings name.
struct TlsMaterial {
    roots: Vec<CertificateDer<'static>>,
    client: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
}

/// A bundle of every public CA takes 220 KiB.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

// === impl ClientTls ===

impl ClientTls {
    /// Reads the files that the settings name.
    pub(super) fn new(config: &UpstreamConfig) -> Result<Self, UpstreamError> {
        let settings = &config.tls;
        let material = TlsMaterial::read(settings)?;
        let digest = material.digest();
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(material.roots);
        if roots.is_empty() {
            return Err(UpstreamError::NoRoots);
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(UpstreamError::Tls)?
            .with_root_certificates(roots);
        let mut client = match (material.client, &settings.client_certificate) {
            (Some((chain, key)), Some((path, _))) => builder
                .with_client_auth_cert(chain, key)
                .map_err(|source| UpstreamError::BadClientCertificate {
                    path: path.clone(),
                    source,
                })?,
            _ => builder.with_no_client_auth(),
        };
        let protocols: &[&[u8]] = match config.protocol {
            UpstreamProtocol::Auto => &[b"h2", b"http/1.1"],
            UpstreamProtocol::Http1 => &[b"http/1.1"],
            UpstreamProtocol::Http2 => &[b"h2"],
        };
        client.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        let mut http1_client = client.clone();
        http1_client.alpn_protocols = vec![b"http/1.1".to_vec()];
        let server_name = settings.server_name.as_deref().map(server_name);
        Ok(Self {
            connector: TlsConnector::from(Arc::new(client)),
            http1_connector: TlsConnector::from(Arc::new(http1_client)),
            server_name: server_name.transpose()?,
            digest,
        })
    }

    /// True if the files held the same when they were read for both.
    pub(super) fn has_material_of(&self, other: &Self) -> bool {
        self.digest == other.digest
    }

    pub(super) fn connector(&self, need: ProtocolNeed) -> &TlsConnector {
        match need {
            ProtocolNeed::Any => &self.connector,
            ProtocolNeed::Http1 => &self.http1_connector,
        }
    }

    /// The name that the certificate of a target must have.
    pub(super) fn name_of(
        &self,
        target: &TargetConfig,
    ) -> Result<ServerName<'static>, UpstreamError> {
        match &self.server_name {
            Some(name) => Ok(name.clone()),
            None => server_name(&target.host),
        }
    }
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTls")
            .field("server_name", &self.server_name)
            .finish_non_exhaustive()
    }
}

// === impl TlsMaterial ===

impl TlsMaterial {
    fn read(settings: &UpstreamTls) -> Result<Self, UpstreamError> {
        let roots = match &settings.roots {
            Some(path) => certificates(path)?,
            // Single files that cannot be read are left out.
            None => rustls_native_certs::load_native_certs().certs,
        };
        let client = match &settings.client_certificate {
            Some((certificate, key)) => Some((certificates(certificate)?, private_key(key)?)),
            None => None,
        };
        Ok(Self { roots, client })
    }

    /// Tells one content from another. No copy of a key is kept for that.
    fn digest(&self) -> u64 {
        static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        let client = self.client.as_ref();
        KEYS.hash_one((
            &self.roots,
            client.map(|(chain, key)| (chain, key.secret_der())),
        ))
    }
}

fn server_name(name: &str) -> Result<ServerName<'static>, UpstreamError> {
    ServerName::try_from(name.to_owned()).map_err(|_| UpstreamError::BadServerName {
        name: name.to_owned(),
    })
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, UpstreamError> {
    let bytes = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match found {
        Ok(found) if found.is_empty() => Err(pem::Error::NoItemsFound),
        found => found,
    }
    .map_err(|source| UpstreamError::BadPem {
        item: "certificate",
        path: path.to_owned(),
        source,
    })
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, UpstreamError> {
    PrivateKeyDer::from_pem_slice(&read(path)?).map_err(|source| UpstreamError::BadPem {
        item: "private key",
        path: path.to_owned(),
        source,
    })
}

fn read(path: &Path) -> Result<Vec<u8>, UpstreamError> {
    read_regular(path).map_err(|source| UpstreamError::UnreadableFile {
        path: path.to_owned(),
        source,
    })
}

/// Reads a regular file. To open or to read a FIFO or a device may take for ever.
fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > MAX_FILE_BYTES) {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}
