//! Tests of HTTP/2 connections.

use bytes::Bytes;
use h2::client::{Connection, SendRequest};
use http::Request;

use super::*;

/// The bounds of connections that stay open for an hour without a request.
fn patient_bounds() -> GatewayBounds {
    GatewayBounds {
        idle_timeout: 3600 * SECOND,
        ..bounds()
    }
}

async fn connect(bounds: GatewayBounds) -> (SendRequest<Bytes>, Connection<DuplexStream, Bytes>) {
    let client = Client::connect(bounds, pending(), 64 * 1024);
    h2::client::handshake(client.stream).await.unwrap()
}

async fn status(client: &SendRequest<Bytes>) -> u16 {
    let mut client = client.clone().ready().await.unwrap();
    let request = Request::get("http://a/").body(()).unwrap();
    let (response, _) = client.send_request(request, true).unwrap();
    response.await.unwrap().status().as_u16()
}

#[test]
fn an_idle_connection_outlives_the_time_for_a_head() {
    run(async {
        let (client, mut connection) = connect(patient_bounds()).await;
        let mut ping = connection.ping_pong().unwrap();
        spawn_local(connection);
        assert_eq!(status(&client).await, 404);
        // Bytes on an idle connection are not always those of a head.
        for _ in 0..20 {
            ping.ping(h2::Ping::opaque()).await.unwrap();
            sleep(SECOND).await;
        }
        assert_eq!(status(&client).await, 404);
    });
}

#[test]
fn a_client_that_answers_pings_stays() {
    run(async {
        let (client, connection) = connect(patient_bounds()).await;
        spawn_local(connection);
        assert_eq!(status(&client).await, 404);
        sleep(1800 * SECOND).await;
        assert_eq!(status(&client).await, 404);
    });
}

#[test]
fn a_client_that_is_gone_is_found_by_a_ping() {
    run(async {
        let client = Client::connect(patient_bounds(), pending(), 64 * 1024);
        let mut stream = client.stream;
        let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        let preface = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(), &settings].concat();
        stream.write_all(&preface).await.unwrap();
        let began = Instant::now();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).await.unwrap();
        let interval = patient_bounds().keepalive_interval;
        assert_eq!(began.elapsed(), 2 * interval);
    });
}

/// A response whose client grants a window of so many bytes for each stream, and no more than it releases.
async fn response_within(window: u32) -> h2::RecvStream {
    let client = Client::connect(patient_bounds(), pending(), 64 * 1024);
    let mut settings = h2::client::Builder::new();
    let handshake = settings
        .initial_window_size(window)
        .handshake(client.stream);
    let (client, connection): (SendRequest<Bytes>, _) = handshake.await.unwrap();
    spawn_local(connection);
    let mut client = client.ready().await.unwrap();
    let request = Request::get("http://a/").body(()).unwrap();
    let (response, _) = client.send_request(request, true).unwrap();
    response.await.unwrap().into_body()
}

#[test]
fn a_client_without_a_window_does_not_hold_a_response_of_our_own() {
    run(async {
        let mut body = response_within(0).await;
        let began = Instant::now();
        assert!(body.data().await.unwrap().is_err(), "the stream is reset");
        assert_eq!(began.elapsed(), patient_bounds().write_timeout);
    });
}

#[test]
fn a_client_that_never_takes_the_last_piece_does_not_hold_it() {
    run(async {
        for window in [1, 10] {
            let mut body = response_within(window).await;
            let began = Instant::now();
            assert_eq!(body.data().await.unwrap().unwrap().len(), window as usize);
            assert!(body.data().await.unwrap().is_err(), "the stream is reset");
            assert_eq!(began.elapsed(), patient_bounds().write_timeout);
        }
    });
}

#[test]
fn a_window_of_the_size_of_the_response_is_enough() {
    run(async {
        let mut whole = response_within(64 * 1024).await;
        let mut n_bytes = 0;
        while let Some(data) = whole.data().await {
            n_bytes += data.unwrap().len();
        }
        let mut body = response_within(u32::try_from(n_bytes).unwrap()).await;
        while let Some(data) = body.data().await {
            n_bytes -= data.unwrap().len();
        }
        assert_eq!(n_bytes, 0);
    });
}

#[test]
fn a_client_that_reads_slowly_gets_all() {
    run(async {
        let mut body = response_within(1).await;
        let (mut n_bytes, began) = (0, Instant::now());
        while let Some(data) = body.data().await {
            n_bytes += data.unwrap().len();
            sleep(patient_bounds().write_timeout * 9 / 10).await;
            let _ = body.flow_control().release_capacity(1);
        }
        assert!(n_bytes > 10, "{n_bytes}");
        assert!(began.elapsed() > 9 * patient_bounds().write_timeout);
    });
}
