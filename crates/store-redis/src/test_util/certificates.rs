//! Certificates of an authority that exists for one test.

use std::fs;
use std::net::TcpStream;
use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tokio_rustls::rustls::{ClientConnection, StreamOwned};

use super::Folder;
use crate::client::{Tls, TlsOptions, Verification};

/// An authority, and a certificate of it for 127.0.0.1 and localhost, as PEM files.
#[derive(Debug)]
pub struct Certificates {
    folder: Folder,
}

// === impl Certificates ===

impl Certificates {
    /// Makes them.
    pub fn new() -> Self {
        let folder = Folder::new();
        let mut authority = CertificateParams::new(Vec::new()).expect("it has no names");
        // Another than the default, which the server's certificate has: who bears the name of its issuer
        // is taken for its own.
        let name = "an authority for one test";
        authority.distinguished_name.push(DnType::CommonName, name);
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(authority, new_key());
        let authority = authority.expect("it can sign");
        let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
        let key = new_key();
        let server = CertificateParams::new(names).expect("the names are good");
        let server = server.signed_by(&key, &authority).expect("it is signed");
        let certificates = Self { folder };
        let write = |path, text| fs::write(path, text).expect("a file can be written");
        write(certificates.authority(), authority.pem());
        write(certificates.certificate(), server.pem());
        write(certificates.key(), key.serialize_pem());
        certificates
    }

    /// The file of the authority.
    pub fn authority(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// The file of the certificate.
    pub fn certificate(&self) -> PathBuf {
        self.folder.path().join("server.pem")
    }

    /// The file of its key.
    pub fn key(&self) -> PathBuf {
        self.folder.path().join("server.key")
    }

    /// What goes after the `?` of a URL for a client that trusts them, and has the same certificate.
    pub fn query(&self) -> String {
        let [ca, certificate, key] = self.files();
        format!("ca={ca}&cert={certificate}&key={key}")
    }

    /// The settings of a server that has them: it asks for one of who comes, too.
    pub(super) fn settings(&self) -> Vec<Vec<String>> {
        let names = ["tls-ca-cert-file", "tls-cert-file", "tls-key-file"];
        let settings = names.into_iter().zip(self.files());
        settings
            .map(|(name, file)| vec![name.to_owned(), file])
            .collect()
    }

    /// Encrypts a connection to a server that has them.
    pub(super) fn encrypt(&self, stream: TcpStream) -> StreamOwned<ClientConnection, TcpStream> {
        let tls = Tls::load(&TlsOptions {
            ca: Some(self.authority()),
            certificate: Some(self.certificate()),
            key: Some(self.key()),
            verification: Verification::Full,
        });
        let config = tls.expect("the files are good").config();
        let name = "127.0.0.1".try_into().expect("it is an address");
        let connection = ClientConnection::new(config, name).expect("it can begin");
        StreamOwned::new(connection, stream)
    }

    fn files(&self) -> [String; 3] {
        let files = [self.authority(), self.certificate(), self.key()];
        files.map(|path| path.display().to_string())
    }
}

impl Default for Certificates {
    fn default() -> Self {
        Self::new()
    }
}

fn new_key() -> KeyPair {
    KeyPair::generate().expect("a key can be made")
}
