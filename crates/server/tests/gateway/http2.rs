//! HTTP/2 on both sides, without TLS by prior knowledge, as gRPC is often spoken.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use http::{HeaderMap, HeaderValue, Request, Response};
use tidegate_gateway::{GatewayBounds, UpstreamProtocol};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::harness::{LONG, RecordingUpstream, RunningGateway, config};

async fn connect(gateway: &RunningGateway) -> SendRequest<Bytes> {
    let stream = gateway.connect().await;
    let (client, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(async move {
        let _ = connection.await;
    });
    client
}

/// The status, headers, body and trailers of the response to a request with this body.
async fn ask(
    client: &SendRequest<Bytes>,
    request: Request<()>,
    body: &'static [u8],
) -> (u16, HeaderMap, Vec<u8>, Option<HeaderMap>) {
    let mut client = client.clone().ready().await.unwrap();
    let (response, mut stream) = client.send_request(request, body.is_empty()).unwrap();
    if !body.is_empty() {
        stream.send_data(Bytes::from_static(body), true).unwrap();
    }
    let response = timeout(LONG, response).await.expect("in time").unwrap();
    let (head, mut body) = response.into_parts();
    let mut bytes = Vec::new();
    while let Some(data) = body.data().await {
        let data = data.unwrap();
        body.flow_control().release_capacity(data.len()).unwrap();
        bytes.extend_from_slice(&data);
    }
    let trailers = body.trailers().await.unwrap();
    (head.status.as_u16(), head.headers, bytes, trailers)
}

/// A gRPC server in small: repeats the body and ends with a status in trailers.
async fn start_upstream() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(serve_upstream(stream));
        }
    });
    address
}

async fn serve_upstream(stream: TcpStream) {
    let mut connection = h2::server::handshake(stream).await.unwrap();
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        tokio::spawn(async move {
            let (head, mut body) = request.into_parts();
            assert_eq!(head.uri.authority().unwrap(), "shop.example");
            assert_eq!(head.headers["te"], "trailers");
            assert!(!head.headers.contains_key("host"));
            let announced = Response::builder().header("trailer", "grpc-status");
            let response = announced.body(()).unwrap();
            let mut stream = respond.send_response(response, false).unwrap();
            while let Some(Ok(data)) = body.data().await {
                body.flow_control().release_capacity(data.len()).unwrap();
                stream.send_data(data, false).unwrap();
            }
            // Those of the request come back.
            let mut trailers = body.trailers().await.unwrap().unwrap_or_default();
            trailers.insert("grpc-status", HeaderValue::from_static("0"));
            stream.send_trailers(trailers).unwrap();
        });
    }
}

#[tokio::test]
async fn clients_of_http2_reach_servers_of_http1() {
    let upstream = RecordingUpstream::ok().await;
    let gateway = RunningGateway::start(upstream.address);
    let client = connect(&gateway).await;
    let request = || {
        let request = Request::post("http://shop.example/a?b").header("cookie", "a=1");
        request.body(()).unwrap()
    };
    let (status, headers, body, _) = ask(&client, request(), b"abc").await;
    assert_eq!((status, &*body), (200, &b"ok"[..]));
    assert!(!headers.contains_key("connection"));
    let requests = upstream.requests();
    let lower = requests[0].to_ascii_lowercase();
    assert!(lower.starts_with("post /a?b http/1.1\r\n"), "{lower}");
    assert!(lower.contains("\r\nhost: shop.example\r\n"), "{lower}");
    assert!(lower.contains("\r\nvia: 2 tidegate\r\n"), "{lower}");
    assert!(lower.contains("abc"), "{lower}");
}

#[tokio::test]
async fn trailers_come_through() {
    let mut config = config(start_upstream().await);
    Arc::make_mut(&mut config.upstreams[0]).protocol = UpstreamProtocol::Http2;
    let gateway = RunningGateway::start_with(config, GatewayBounds::default());
    let client = connect(&gateway).await;
    for _ in 0..3 {
        let request = Request::post("http://shop.example/pkg.Service/Method")
            .header("te", "trailers")
            .header("content-type", "application/grpc")
            .body(())
            .unwrap();
        let (status, _, body, trailers) = ask(&client, request, b"message").await;
        assert_eq!((status, &*body), (200, &b"message"[..]));
        assert_eq!(trailers.unwrap()["grpc-status"], "0");
    }
}

#[tokio::test]
async fn trailers_of_requests_come_through_if_they_are_no_other_headers() {
    let mut config = config(start_upstream().await);
    Arc::make_mut(&mut config.upstreams[0]).protocol = UpstreamProtocol::Http2;
    let gateway = RunningGateway::start_with(config, GatewayBounds::default());
    let client = connect(&gateway).await;
    let mut client = client.ready().await.unwrap();
    let request = Request::post("http://shop.example/").header("te", "trailers");
    let (response, mut stream) = client
        .send_request(request.body(()).unwrap(), false)
        .unwrap();
    stream
        .send_data(Bytes::from_static(b"message"), false)
        .unwrap();
    let claims = [
        "x-forwarded-for",
        "cf_connecting_ip",
        "cookie",
        "authorization",
        "x-tidegate-decision",
    ];
    let sent = ["x-sum"].iter().chain(&claims);
    let sent = sent.map(|name| (name.parse().unwrap(), HeaderValue::from_static("7")));
    stream.send_trailers(sent.collect()).unwrap();
    let response = timeout(LONG, response).await.expect("in time");
    let mut body = response.unwrap().into_body();
    while let Some(data) = body.data().await {
        data.unwrap();
    }
    let trailers = body.trailers().await.unwrap().unwrap();
    assert_eq!(trailers["x-sum"], "7");
    assert_eq!(trailers["grpc-status"], "0");
    assert_eq!(trailers.len(), 2, "{trailers:?}");
}

/// HTTP/1.1 has trailers only for clients that ask for them, and of names that were announced.
#[tokio::test]
async fn a_client_of_http1_gets_the_trailers_that_it_asks_for() {
    let mut config = config(start_upstream().await);
    Arc::make_mut(&mut config.upstreams[0]).protocol = UpstreamProtocol::Http2;
    let gateway = RunningGateway::start_with(config, GatewayBounds::default());
    let request =
        b"POST / HTTP/1.1\r\nHost: shop.example\r\nTE: trailers\r\nConnection: close, TE\r\n\
        Content-Length: 5\r\n\r\nhello";
    let received = gateway.send_until_closed(request).await;
    let received = String::from_utf8(received).unwrap();
    assert!(received.starts_with("HTTP/1.1 200 OK\r\n"), "{received}");
    let end = "5\r\nhello\r\n0\r\ngrpc-status: 0\r\n\r\n";
    assert!(received.ends_with(end), "{received}");
}

#[tokio::test]
async fn a_host_that_disagrees_is_rejected() {
    let upstream = RecordingUpstream::ok().await;
    let gateway = RunningGateway::start(upstream.address);
    let client = connect(&gateway).await;
    let request = Request::get("http://shop.example/").header("host", "other.example");
    let (status, ..) = ask(&client, request.body(()).unwrap(), b"").await;
    assert_eq!(status, 400);
    assert!(upstream.requests().is_empty());
}

/// The body of the response to a GET, on a stream with a window of so many bytes, of which none are granted again.
async fn body_within(gateway: &RunningGateway, window: u32) -> h2::RecvStream {
    let stream = gateway.connect().await;
    let mut builder = h2::client::Builder::new();
    let (client, connection) = builder
        .initial_window_size(window)
        .handshake::<_, Bytes>(stream)
        .await
        .unwrap();
    tokio::spawn(async move {
        let _ = connection.await;
    });
    let mut client = client.ready().await.unwrap();
    let request = Request::post("http://shop.example/").header("te", "trailers");
    let (response, mut stream) = client
        .send_request(request.body(()).unwrap(), false)
        .unwrap();
    stream
        .send_data(Bytes::from_static(b"message"), true)
        .unwrap();
    let response = timeout(LONG, response).await.expect("in time");
    response.unwrap().into_body()
}

fn impatient() -> GatewayBounds {
    GatewayBounds {
        write_timeout: Duration::from_millis(200),
        ..GatewayBounds::default()
    }
}

/// hyper waits for a window for the first piece, so no timeout of the body would ever fire.
#[tokio::test]
async fn a_stream_without_a_window_does_not_hold_the_upstream() {
    let body = "x".repeat(1 << 20);
    let response = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let upstream = RecordingUpstream::start(response.into_bytes().leak()).await;
    let gateway = RunningGateway::start_with(config(upstream.address), impatient());
    let mut body = body_within(&gateway, 0).await;
    let data = timeout(LONG, body.data()).await.expect("a reset");
    assert!(data.unwrap().unwrap_err().is_reset());
}

/// The task of a stream ends with the last piece, and nobody could reset the stream any more.
#[tokio::test]
async fn a_stream_that_never_takes_the_last_piece_is_reset() {
    let check = async |gateway: RunningGateway| {
        let mut body = body_within(&gateway, 1).await;
        let first = timeout(LONG, body.data()).await.expect("a byte");
        assert_eq!(first.unwrap().unwrap().len(), 1);
        let rest = timeout(LONG, body.data()).await.expect("a reset");
        assert!(rest.unwrap().unwrap_err().is_reset());
    };
    let responses: [&[u8]; 2] = [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ];
    for response in responses {
        let upstream = RecordingUpstream::start(response).await;
        check(RunningGateway::start_with(
            config(upstream.address),
            impatient(),
        ))
        .await;
    }
    let mut config = config(start_upstream().await);
    Arc::make_mut(&mut config.upstreams[0]).protocol = UpstreamProtocol::Http2;
    check(RunningGateway::start_with(config, impatient())).await;
}
