//! The floor: a server on the same HTTP/2 crate that reads each request and lets it pass, on one
//! thread. What any server on this machine costs at least.

use std::error::Error;
use std::future::Future;

use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use http::{HeaderMap, HeaderValue, Request, Response, header};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{LocalSet, spawn_local};

use super::message::OK;

/// Says where it listens and serves until it is killed.
pub fn run() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    LocalSet::new().block_on(&runtime, serve())
}

async fn serve() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        spawn_quietly(connection(stream));
    }
}

async fn connection(stream: TcpStream) -> Result<(), h2::Error> {
    let mut connection = h2::server::Builder::new()
        .initial_window_size(1 << 20)
        .initial_connection_window_size(1 << 24)
        .handshake(stream)
        .await?;
    while let Some(request) = connection.accept().await {
        let (request, answer) = request?;
        spawn_quietly(call(request, answer));
    }
    Ok(())
}

async fn call(
    request: Request<RecvStream>,
    mut answer: SendResponse<Bytes>,
) -> Result<(), h2::Error> {
    let mut body = request.into_body();
    while let Some(part) = body.data().await {
        body.flow_control().release_capacity(part?.len())?;
    }
    let mut head = Response::new(());
    let grpc = HeaderValue::from_static("application/grpc");
    head.headers_mut().insert(header::CONTENT_TYPE, grpc);
    let mut body = answer.send_response(head, false)?;
    body.send_data(Bytes::from_static(OK), false)?;
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    body.send_trailers(trailers)
}

/// Faults show at the client, which ends the run.
fn spawn_quietly(task: impl Future<Output = Result<(), h2::Error>> + 'static) {
    spawn_local(async move {
        let _ = task.await;
    });
}
