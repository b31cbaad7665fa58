//! Certificates for one test.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, KeyUsagePurpose, SanType,
};
use tidegate_server::TlsConfig;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Somebody who vouches for others.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, in PEM.
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// What a client speaks inside, and how it shows who it is.
pub(crate) struct Client<'a> {
    pub(crate) trusts: &'a Authority,
    pub(crate) identity: Option<&'a Identity>,
    pub(crate) protocol: &'static str,
}

// === impl Authority ===

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().unwrap();
        Self(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for these names: DNS names and IP addresses.
    pub(crate) fn vouch_for(&self, names: &[&str]) -> Identity {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        self.sign(&CertificateParams::new(names).unwrap())
    }

    /// A certificate for a URI.
    pub(crate) fn vouch_for_uri(&self, uri: &str) -> Identity {
        let mut params = CertificateParams::default();
        params.subject_alt_names = vec![SanType::URI(uri.try_into().unwrap())];
        self.sign(&params)
    }

    fn sign(&self, params: &CertificateParams) -> Identity {
        let key = KeyPair::generate().unwrap();
        Identity {
            certificate: params.signed_by(&key, &self.0).unwrap().pem(),
            key: key.serialize_pem(),
        }
    }

    /// A client that trusts this authority and shows no certificate.
    pub(crate) const fn client(&self) -> Client<'_> {
        Client {
            trusts: self,
            identity: None,
            protocol: "http/1.1",
        }
    }
}

// === impl Identity ===

impl Identity {
    /// Writes both files into `folder`, and gives what a listener is told of them.
    pub(crate) fn write(&self, folder: &Path) -> TlsConfig {
        let (certificate, key) = (folder.join("tls.crt"), folder.join("tls.key"));
        fs::write(&certificate, &self.certificate).unwrap();
        fs::write(&key, &self.key).unwrap();
        TlsConfig::new(certificate, key)
    }
}

// === impl Client ===

impl<'a> Client<'a> {
    pub(crate) fn with(self, identity: &'a Identity) -> Self {
        Self {
            identity: Some(identity),
            ..self
        }
    }

    pub(crate) fn speaking(self, protocol: &'static str) -> Self {
        Self { protocol, ..self }
    }

    /// Connects to a server that must be `localhost`; `None` if one of the two does not want it.
    pub(crate) async fn connect(&self, stream: TcpStream) -> Option<TlsStream<TcpStream>> {
        let connector = TlsConnector::from(Arc::new(self.config()));
        let name = ServerName::try_from("localhost").unwrap();
        connector.connect(name, stream).await.ok()
    }

    fn config(&self) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.trusts.0.der().clone()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match self.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let certificate = CertificateDer::from_pem_slice(identity.certificate.as_bytes());
                let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes());
                builder
                    .with_client_auth_cert(vec![certificate.unwrap()], key.unwrap())
                    .unwrap()
            }
        };
        config.alpn_protocols = vec![self.protocol.into()];
        config
    }
}
