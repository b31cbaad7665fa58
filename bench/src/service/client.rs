//! A client that costs as little as one can, so that a small machine is the server's.

use std::error::Error;
use std::future::poll_fn;
use std::net::SocketAddr;

use bytes::Bytes;
use h2::client::SendRequest;
use http::{HeaderValue, Method, Request, Uri, header};
use tokio::net::TcpStream;
use tokio::task::spawn_local;

use super::message::{METHOD, lets_pass};

/// What can go wrong with a call. Nothing should, and then the run is worth nothing.
pub type Fault = Box<dyn Error>;

/// What a caller is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It may pass.
    Pass,
    /// It may not.
    Refusal,
}

/// Calls over one connection, as many at a time as one likes.
#[derive(Clone)]
pub struct Client {
    requests: SendRequest<Bytes>,
    uri: Uri,
}

// === impl Client ===

impl Client {
    /// Connects; to be called within a local set.
    pub async fn connect(address: SocketAddr) -> Result<Self, Fault> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (requests, connection) = h2::client::Builder::new()
            .initial_window_size(1 << 20)
            .initial_connection_window_size(1 << 24)
            .enable_push(false)
            .handshake(stream)
            .await?;
        spawn_local(async move {
            // Whose end it is shows in the calls.
            let _ = connection.await;
        });
        let uri = format!("http://{address}{METHOD}").parse()?;
        Ok(Self { requests, uri })
    }

    /// Asks and makes sure that the answer is one that lets pass.
    pub async fn call(&mut self, question: Bytes) -> Result<(), Fault> {
        match self.ask(question).await? {
            Answer::Pass => Ok(()),
            Answer::Refusal => Err("an answer that does not let pass".into()),
        }
    }

    /// Asks and makes sure that the answer is a whole one.
    pub async fn ask(&mut self, question: Bytes) -> Result<Answer, Fault> {
        poll_fn(|context| self.requests.poll_ready(context)).await?;
        let (answer, mut body) = self.requests.send_request(self.head(), false)?;
        body.send_data(question, true)?;
        let mut body = answer.await?.into_body();
        let mut message = Bytes::new();
        while let Some(part) = body.data().await {
            message = part?;
            body.flow_control().release_capacity(message.len())?;
        }
        let trailers = body.trailers().await?.ok_or("no trailers")?;
        if trailers.get("grpc-status").map(HeaderValue::as_bytes) != Some(b"0") {
            return Err(format!("an answer with {trailers:?}").into());
        }
        if lets_pass(&message) {
            Ok(Answer::Pass)
        } else {
            Ok(Answer::Refusal)
        }
    }

    fn head(&self) -> Request<()> {
        let mut head = Request::new(());
        *head.method_mut() = Method::POST;
        *head.uri_mut() = self.uri.clone();
        let headers = head.headers_mut();
        let grpc = HeaderValue::from_static("application/grpc");
        headers.insert(header::CONTENT_TYPE, grpc);
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
        head
    }
}
