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

#[test]
fn a_client_without_a_window_does_not_hold_a_response_of_our_own() {
    run(async {
        let client = Client::connect(patient_bounds(), pending(), 64 * 1024);
        let mut settings = h2::client::Builder::new();
        let handshake = settings.initial_window_size(0).handshake(client.stream);
        let (client, connection): (SendRequest<Bytes>, _) = handshake.await.unwrap();
        spawn_local(connection);
        let mut client = client.ready().await.unwrap();
        let request = Request::get("http://a/").body(()).unwrap();
        let (response, _) = client.send_request(request, true).unwrap();
        let mut body = response.await.unwrap().into_body();
        let began = Instant::now();
        assert!(body.data().await.unwrap().is_err(), "the stream is reset");
        assert_eq!(began.elapsed(), patient_bounds().write_timeout);
    });
}
