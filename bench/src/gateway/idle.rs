//! The memory of an idle connection after one request, beside bare hyper's.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use http::Request;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::contenders::{ANSWER, Certificate, Protocol, tidegate_with};
use super::program::Program;
use super::{bare, http1};

/// Connections before memory is looked at, so that what a server allocates once does not count.
const FIRST: usize = 100;

/// Connections that are opened and kept.
#[derive(Clone, Copy)]
pub struct IdleConnections {
    /// Their number.
    pub count: usize,
    /// Servers that are measured one after the other; each is a new process.
    pub rounds: usize,
}

/// Kilobytes of a connection, by round.
pub struct IdleMemory {
    /// Of bare hyper.
    pub bare: Vec<f64>,
    /// Of tidegate.
    pub tidegate: Vec<f64>,
}

/// A connection that stays open.
enum Connection {
    Http1(#[expect(dead_code, reason = "it is kept open")] TcpStream),
    Http2(#[expect(dead_code, reason = "it is kept open")] h2::client::SendRequest<bytes::Bytes>),
    Tls(#[expect(dead_code, reason = "it is kept open")] Box<TlsStream<TcpStream>>),
}

/// A client that trusts one certificate.
struct Client {
    protocol: Protocol,
    connector: TlsConnector,
}

// === impl IdleConnections ===

impl IdleConnections {
    /// Measures connections of one protocol.
    pub fn measure(
        self,
        protocol: Protocol,
        upstream: SocketAddr,
        certificate: &Certificate,
    ) -> Result<IdleMemory, Box<dyn Error>> {
        let client = Client::new(protocol, certificate)?;
        let given = (protocol == Protocol::Tls).then_some(certificate);
        let (mut bare, mut tidegate) = (Vec::new(), Vec::new());
        for _ in 0..self.rounds {
            bare.push(self.kilobytes(&client, &bare::start(protocol, certificate)?)?);
            tidegate.push(self.kilobytes(&client, &tidegate_with(upstream, given)?)?);
        }
        Ok(IdleMemory { bare, tidegate })
    }

    fn kilobytes(self, client: &Client, server: &Program) -> Result<f64, Box<dyn Error>> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let first = client.connect(server.address, FIRST).await?;
            let before = server.resident_bytes()?;
            let others = client.connect(server.address, self.count).await?;
            let after = server.resident_bytes()?;
            drop((first, others));
            Ok((after - before) / self.count as f64 / 1e3)
        })
    }
}

// === impl IdleMemory ===

impl IdleMemory {
    /// Kilobytes that tidegate takes more than bare hyper.
    pub fn added(&self) -> Vec<f64> {
        let pairs = self.tidegate.iter().zip(&self.bare);
        pairs.map(|(tidegate, bare)| tidegate - bare).collect()
    }
}

// === impl Certificate ===

impl Certificate {
    /// A certificate of 127.0.0.1 that signs itself.
    pub fn generate() -> Result<Self, Box<dyn Error>> {
        let names = vec![Ipv4Addr::LOCALHOST.to_string()];
        let made = rcgen::generate_simple_self_signed(names)?;
        Ok(Self {
            chain: made.cert.pem(),
            key: made.signing_key.serialize_pem(),
        })
    }
}

// === impl Client ===

impl Client {
    fn new(protocol: Protocol, certificate: &Certificate) -> Result<Self, Box<dyn Error>> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(
            certificate.chain.as_bytes(),
        )?)?;
        let config = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self {
            protocol,
            connector: TlsConnector::from(Arc::new(config)),
        })
    }

    /// Opens connections one after the other, each with one answered GET, so that the upstream's connections stay few.
    async fn connect(
        &self,
        address: SocketAddr,
        count: usize,
    ) -> Result<Vec<Connection>, Box<dyn Error>> {
        let mut connections = Vec::with_capacity(count);
        for _ in 0..count {
            let mut stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            connections.push(match self.protocol {
                Protocol::Http1 => {
                    http1::get(&mut stream, 0).await?;
                    Connection::Http1(stream)
                }
                Protocol::Tls => {
                    let name = ServerName::from(address.ip());
                    let mut stream = self.connector.connect(name, stream).await?;
                    http1::get(&mut stream, 0).await?;
                    Connection::Tls(Box::new(stream))
                }
                Protocol::Http2 => Connection::Http2(get_http2(stream, address).await?),
            });
        }
        Ok(connections)
    }
}

async fn get_http2(
    stream: TcpStream,
    address: SocketAddr,
) -> Result<h2::client::SendRequest<bytes::Bytes>, Box<dyn Error>> {
    let (client, connection) = h2::client::handshake(stream).await?;
    tokio::spawn(connection);
    let mut client = client.ready().await?;
    let request = Request::get(format!("http://{address}/api/things?page=2")).body(())?;
    let (answer, _) = client.send_request(request, true)?;
    let answer = answer.await?;
    if answer.status() != http::StatusCode::OK {
        return Err(format!("not the upstream's answer: {}", answer.status()).into());
    }
    let mut body = answer.into_body();
    let mut n_bytes = 0;
    while let Some(piece) = body.data().await {
        let piece = piece?;
        body.flow_control().release_capacity(piece.len())?;
        n_bytes += piece.len();
    }
    if n_bytes == ANSWER {
        Ok(client)
    } else {
        Err(format!("an answer of {n_bytes} bytes").into())
    }
}
