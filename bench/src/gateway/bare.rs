//! A bare hyper server, the floor of a connection's memory: hyper reads the head within a time, and the answer is 1 KB.

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::rt::{Read, Write};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::contenders::{ANSWER, Certificate, Protocol};
use super::program::{Draft, Program};

/// The word that makes this program the bare server.
pub const BARE_SERVER: &str = "bare-server";

/// Longer than any measurement.
const HEAD_TIMEOUT: Duration = Duration::from_hours(1);

static BODY: [u8; ANSWER] = [b'x'; ANSWER];

/// The command line of the bare server.
#[derive(Debug)]
pub struct BareServer {
    address: SocketAddr,
    protocol: Protocol,
    /// The folder of certificate and key.
    folder: PathBuf,
}

// === impl BareServer ===

impl BareServer {
    /// Parses the words that [`start`] passes on.
    pub fn parse(words: &[String]) -> Result<Self, String> {
        let [address, protocol, folder] = words else {
            return Err(format!("{BARE_SERVER} needs address, protocol and folder"));
        };
        let address = address.parse();
        Ok(Self {
            address: address.map_err(|error| format!("{error}"))?,
            protocol: match protocol.as_str() {
                "Http1" => Protocol::Http1,
                "Http2" => Protocol::Http2,
                "Tls" => Protocol::Tls,
                _ => return Err(format!("unknown protocol {protocol}")),
            },
            folder: folder.into(),
        })
    }

    /// Serves on one thread until it is killed.
    pub fn run(self) -> Result<(), Box<dyn Error>> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(self.serve())
    }

    async fn serve(self) -> Result<(), Box<dyn Error>> {
        let acceptor = match self.protocol {
            Protocol::Tls => Some(acceptor(&self.folder)?),
            Protocol::Http1 | Protocol::Http2 => None,
        };
        let listener = TcpListener::bind(self.address).await?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let (acceptor, protocol) = (acceptor.clone(), self.protocol);
            tokio::spawn(async move {
                // Faults show at the client, which ends the run.
                if let Some(acceptor) = acceptor {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        answer(TokioIo::new(stream), protocol).await;
                    }
                } else {
                    answer(TokioIo::new(stream), protocol).await;
                }
            });
        }
    }
}

/// Starts this program as the bare server.
pub fn start(protocol: Protocol, certificate: &Certificate) -> Result<Program, Box<dyn Error>> {
    let draft = Draft::new()?;
    draft.write("chain.pem", &certificate.chain)?;
    draft.write("key.pem", &certificate.key)?;
    let mut command = std::process::Command::new(std::env::current_exe()?);
    command
        .args([BARE_SERVER, &draft.address.to_string()])
        .arg(format!("{protocol:?}"))
        .arg(draft.folder());
    draft.start(command)
}

async fn answer<I: Read + Write + Unpin + Send + 'static>(io: I, protocol: Protocol) {
    let service = service_fn(async |_: Request<Incoming>| {
        Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(&BODY))))
    });
    let _ = match protocol {
        Protocol::Http1 | Protocol::Tls => {
            http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .serve_connection(io, service)
                .await
        }
        Protocol::Http2 => {
            http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .serve_connection(io, service)
                .await
        }
    };
}

fn acceptor(folder: &Path) -> Result<TlsAcceptor, Box<dyn Error>> {
    let chain =
        CertificateDer::pem_file_iter(folder.join("chain.pem"))?.collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_file(folder.join("key.pem"))?;
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
