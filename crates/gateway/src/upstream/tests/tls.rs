//! TLS to targets: roots, names, our certificate, the choice of a protocol, resumed sessions.

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, KeyUsagePurpose};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{HandshakeKind, RootCertStore, ServerConfig};

use super::super::{ForwardError, SharedUpstream, UpstreamError};
use super::bytes_server::BytesServer;
use super::{get, pool, read, run};
use crate::config::{UpstreamConfig, UpstreamProtocol, UpstreamTls};

/// Somebody who vouches for others, and a folder for the certificates.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: PathBuf,
}

impl Authority {
    fn new() -> Self {
        static NUMBERS: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let folder = format!("tidegate-upstream-tls-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        fs::create_dir_all(&folder).unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().unwrap();
        let issuer = CertifiedIssuer::self_signed(params, key).unwrap();
        Self { issuer, folder }
    }

    fn vouch_for(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        (certificate, key.serialize_pem())
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn roots(&self) -> PathBuf {
        self.write("roots.pem", &self.issuer.pem())
    }

    /// A certificate of ours.
    fn client(&self) -> (PathBuf, PathBuf) {
        let (certificate, key) = self.vouch_for("gateway.test");
        (
            self.write("client.pem", &certificate),
            self.write("client.key", &key),
        )
    }

    fn server_config(&self, name: &str, protocols: &[&str]) -> ServerConfig {
        let (certificate, key) = self.vouch_for(name);
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        let provider = Arc::new(ring::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .build()
                .unwrap();
        let chain = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![chain], key)
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|it| it.as_bytes().to_vec()).collect();
        config
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.folder));
    }
}

/// A server that wants our certificate and answers with the protocol it speaks.
struct TlsServer {
    url: String,
    handshakes: Rc<RefCell<Vec<Option<HandshakeKind>>>>,
    _server: BytesServer,
}

async fn tls_server(config: ServerConfig) -> TlsServer {
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let handshakes = Rc::new(RefCell::new(Vec::new()));
    let noted = Rc::clone(&handshakes);
    let server = BytesServer::start(move |connection| {
        let (acceptor, noted) = (acceptor.clone(), Rc::clone(&noted));
        async move {
            let Ok(stream) = acceptor.accept(connection.stream).await else {
                return;
            };
            noted.borrow_mut().push(stream.get_ref().1.handshake_kind());
            let service = service_fn(async |request: http::Request<hyper::body::Incoming>| {
                let version = format!("{:?}", request.version());
                let mut response = Response::new(Full::new(Bytes::from(version)));
                if request.uri().path() == "/close" {
                    let headers = response.headers_mut();
                    headers.insert("connection", "close".parse().unwrap());
                }
                Ok::<_, hyper::Error>(response)
            });
            let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            let stream = TokioIo::new(stream);
            if is_http2 {
                let builder = http2::Builder::new(TokioExecutor::new());
                drop(builder.serve_connection(stream, service).await);
            } else {
                let builder = http1::Builder::new();
                drop(builder.serve_connection(stream, service).await);
            }
        }
    })
    .await;
    TlsServer {
        url: server.url.replace("http://127.0.0.1", "https://localhost"),
        handshakes,
        _server: server,
    }
}

fn config(url: &str, tls: UpstreamTls, protocol: UpstreamProtocol) -> Arc<UpstreamConfig> {
    let mut config = UpstreamConfig::new("tls", vec![url.parse().unwrap()]);
    config.tls = tls;
    config.protocol = protocol;
    Arc::new(config)
}

fn check_protocol(protocol: UpstreamProtocol, offered: &[&str], expected: Result<&str, ()>) {
    run(async {
        let authority = Authority::new();
        let server = tls_server(authority.server_config("localhost", offered)).await;
        let tls = UpstreamTls {
            roots: Some(authority.roots()),
            client_certificate: Some(authority.client()),
            server_name: None,
        };
        let upstream = SharedUpstream::new(config(&server.url, tls, protocol)).unwrap();
        let pool = pool();
        for _ in 0..3 {
            let sent = pool.send(&upstream, get("/"), None).await;
            let body = match sent {
                Ok(response) => Ok(read(response).await),
                Err(ForwardError::ConnectFailed(_)) => Err(()),
                Err(error) => panic!("{error:?}"),
            };
            assert_eq!(
                body,
                expected.map(|it| Bytes::copy_from_slice(it.as_bytes()))
            );
        }
        let n_connections = upstream.counters.connections.get();
        assert_eq!(n_connections, u64::from(expected.is_ok()));
    });
}

#[test]
fn the_protocol_is_negotiated() {
    use UpstreamProtocol::{Auto, Http1, Http2};
    let both = ["h2", "http/1.1"];
    check_protocol(Auto, &both, Ok("HTTP/2.0"));
    check_protocol(Auto, &["http/1.1"], Ok("HTTP/1.1"));
    check_protocol(Auto, &[], Ok("HTTP/1.1"));
    check_protocol(Http1, &both, Ok("HTTP/1.1"));
    check_protocol(Http2, &both, Ok("HTTP/2.0"));
    check_protocol(Http2, &["http/1.1"], Err(()));
}

#[test]
fn an_upgrade_goes_over_http1_where_the_target_prefers_http2() {
    run(async {
        let authority = Authority::new();
        let config_of_server = authority.server_config("localhost", &["h2", "http/1.1"]);
        let server = tls_server(config_of_server).await;
        let tls = UpstreamTls {
            roots: Some(authority.roots()),
            client_certificate: Some(authority.client()),
            server_name: None,
        };
        let config = config(&server.url, tls, UpstreamProtocol::Auto);
        let upstream = SharedUpstream::new(config).unwrap();
        let pool = pool();
        for (is_upgrade, expected) in [(true, "HTTP/1.1"), (false, "HTTP/2.0"), (true, "HTTP/1.1")]
        {
            let mut request = get("/");
            if is_upgrade {
                let headers = request.headers_mut();
                headers.insert("connection", "upgrade".parse().unwrap());
                headers.insert("upgrade", "websocket".parse().unwrap());
            }
            let response = pool.send(&upstream, request, None).await.unwrap();
            assert_eq!(read(response).await, expected);
        }
        assert_eq!(upstream.counters.connections.get(), 2);
    });
}

#[test]
fn a_target_with_the_wrong_name_or_an_unknown_root_is_not_spoken_to() {
    run(async {
        let (authority, stranger) = (Authority::new(), Authority::new());
        let server = tls_server(authority.server_config("api.internal", &[])).await;
        let tls = |roots: &Authority, server_name: Option<&str>| UpstreamTls {
            roots: Some(roots.roots()),
            client_certificate: Some(authority.client()),
            server_name: server_name.map(str::to_owned),
        };
        for (tls, is_good) in [
            (tls(&authority, Some("api.internal")), true),
            (tls(&authority, None), false),
            (tls(&stranger, Some("api.internal")), false),
            (
                UpstreamTls {
                    client_certificate: None,
                    ..tls(&authority, Some("api.internal"))
                },
                false,
            ),
        ] {
            let config = config(&server.url, tls, UpstreamProtocol::Http1);
            let upstream = SharedUpstream::new(config).unwrap();
            let sent = pool().send(&upstream, get("/"), None).await;
            assert_eq!(sent.is_ok(), is_good, "{:?}", sent.map(drop));
        }
    });
}

#[test]
fn sessions_are_resumed() {
    run(async {
        let authority = Authority::new();
        let server = tls_server(authority.server_config("localhost", &[])).await;
        let tls = UpstreamTls {
            roots: Some(authority.roots()),
            client_certificate: Some(authority.client()),
            server_name: None,
        };
        let config = config(&server.url, tls, UpstreamProtocol::Http1);
        let upstream = SharedUpstream::new(config).unwrap();
        let pool = pool();
        for _ in 0..2 {
            let sent = pool.send(&upstream, get("/close"), None).await;
            read(sent.unwrap()).await;
        }
        let expected = [HandshakeKind::Full, HandshakeKind::Resumed].map(Some);
        assert_eq!(*server.handshakes.borrow(), expected);
    });
}

#[test]
fn a_reload_keeps_connections_unless_a_file_has_changed() {
    let authority = Authority::new();
    let tls = UpstreamTls {
        roots: Some(authority.roots()),
        client_certificate: Some(authority.client()),
        server_name: None,
    };
    let config = config("https://localhost:1", tls, UpstreamProtocol::Auto);
    let old = SharedUpstream::new(Arc::clone(&config)).unwrap();
    let reload = || SharedUpstream::replacing(Arc::clone(&config), &[Arc::clone(&old)]).unwrap();
    assert!(Arc::ptr_eq(&reload(), &old));
    // The same paths with another certificate.
    authority.client();
    assert!(!Arc::ptr_eq(&reload(), &old));
}

#[test]
fn files_that_cannot_be_used_are_faults_of_the_config() {
    let authority = Authority::new();
    let (certificate, key) = authority.client();
    let tls = |change: &dyn Fn(&mut UpstreamTls)| {
        let mut tls = UpstreamTls {
            roots: Some(authority.roots()),
            client_certificate: Some((certificate.clone(), key.clone())),
            server_name: None,
        };
        change(&mut tls);
        let config = config("https://localhost:1", tls, UpstreamProtocol::Auto);
        SharedUpstream::new(config).map(drop)
    };
    assert!(tls(&|_| {}).is_ok());
    let missing = tls(&|tls| tls.roots = Some("/nowhere/roots.pem".into()));
    assert!(matches!(missing, Err(UpstreamError::UnreadableFile { .. })));
    // To open one waits for somebody who writes.
    let fifo = authority.folder.join("fifo.pem");
    let made = Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let fifos = [
        tls(&|tls| tls.roots = Some(fifo.clone())),
        tls(&|tls| tls.client_certificate = Some((fifo.clone(), key.clone()))),
        tls(&|tls| tls.client_certificate = Some((certificate.clone(), fifo.clone()))),
    ];
    for fifo in fifos {
        assert!(matches!(fifo, Err(UpstreamError::UnreadableFile { .. })));
    }
    let large = "x".repeat(1024 * 1024 + 1);
    let large = authority.write("large.pem", &large);
    let large = tls(&|tls| tls.roots = Some(large.clone()));
    assert!(matches!(large, Err(UpstreamError::UnreadableFile { .. })));
    let empty = authority.write("empty.pem", "");
    let empty = tls(&|tls| tls.roots = Some(empty.clone()));
    assert!(matches!(empty, Err(UpstreamError::BadPem { .. })));
    let no_key =
        tls(&|tls| tls.client_certificate = Some((certificate.clone(), certificate.clone())));
    assert!(matches!(no_key, Err(UpstreamError::BadPem { .. })));
    let (other, _) = Authority::new().vouch_for("other.test");
    let other = authority.write("other.pem", &other);
    let foreign = tls(&|tls| tls.client_certificate = Some((other.clone(), key.clone())));
    assert!(matches!(
        foreign,
        Err(UpstreamError::BadClientCertificate { .. })
    ));
    let no_name = tls(&|tls| tls.server_name = Some("two words".to_owned()));
    assert!(matches!(no_name, Err(UpstreamError::BadServerName { .. })));
}
