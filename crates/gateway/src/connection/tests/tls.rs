//! Parked connections over TLS.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{CertificateParams, KeyPair};
use tidegate_identify::Peer;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep};
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::super::detect::FIRST_BYTES;
use super::super::{ClientConnection, serve_connection};
use super::{ProbedStream, SECOND, bounds, run, thread};

/// A client, and the room of the last read behind TLS at the gateway's end.
async fn connect() -> (TlsStream<DuplexStream>, Arc<AtomicUsize>) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["gateway.test".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap().der().clone();
    let provider = Arc::new(ring::default_provider());
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let (ours, theirs) = duplex(64 * 1024);
    let name = ServerName::try_from("gateway.test").unwrap();
    let (client, server) = tokio::join!(
        TlsConnector::from(Arc::new(client)).connect(name, ours),
        TlsAcceptor::from(Arc::new(server)).accept(theirs),
    );
    let last_read = Arc::<AtomicUsize>::default();
    let probed = ProbedStream {
        stream: server.unwrap(),
        last_read: Arc::clone(&last_read),
    };
    let thread = thread(bounds());
    let connection = ClientConnection {
        peer: Peer::Unix,
        is_tls: true,
        protocol: None,
        certificate: None,
    };
    spawn_local(serve_connection(
        probed,
        connection,
        Arc::default(),
        thread,
        pending(),
    ));
    (client.unwrap(), last_read)
}

#[test]
fn a_connection_over_tls_is_parked_and_serves_on() {
    run(async {
        let (mut client, last_read) = connect().await;
        let is_parked = || last_read.load(Ordering::Relaxed) == FIRST_BYTES;
        // One record holds more than a parked read takes.
        let padding = "x".repeat(5_000);
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\nX-Padding: {padding}\r\n\r\n");
        for _ in 0..3 {
            sleep(5 * SECOND).await;
            assert!(is_parked());
            client.write_all(head.as_bytes()).await.unwrap();
            let mut response = [0; 12];
            client.read_exact(&mut response).await.unwrap();
            assert_eq!(&response, b"HTTP/1.1 404");
            // The rest of the response is in the same record.
            assert!(client.read(&mut [0; 1024]).await.unwrap() > 0);
        }
        sleep(SECOND).await;
        assert!(is_parked());
        let parked_at = Instant::now();
        // The end is announced, so that nobody takes it for a cut.
        assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
        let closed_after = parked_at.elapsed();
        assert!(closed_after > 58 * SECOND && closed_after <= 60 * SECOND);
    });
}

#[test]
fn a_client_that_leaves_with_its_body_unread_ends_the_connection() {
    run(async {
        let (mut client, _) = connect().await;
        let head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n";
        client.write_all(head).await.unwrap();
        let mut response = [0; 12];
        client.read_exact(&mut response).await.unwrap();
        assert_eq!(&response, b"HTTP/1.1 404");
        // The gateway discards what it sends, but not for ever.
        let began = Instant::now();
        while client.write_all(&[b'x'; 1000]).await.is_ok() {
            sleep(SECOND / 10).await;
        }
        assert!(began.elapsed() < 5 * SECOND);
    });
}
