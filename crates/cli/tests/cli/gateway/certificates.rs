//! TLS at the gateway's listener: clients that are told apart by their certificates, and a certificate of its own that changes.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::Answer;
use super::upstream::Upstream;
use crate::program::{command, scratch};
use crate::server::Server;

/// A certificate authority.
struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key.
struct Certified {
    certificate: rcgen::Certificate,
    key: KeyPair,
}

/// A client that trusts an authority.
struct Client(Arc<ClientConfig>);

// === impl Authority ===

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().unwrap();
        Self(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    /// A certificate for `localhost` with this common name.
    fn certify(&self, common_name: &str) -> Certified {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params
            .distinguished_name
            .push(DnType::CommonName, common_name);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Certified { certificate, key }
    }

    /// A client that trusts this authority, with a certificate if it has one.
    fn client(&self, certified: Option<&Certified>) -> Client {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match certified {
            None => builder.with_no_client_auth(),
            Some(Certified { certificate, key }) => {
                let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
                let chain = vec![certificate.der().clone()];
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        Client(Arc::new(config))
    }
}

// === impl Certified ===

impl Certified {
    /// Writes both files, the key last.
    fn write(&self, folder: &Path) {
        fs::write(folder.join("gateway.pem"), self.certificate.pem()).unwrap();
        fs::write(folder.join("gateway.key"), self.key.serialize_pem()).unwrap();
    }
}

// === impl Client ===

impl Client {
    /// Sends a request on a new connection, and gives the gateway's certificate too; an error if one of the two closes it.
    fn ask(&self, server: &Server) -> std::io::Result<(Answer, CertificateDer<'static>)> {
        let of_gateway = |line: &String| {
            line.split_once("https://")?
                .1
                .split(' ')
                .next()
                .map(str::to_owned)
        };
        let address = server.banner.iter().find_map(of_gateway).unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let connection = ClientConnection::new(Arc::clone(&self.0), name).unwrap();
        let mut stream = StreamOwned::new(connection, TcpStream::connect(address)?);
        stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let chain = stream.conn.peer_certificates().unwrap();
        Ok((Answer(answer), chain[0].clone().into_owned()))
    }

    fn status(&self, server: &Server) -> u16 {
        self.ask(server).unwrap().0.status()
    }
}

/// A gateway with TLS; more settings of that follow the files of its certificate.
fn start_with_tls(folder: &Path, upstream: &Upstream, more: &str) -> Server {
    let rules = "domain: gateway\n\
                 descriptors: [{key: robot, rate_limit: {unit: year, requests_per_unit: 1}}]\n";
    let config = format!(
        "rules: rules.yaml\n\
         listeners: {{gateway: {{tls: {{cert: gateway.pem, key: gateway.key{more}}}}}}}\n"
    );
    let descriptors = if more.is_empty() {
        "[]"
    } else {
        "[{robot: certificate}]"
    };
    let config = format!("{config}gateway: {{descriptors: {descriptors}}}\n");
    fs::write(folder.join("rules.yaml"), rules).unwrap();
    fs::write(folder.join("tidegate.yaml"), config).unwrap();
    // The banner ends with a line to try, which is for listeners without TLS.
    let url = upstream.url();
    let listeners = ["--gateway", "127.0.0.1:0", "--http", "127.0.0.1:0"];
    let args = [
        "serve",
        "--upstream",
        &url,
        "--grpc",
        "off",
        "--admin",
        "off",
    ];
    let mut command = command(&[&args[..], &listeners].concat());
    command.current_dir(folder);
    Server::run(command)
}

#[test]
fn clients_are_told_apart_by_their_certificates() {
    let folder = scratch("gateway_client_certificates");
    let (authority, stranger) = (Authority::new(), Authority::new());
    authority.certify("gateway").write(&folder);
    fs::write(folder.join("clients.pem"), authority.0.pem()).unwrap();
    let upstream = Upstream::start();
    let server = start_with_tls(&folder, &upstream, ", client_ca: clients.pem");
    let [ann, bob] = ["ann", "bob"].map(|name| authority.certify(name));
    let [ann, bob] = [&ann, &bob].map(|certified| authority.client(Some(certified)));
    assert_eq!(ann.status(&server), 200);
    assert_eq!(ann.status(&server), 429, "its one request");
    assert_eq!(bob.status(&server), 200);
    let forged = stranger.certify("carol");
    for client in [authority.client(None), authority.client(Some(&forged))] {
        assert!(
            client.ask(&server).is_err(),
            "no certificate of the authority"
        );
    }
    assert_eq!(upstream.requests().len(), 2);
}

#[test]
fn a_changed_certificate_of_the_gateway_comes_into_force() {
    let folder = scratch("gateway_changed_certificate");
    let authority = Authority::new();
    let [old, new] = ["old", "new"].map(|name| authority.certify(name));
    old.write(&folder);
    let upstream = Upstream::start();
    let mut server = start_with_tls(&folder, &upstream, "");
    let client = authority.client(None);
    let shown = |server: &Server| client.ask(server).unwrap().1;
    assert_eq!(shown(&server), *old.certificate.der());
    new.write(&folder);
    server.next_line("reloaded TLS certificate");
    assert_eq!(shown(&server), *new.certificate.der());
    fs::write(folder.join("gateway.pem"), "no certificate").unwrap();
    server.next_line("the previous one stays in force");
    assert_eq!(shown(&server), *new.certificate.der());
}
