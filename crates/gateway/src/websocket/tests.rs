use std::future::pending;
use std::num::{NonZeroU32, NonZeroUsize};
use std::rc::Rc;
use std::sync::Arc;

use tidegate_answer::Headers;
use tidegate_identify::{ClientAddress, Identities, Recipes};
use tidegate_limiter::{Descriptor, Entry, Limiter, LimiterConfig, Time};
use tidegate_observe::Observatory;
use tidegate_rules::{CompileOptions, Source, compile};
use tidegate_store::{Clock, EmbeddedStore, StoreConfig};
use tokio::io::{DuplexStream, duplex};
use tokio::time::Instant;

use super::*;
use crate::config::{
    AccessConfig, DenialBody, FrameLimit, GatewayBounds, GatewayConfig, WebSocketLimits, WhenOver,
};
use crate::gateway::Gateway;

type TestThread = GatewayThread<EmbeddedStore<RuntimeClock>>;

/// The store's clock goes with the paused clock of the runtime.
#[derive(Debug)]
struct RuntimeClock(Instant);

/// Bytes in flight in each direction before a writer waits.
const IN_FLIGHT: usize = 64 * 1024;

/// Three messages a minute for each user.
const RULES: &str = "
domain: gateway
descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 3}
";

const TEXT: u8 = 0x81;
const PING: u8 = 0x89;
const CLOSE: u8 = 0x88;

impl Clock for RuntimeClock {
    fn now(&self) -> Time {
        // 2026-11-15 12:00:00 UTC, the beginning of a minute.
        Time::from_micros(1_794_744_000_000_000).plus(self.0.elapsed())
    }
}

fn thread() -> TestThread {
    let config = GatewayConfig {
        domain: GatewayConfig::DOMAIN.to_owned(),
        routes: Vec::new(),
        upstreams: Vec::new(),
        descriptors: Arc::new(Recipes::default()),
        identities: Arc::new(Identities::default()),
        client_address: ClientAddress::default(),
        access: AccessConfig::default(),
        cors: None,
        own_prefix: GatewayConfig::OWN_PREFIX.to_owned(),
        denial_body: DenialBody::Problem,
    };
    let gateway = Gateway::new(config, NonZeroUsize::MIN).unwrap();
    let source = Source {
        name: "test.yaml".to_owned(),
        bytes: RULES.into(),
    };
    let Ok(compiled) = compile(&[source], &CompileOptions::default()) else {
        panic!("the rules are good");
    };
    let store = EmbeddedStore::with_clock(StoreConfig::default(), RuntimeClock(Instant::now()));
    let limiter = Limiter::new(store, compiled.rules, LimiterConfig::default());
    let observatory = Arc::<Observatory>::default();
    GatewayThread::new(
        Arc::new(gateway),
        Arc::new(limiter),
        Rc::new(observatory.recorder()),
        Headers::default(),
        GatewayBounds::default(),
    )
}

/// A limit of so many frames in ten seconds.
fn per_ten_seconds(limit: u32) -> FrameLimit {
    FrameLimit::new(NonZeroU32::new(limit).unwrap(), Duration::from_secs(10)).unwrap()
}

fn messages(limit: u32) -> WebSocketLimits {
    WebSocketLimits {
        messages: Some(per_ten_seconds(limit)),
        ..WebSocketLimits::default()
    }
}

fn session(limits: WebSocketLimits) -> WebSocketSession {
    WebSocketSession::new(&Arc::new(limits), GatewayConfig::DOMAIN, &[])
}

/// Relays between a client and an upstream that follow a script, until both are done.
async fn run<T>(
    thread: &TestThread,
    session: &WebSocketSession,
    in_flight: usize,
    script: impl AsyncFnOnce(DuplexStream, DuplexStream) -> T,
) -> (io::Result<()>, T) {
    let (client, client_end) = duplex(in_flight);
    let (upstream, upstream_end) = duplex(in_flight);
    let activity = Activity::new();
    let relay = relay(
        client_end,
        upstream_end,
        Some(session),
        thread,
        &activity,
        pending(),
    );
    tokio::join!(relay, script(client, upstream))
}

async fn read_all(stream: &mut (impl AsyncRead + Unpin)) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    bytes
}

async fn read(stream: &mut (impl AsyncRead + Unpin), n_bytes: usize) -> Vec<u8> {
    let mut bytes = vec![0; n_bytes];
    stream.read_exact(&mut bytes).await.unwrap();
    bytes
}

fn header(first: u8, mask: u8, length: usize) -> Vec<u8> {
    match length {
        ..126 => vec![first, mask | u8::try_from(length).unwrap()],
        126..65_536 => {
            let length = u16::try_from(length).unwrap().to_be_bytes();
            [&[first, mask | 0x7e], &length[..]].concat()
        }
        _ => [&[first, mask | 0x7f], &(length as u64).to_be_bytes()[..]].concat(),
    }
}

fn client_frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [0x11, 0x22, 0x33, 0x44];
    let masked = payload.iter().zip(mask.iter().cycle());
    let masked: Vec<u8> = masked.map(|(byte, mask)| byte ^ mask).collect();
    [header(first, 0x80, payload.len()), mask.to_vec(), masked].concat()
}

fn server_frame(first: u8, payload: &[u8]) -> Vec<u8> {
    [header(first, 0, payload.len()), payload.to_vec()].concat()
}

fn close_payload(code: u16, text: &str) -> Vec<u8> {
    [&code.to_be_bytes(), text.as_bytes()].concat()
}

/// Compares bytes that a client received: frames, and then a close frame.
#[track_caller]
fn check_client(received: &[u8], frames: &[u8], code: u16, text: &str) {
    let close = server_frame(CLOSE, &close_payload(code, text));
    assert_eq!(received, [frames, close.as_slice()].concat());
}

/// Compares bytes that an upstream received: frames, and then a masked close frame.
#[track_caller]
fn check_upstream(received: &[u8], frames: &[u8], code: u16, text: &str) {
    let (before, close) = received.split_at(frames.len());
    assert_eq!(before, frames);
    let payload = close_payload(code, text);
    let length = u8::try_from(payload.len()).unwrap();
    assert_eq!(close[..2], [CLOSE, 0x80 | length]);
    let mask = close[2..6].iter().cycle();
    let unmasked: Vec<u8> = close[6..].iter().zip(mask).map(|(a, b)| a ^ b).collect();
    assert_eq!(unmasked, payload);
}

/// Sends `bytes` by the client, and checks that `frames` arrive before the connection is closed on both sides.
async fn check_closed(
    limits: WebSocketLimits,
    in_flight: usize,
    bytes: &[u8],
    frames: &[u8],
    code: u16,
    text: &str,
) {
    let (thread, session) = (thread(), session(limits));
    let script = async |client: DuplexStream, mut upstream: DuplexStream| {
        let (mut client_read, mut client_write) = split(client);
        let to_upstream = async {
            client_write.write_all(bytes).await.unwrap();
            let received = read_all(&mut client_read).await;
            client_write.shutdown().await.unwrap();
            received
        };
        let from_gateway = async {
            let received = read(&mut upstream, frames.len() + 6 + 2 + text.len()).await;
            upstream.shutdown().await.unwrap();
            received
        };
        tokio::join!(to_upstream, from_gateway)
    };
    let (relayed, (by_client, by_upstream)) = run(&thread, &session, in_flight, script).await;
    relayed.unwrap();
    check_client(&by_client, &[], code, text);
    check_upstream(&by_upstream, frames, code, text);
}

const OVER: &str = "message limit reached";

#[tokio::test(start_paused = true)]
async fn a_message_over_the_limit_closes_both_sides() {
    let frames: Vec<u8> = [b"one", b"two"]
        .iter()
        .flat_map(|text| client_frame(TEXT, *text))
        .collect();
    let bytes = [frames.clone(), client_frame(0x82, &vec![7; 70_000])].concat();
    check_closed(messages(2), IN_FLIGHT, &bytes, &frames, 1008, OVER).await;
}

#[tokio::test(start_paused = true)]
async fn reads_of_one_byte_make_no_difference() {
    let frames = [
        client_frame(TEXT, b"one"),
        client_frame(PING, b""),
        client_frame(TEXT, &[7; 300]),
    ]
    .concat();
    let bytes = [frames.clone(), client_frame(TEXT, b"three")].concat();
    check_closed(messages(2), 1, &bytes, &frames, 1008, OVER).await;
}

#[tokio::test(start_paused = true)]
async fn a_fragmented_message_counts_once() {
    let frames = [
        client_frame(0x01, b"begin"),
        client_frame(0x00, b""),
        client_frame(PING, b"between"),
        client_frame(0x00, &[7; 10_000]),
        client_frame(0x80, b"end"),
    ]
    .concat();
    let bytes = [frames.clone(), client_frame(TEXT, b"next")].concat();
    check_closed(messages(1), IN_FLIGHT, &bytes, &frames, 1008, OVER).await;
}

#[tokio::test(start_paused = true)]
async fn a_compressed_message_counts_as_it_is() {
    // `Hello` by permessage-deflate (RFC 7692, section 7.2.3.1), whole and in two fragments.
    let hello = [0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00];
    let frames = [
        client_frame(0xc1, &hello),
        client_frame(0x41, &hello[..3]),
        client_frame(0x80, &hello[3..]),
    ]
    .concat();
    let bytes = [frames.clone(), client_frame(0xc1, &hello)].concat();
    check_closed(messages(2), IN_FLIGHT, &bytes, &frames, 1008, OVER).await;
}

#[tokio::test(start_paused = true)]
async fn control_frames_have_a_limit_of_their_own() {
    let limits = WebSocketLimits {
        control_frames: per_ten_seconds(3),
        ..messages(2)
    };
    let frames = [
        client_frame(PING, b""),
        client_frame(TEXT, b"one"),
        client_frame(0x8a, b""),
        client_frame(TEXT, b"two"),
        client_frame(PING, b""),
    ]
    .concat();
    let bytes = [frames.clone(), client_frame(PING, b"").repeat(10_000)].concat();
    let text = "control frame limit reached";
    check_closed(limits, IN_FLIGHT, &bytes, &frames, 1008, text).await;
}

#[tokio::test(start_paused = true)]
async fn malformed_frames_close_with_a_protocol_error() {
    let first = client_frame(TEXT, b"good");
    for bad in [
        client_frame(0x83, b""),
        client_frame(0x8b, b""),
        client_frame(0x09, b""),
        client_frame(PING, &[0; 126]),
        server_frame(TEXT, b"unmasked"),
        client_frame(0x80, b"of no message"),
        [&[0x82, 0xff, 0x80], [0; 11].as_slice()].concat(),
    ] {
        let bytes = [first.as_slice(), &bad].concat();
        let limits = WebSocketLimits::default();
        check_closed(limits, IN_FLIGHT, &bytes, &first, 1002, "protocol error").await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_rules_limit_messages_of_all_connections_of_a_key() {
    let thread = thread();
    let entries = [Entry {
        key: "user",
        value: "42",
    }];
    let limits = Arc::new(WebSocketLimits::default());
    let session = || {
        let descriptors = [Descriptor::new(&entries)];
        WebSocketSession::new(&limits, GatewayConfig::DOMAIN, &descriptors)
    };
    let message = client_frame(TEXT, b"message");
    let send_two = async |mut client: DuplexStream, mut upstream: DuplexStream| {
        client.write_all(&message.repeat(2)).await.unwrap();
        client.shutdown().await.unwrap();
        let received = read_all(&mut upstream).await;
        upstream.shutdown().await.unwrap();
        (received, read_all(&mut client).await)
    };
    // Each connection may send as much as it likes by itself, but three messages is all that the user has.
    let (_, (received, by_client)) = run(&thread, &session(), IN_FLIGHT, send_two).await;
    assert_eq!(received, message.repeat(2));
    assert_eq!(by_client, b"");
    let (_, (received, by_client)) = run(&thread, &session(), IN_FLIGHT, send_two).await;
    check_upstream(&received, &message, 1008, OVER);
    check_client(&by_client, &[], 1008, OVER);
}

const LARGE: usize = 10 * 1024 * 1024;

/// Sends a message over the limit while a frame of 10 MB is half sent by the upstream, which then goes on as `rest` does.
async fn deny_within_large_frame<T>(
    rest: impl AsyncFnOnce(DuplexStream, DuplexStream) -> T,
) -> (io::Result<()>, T) {
    let (thread, session) = (thread(), session(messages(1)));
    let script = async |mut client: DuplexStream, mut upstream: DuplexStream| {
        let begun = header(0x82, 0, LARGE);
        upstream.write_all(&begun).await.unwrap();
        upstream.write_all(&[7; 1000]).await.unwrap();
        assert_eq!(read(&mut client, begun.len()).await, begun);
        let message = client_frame(TEXT, b"message");
        client.write_all(&message.repeat(2)).await.unwrap();
        assert_eq!(read(&mut upstream, message.len()).await, message);
        let close = read(&mut upstream, 8 + OVER.len()).await;
        check_upstream(&close, &[], 1008, OVER);
        rest(client, upstream).await
    };
    run(&thread, &session, IN_FLIGHT, script).await
}

#[tokio::test(start_paused = true)]
async fn a_frame_in_flight_arrives_whole_before_the_close_frame() {
    let rest = async |mut client: DuplexStream, mut upstream: DuplexStream| {
        let send = async {
            let rest = vec![7; LARGE - 1000];
            upstream.write_all(&rest).await.unwrap();
            // A frame after the boundary has no place any more.
            let _ = upstream.write_all(&server_frame(TEXT, b"late")).await;
            upstream.shutdown().await.unwrap();
        };
        let receive = async {
            let received = read_all(&mut client).await;
            client.shutdown().await.unwrap();
            received
        };
        tokio::join!(send, receive).1
    };
    let (relayed, received) = deny_within_large_frame(rest).await;
    relayed.unwrap();
    assert!(received[..LARGE].iter().all(|byte| *byte == 7));
    check_client(&received[LARGE..], &[], 1008, OVER);
}

#[tokio::test(start_paused = true)]
async fn without_a_boundary_the_connection_is_cut_after_a_second() {
    let started = Instant::now();
    let rest = async |mut client: DuplexStream, mut upstream: DuplexStream| {
        upstream.write_all(&[7; 1000]).await.unwrap();
        let received = read_all(&mut client).await;
        drop(upstream);
        received
    };
    let (relayed, received) = deny_within_large_frame(rest).await;
    assert_eq!(relayed.unwrap_err().kind(), io::ErrorKind::TimedOut);
    assert_eq!(received, [7; 2000], "no close frame is inside the frame");
    assert_eq!(started.elapsed().as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_nothing_is_cut_after_a_second() {
    let rest = async |mut client: DuplexStream, mut upstream: DuplexStream| {
        // The gateway is gone before all of it is taken.
        let sent = upstream.write_all(&vec![7; LARGE - 1000]).await;
        assert!(sent.is_err());
        read_all(&mut client).await
    };
    let (relayed, received) = deny_within_large_frame(rest).await;
    assert_eq!(relayed.unwrap_err().kind(), io::ErrorKind::TimedOut);
    assert!(received.iter().all(|byte| *byte == 7), "no close frame");
    assert!(received.len() < LARGE);
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_reads_nothing_keeps_no_client_from_its_close_frame() {
    let (thread, session) = (thread(), session(messages(1)));
    let (mut client, client_end) = duplex(IN_FLIGHT);
    let (mut upstream, upstream_end) = duplex(16);
    let activity = Activity::new();
    let relay = relay(
        client_end,
        upstream_end,
        Some(&session),
        &thread,
        &activity,
        pending(),
    );
    let message = client_frame(TEXT, &[7; 100]);
    let script = async {
        client.write_all(&message.repeat(2)).await.unwrap();
        let received = read_all(&mut client).await;
        client.shutdown().await.unwrap();
        received
    };
    let (relayed, received) = tokio::join!(relay, script);
    relayed.unwrap();
    check_client(&received, &[], 1008, OVER);
    assert_eq!(read_all(&mut upstream).await, message[..16]);
}

fn paused(limit: u32, max_pause: Duration) -> WebSocketLimits {
    WebSocketLimits {
        when_over: WhenOver::Pause { max_pause },
        ..messages(limit)
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_stops_one_direction_only() {
    let (thread, session) = (thread(), session(paused(1, Duration::from_secs(10))));
    let started = Instant::now();
    let message = client_frame(TEXT, b"message");
    let reply = server_frame(TEXT, &vec![7; 100_000]);
    let script = async |mut client: DuplexStream, mut upstream: DuplexStream| {
        client.write_all(&message.repeat(3)).await.unwrap();
        client.shutdown().await.unwrap();
        assert_eq!(read(&mut upstream, message.len()).await, message);
        // The second message waits, and replies flow.
        let (sent, received) =
            tokio::join!(upstream.write_all(&reply), read(&mut client, reply.len()));
        sent.unwrap();
        assert_eq!(received, reply);
        assert_eq!(started.elapsed(), Duration::ZERO);
        // Windows of ten seconds let one message each through.
        assert_eq!(read(&mut upstream, message.len()).await, message);
        assert_eq!(started.elapsed().as_secs(), 10);
        assert_eq!(read_all(&mut upstream).await, message);
        assert_eq!(started.elapsed().as_secs(), 20);
    };
    let (relayed, ()) = run(&thread, &session, IN_FLIGHT, script).await;
    relayed.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_lasts_too_long_ends_in_a_close_frame() {
    let started = Instant::now();
    let message = client_frame(TEXT, b"message");
    let limits = paused(1, Duration::from_secs(2));
    check_closed(limits, IN_FLIGHT, &message.repeat(2), &message, 1008, OVER).await;
    assert_eq!(started.elapsed().as_secs(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_has_closed_is_not_closed_again() {
    let (thread, session) = (thread(), session(messages(1)));
    let close = client_frame(CLOSE, &1000_u16.to_be_bytes());
    let script = async |mut client: DuplexStream, mut upstream: DuplexStream| {
        // Frames after a close frame are not to be sent, but a client may.
        let message = client_frame(TEXT, b"message");
        let bytes = [close.clone(), message.repeat(2)].concat();
        client.write_all(&bytes).await.unwrap();
        let answer = server_frame(CLOSE, &1000_u16.to_be_bytes());
        let received = read(&mut upstream, close.len() + message.len()).await;
        assert_eq!(received, [close.clone(), message].concat());
        upstream.write_all(&answer).await.unwrap();
        upstream.shutdown().await.unwrap();
        client.shutdown().await.unwrap();
        (read_all(&mut upstream).await, read_all(&mut client).await)
    };
    let (_, (by_upstream, _)) = run(&thread, &session, IN_FLIGHT, script).await;
    assert_eq!(by_upstream, b"", "there is one close frame");
}

#[tokio::test(start_paused = true)]
async fn each_side_may_end_its_stream_first() {
    let (thread, session) = (thread(), session(messages(5)));
    let message = client_frame(TEXT, b"message");
    let reply = server_frame(TEXT, b"reply");
    let script = async |mut client: DuplexStream, mut upstream: DuplexStream| {
        client.write_all(&message).await.unwrap();
        client.shutdown().await.unwrap();
        assert_eq!(read_all(&mut upstream).await, message);
        upstream.write_all(&reply).await.unwrap();
        upstream.shutdown().await.unwrap();
        assert_eq!(read_all(&mut client).await, reply);
    };
    let (relayed, ()) = run(&thread, &session, IN_FLIGHT, script).await;
    relayed.unwrap();
}

/// Relays without limits until the drain, which begins after a second.
async fn drained<T>(
    script: impl AsyncFnOnce(DuplexStream, DuplexStream) -> T,
) -> (io::Result<()>, T) {
    let (client, client_end) = duplex(IN_FLIGHT);
    let (upstream, upstream_end) = duplex(IN_FLIGHT);
    let (thread, activity) = (thread(), Activity::new());
    let drain = sleep(Duration::from_secs(1));
    let relay = relay(client_end, upstream_end, None, &thread, &activity, drain);
    tokio::join!(relay, script(client, upstream))
}

#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_the_end_of_a_frame() {
    let message = client_frame(TEXT, &[7; 100]);
    let (relayed, ()) = drained(async |mut client, mut upstream| {
        client.write_all(&message[..50]).await.unwrap();
        upstream.write_all(b"\x81\x04ab").await.unwrap();
        sleep(Duration::from_millis(1500)).await;
        client.write_all(&message[50..]).await.unwrap();
        upstream.write_all(b"cd").await.unwrap();
        let received = read_all(&mut client).await;
        assert_eq!(received, b"\x81\x04abcd\x88\x0c\x03\xe9going away");
        drop(client);
        let received = read_all(&mut upstream).await;
        let (passed, close) = received.split_at(message.len());
        assert_eq!(passed, message);
        assert_eq!((close[..2].to_vec(), close.len()), (vec![CLOSE, 0x8c], 18));
    })
    .await;
    relayed.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_frame_that_does_not_end_is_cut_a_second_after_the_drain_began() {
    let started = Instant::now();
    let (relayed, (received, ..)) = drained(async |mut client, upstream| {
        client
            .write_all(&[TEXT, 0xfe, 1, 0, 0, 0, 0, 0, 7])
            .await
            .unwrap();
        (read_all(&mut client).await, client, upstream)
    })
    .await;
    assert_eq!(relayed.unwrap_err().kind(), io::ErrorKind::TimedOut);
    assert_eq!(received, b"\x88\x0c\x03\xe9going away");
    assert_eq!(started.elapsed(), Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn without_limits_bytes_that_are_no_frames_pass() {
    let (relayed, ()) = drained(async |mut client, mut upstream| {
        client.write_all(&[0xff; 100]).await.unwrap();
        client.shutdown().await.unwrap();
        assert_eq!(read_all(&mut upstream).await, [0xff; 100]);
        upstream.write_all(&[0xfe; 100]).await.unwrap();
        upstream.shutdown().await.unwrap();
        assert_eq!(read_all(&mut client).await, [0xfe; 100]);
    })
    .await;
    relayed.unwrap();
}
