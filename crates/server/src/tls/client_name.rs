//! Which clients a CA vouches for are let in, by the names in their certificates.

use std::sync::Arc;

use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme,
    client::danger::HandshakeSignatureValid,
};
use webpki::EndEntityCert;

use super::TlsError;
use crate::TlsConfig;

/// A name that a client's certificate may be for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ClientName {
    /// A URI, such as a SPIFFE identity; it must be the same, letter for letter.
    Uri(String),
    /// A DNS name or an IP address; a certificate for `*.example.com` covers `a.example.com`.
    Host(ServerName<'static>),
}

/// Lets in clients that a CA vouches for, if their certificate is for one of the names.
#[derive(Debug)]
pub(super) struct NamedClients {
    vouched: Arc<dyn ClientCertVerifier>,
    names: Vec<ClientName>,
}

/// The names of clients as they are written.
pub(super) fn parse(config: &TlsConfig) -> Result<Vec<ClientName>, TlsError> {
    if config.client_ca.is_none() && !config.client_names.is_empty() {
        return Err(TlsError::NamesWithoutCa);
    }
    let names = config.client_names.iter();
    names.map(|name| ClientName::parse(name)).collect()
}

// === impl ClientName ===

impl ClientName {
    fn parse(name: &str) -> Result<Self, TlsError> {
        if name.contains("://") {
            return Ok(Self::Uri(name.to_owned()));
        }
        let host = ServerName::try_from(name.to_owned());
        host.map(Self::Host).map_err(|_| TlsError::BadClientName {
            name: name.to_owned(),
        })
    }

    fn is_in(&self, certificate: &EndEntityCert<'_>) -> bool {
        match self {
            Self::Uri(uri) => certificate.valid_uri_names().any(|name| name == uri),
            Self::Host(host) => certificate.verify_is_valid_for_subject_name(host).is_ok(),
        }
    }
}

// === impl NamedClients ===

impl NamedClients {
    pub(super) const fn new(vouched: Arc<dyn ClientCertVerifier>, names: Vec<ClientName>) -> Self {
        Self { vouched, names }
    }
}

impl ClientCertVerifier for NamedClients {
    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self
            .vouched
            .verify_client_cert(end_entity, intermediates, now)?;
        let certificate = EndEntityCert::try_from(end_entity)
            .map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
        if self.names.iter().any(|name| name.is_in(&certificate)) {
            Ok(verified)
        } else {
            Err(Error::InvalidCertificate(CertificateError::NotValidForName))
        }
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.vouched.root_hint_subjects()
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.vouched
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.vouched
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.vouched.supported_verify_schemes()
    }
}
