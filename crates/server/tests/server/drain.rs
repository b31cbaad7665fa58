//! The end of a server: health turns, calls under way are answered, nobody new is let in.

use std::time::Duration;

use tidegate_server::{ServerConfig, Stop};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::interval;

use crate::harness::{
    ASK, LONG, QUESTION, Reply, Running, any_port, ask, grpc_answer, grpc_head, grpc_health,
    grpc_message, head, post, read_reply, try_call,
};

fn both() -> ServerConfig {
    ServerConfig {
        http: vec![any_port()],
        grpc: vec![any_port()],
        ..ServerConfig::default()
    }
}

async fn health(running: &Running) -> Reply {
    ask(&mut running.connect(0).await, &head("GET /healthcheck", 0)).await
}

/// Waits until health checks are told that the server leaves.
async fn told(running: &Running) {
    let mut looks = interval(Duration::from_millis(10));
    while health(running).await.status == 200 {
        looks.tick().await;
    }
}

/// Sends a request but for its last bytes, and waits until the server has seen it.
async fn half_a_request(running: &Running) -> TcpStream {
    let mut io = running.connect(0).await;
    let request =
        head("POST /json", QUESTION.len()).replace("\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n");
    io.write_all(request.as_bytes()).await.unwrap();
    let mut go_on = [0; 25];
    io.read_exact(&mut go_on).await.unwrap();
    assert_eq!(&go_on[..], b"HTTP/1.1 100 Continue\r\n\r\n");
    io.write_all(&QUESTION.as_bytes()[..10]).await.unwrap();
    io
}

async fn finish(io: &mut TcpStream) -> Reply {
    io.write_all(&QUESTION.as_bytes()[10..]).await.unwrap();
    read_reply(io).await.expect("an answer")
}

#[tokio::test]
async fn health_turns_at_once_and_requests_are_answered_during_the_delay() {
    let mut config = both();
    config.drain.delay = LONG * 60;
    let running = Running::start(config);
    assert_eq!(health(&running).await.body, "OK");
    assert_eq!(grpc_health(running.connect(1).await).await, 1);
    running.ask_to_stop(Stop::AfterDelay);
    told(&running).await;
    let reply = health(&running).await;
    assert_eq!((reply.status, reply.body.as_str()), (500, "draining"));
    assert_eq!(grpc_health(running.connect(1).await).await, 2);
    let reply = ask(&mut running.connect(0).await, &post()).await;
    assert_eq!(reply.status, 200);
    let status = try_call(running.connect(1).await).await;
    assert_eq!(status.as_deref(), Some("0"));
    // Asked a second time, it ends at once.
    running.ask_to_stop(Stop::AfterDelay);
    running.ended().await;
}

#[tokio::test]
async fn who_is_in_a_hurry_skips_the_delay() {
    let mut config = both();
    config.drain.delay = LONG * 60;
    let running = Running::start(config);
    running.ask_to_stop(Stop::Now);
    running.ended().await;
}

#[tokio::test]
async fn requests_under_way_and_one_more_are_answered_and_then_the_connections_close() {
    let mut config = both();
    config.drain.grace = LONG * 60;
    let running = Running::start(config);
    let mut idle = running.connect(0).await;
    assert_eq!(ask(&mut idle, &post()).await.status, 200);
    let mut half = half_a_request(&running).await;
    let address = running.tcp(0);
    running.ask_to_stop(Stop::Now);
    // Answers say it once the drain has begun; that of the half request comes after.
    let reply = loop {
        let reply = ask(&mut idle, &post()).await;
        if reply.head.contains("connection: close") {
            break reply;
        }
    };
    assert_eq!(reply.status, 200);
    assert!(TcpStream::connect(address).await.is_err());
    assert_eq!(finish(&mut half).await.status, 200);
    assert_eq!(idle.read(&mut [0]).await.unwrap(), 0);
    drop(half);
    running.ended().await;
}

#[tokio::test]
async fn an_idle_connection_is_closed_in_good_order_when_the_grace_is_over() {
    let mut config = both();
    config.drain.grace = Duration::from_millis(50);
    let running = Running::start(config);
    let mut idle = running.connect(0).await;
    assert_eq!(ask(&mut idle, &post()).await.status, 200);
    running.ask_to_stop(Stop::Now);
    assert_eq!(idle.read(&mut [0]).await.unwrap(), 0);
    // A request that was on its way is not answered any more, but it does not reset the connection either.
    idle.write_all(post().as_bytes()).await.unwrap();
    assert_eq!(idle.read(&mut [0]).await.unwrap(), 0);
    drop(idle);
    running.ended().await;
}

#[tokio::test]
async fn a_request_that_has_arrived_is_answered_though_nobody_has_read_it() {
    for _ in 0..20 {
        let running = Running::start(both());
        let mut fresh = running.connect(0).await;
        let mut used = running.connect(0).await;
        assert_eq!(ask(&mut used, &post()).await.status, 200);
        // A server that has accepted the second connection has accepted the first.
        for io in [&mut fresh, &mut used] {
            io.write_all(post().as_bytes()).await.unwrap();
        }
        running.ask_to_stop(Stop::Now);
        for io in [&mut fresh, &mut used] {
            assert_eq!(read_reply(io).await.expect("an answer").status, 200);
        }
        drop((fresh, used));
        running.ended().await;
    }
}

#[tokio::test]
async fn a_request_in_the_backlog_is_answered() {
    let running = Running::start(both());
    // Both run on this thread: the server does nothing until something is waited for here.
    let mut io = std::net::TcpStream::connect(running.tcp(0)).unwrap();
    std::io::Write::write_all(&mut io, post().as_bytes()).unwrap();
    running.ask_to_stop(Stop::Now);
    io.set_nonblocking(true).unwrap();
    let mut io = TcpStream::from_std(io).unwrap();
    assert_eq!(read_reply(&mut io).await.expect("an answer").status, 200);
    drop(io);
    running.ended().await;
}

#[tokio::test]
async fn a_grpc_call_under_way_is_answered_and_no_other_is_taken() {
    let running = Running::start(both());
    let io = running.connect(1).await;
    let (requests, connection) = h2::client::handshake(io).await.unwrap();
    let connection = tokio::spawn(connection);
    let mut requests = requests.ready().await.unwrap();
    let (response, mut stream) = requests.send_request(grpc_head(ASK), false).unwrap();
    let message = grpc_message();
    stream.send_data(message.slice(..7), false).unwrap();
    // A whole call on the same connection proves that the server has seen the half one.
    let mut requests = requests.ready().await.unwrap();
    let (whole, mut whole_stream) = requests.send_request(grpc_head(ASK), false).unwrap();
    whole_stream.send_data(message.clone(), true).unwrap();
    assert_eq!(grpc_answer(whole.await.unwrap()).await.0, "0");

    let address = running.tcp(1);
    running.ask_to_stop(Stop::Now);
    let mut looks = interval(Duration::from_millis(10));
    while TcpStream::connect(address).await.is_ok() {
        looks.tick().await;
    }
    stream.send_data(message.slice(7..), true).unwrap();
    assert_eq!(grpc_answer(response.await.unwrap()).await.0, "0");
    // The server says goodbye and closes, though the client would stay.
    connection.await.unwrap().unwrap();
    assert!(requests.ready().await.is_err());
    running.ended().await;
}

#[tokio::test]
async fn the_grace_period_bounds_how_long_a_call_may_take() {
    let mut config = both();
    config.drain.grace = Duration::from_millis(50);
    let running = Running::start(config);
    let mut half = half_a_request(&running).await;
    running.ask_to_stop(Stop::Now);
    running.ended().await;
    assert_eq!(half.read(&mut [0]).await.unwrap_or(0), 0);
}

#[tokio::test]
async fn asked_twice_it_cuts_off_what_is_under_way() {
    let mut config = both();
    config.drain.grace = LONG * 60;
    let running = Running::start(config);
    let mut half = half_a_request(&running).await;
    running.ask_to_stop(Stop::Now);
    running.ask_to_stop(Stop::Now);
    running.ended().await;
    assert_eq!(half.read(&mut [0]).await.unwrap_or(0), 0);
}

#[tokio::test]
async fn a_run_that_is_dropped_ends_everything() {
    let running = Running::start(both());
    let address = running.tcp(0);
    let mut half = half_a_request(&running).await;
    running.cancel().await;
    assert_eq!(half.read(&mut [0]).await.unwrap_or(0), 0);
    assert!(TcpStream::connect(address).await.is_err());
}
