//! The same over gRPC: whatever happens to Redis, every call has an answer and the status of one.

use bytes::{BufMut, Bytes, BytesMut};
use h2::client::SendRequest;
use http::Request;
use tidegate_store_redis::test_util::RedisServer;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use super::node::Node;

/// A client of one connection.
struct Caller {
    runtime: Runtime,
    requests: SendRequest<Bytes>,
}

/// What a call was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Code {
    Ok,
    OverLimit,
}

const SHOULD_RATE_LIMIT: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

// === impl Caller ===

impl Caller {
    fn connect(address: &str) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let requests = runtime.block_on(async {
            let stream = TcpStream::connect(address).await.unwrap();
            let (requests, connection) = h2::client::handshake(stream).await.unwrap();
            tokio::spawn(connection);
            requests
        });
        Self { runtime, requests }
    }

    /// Asks so many times at once, and gives how many were let through.
    fn ask_at_once(&self, key: &str, value: &str, times: usize) -> usize {
        let question = question(key, value);
        self.runtime.block_on(async {
            let calls = std::iter::repeat_n((self.requests.clone(), question), times);
            let answers = calls.map(|(requests, question)| call(requests, question));
            let answers = answers.collect::<JoinSet<_>>().join_all().await;
            answers.iter().filter(|&&code| code == Code::Ok).count()
        })
    }
}

/// Calls once. Whatever happens to Redis, the status is that of an answer.
async fn call(requests: SendRequest<Bytes>, question: Bytes) -> Code {
    let head = Request::post(format!("http://tidegate{SHOULD_RATE_LIMIT}"));
    let head = head.header("content-type", "application/grpc");
    let mut requests = requests.ready().await.unwrap();
    let request = head.header("te", "trailers").body(()).unwrap();
    let (response, mut stream) = requests.send_request(request, false).unwrap();
    stream.send_data(question, true).unwrap();
    let mut body = response.await.unwrap().into_body();
    let mut answer = BytesMut::new();
    while let Some(data) = body.data().await {
        answer.extend_from_slice(&data.unwrap());
    }
    let trailers = body.trailers().await.unwrap().expect("trailers");
    assert_eq!(trailers["grpc-status"], "0", "{trailers:?}");
    // Behind the head of the frame: the first field, a number.
    match answer[5..] {
        [0x08, 1, ..] => Code::Ok,
        [0x08, 2, ..] => Code::OverLimit,
        _ => panic!("no answer: {answer:?}"),
    }
}

/// The frame of a question with one descriptor of one entry.
fn question(key: &str, value: &str) -> Bytes {
    let entry = [field(1, key.as_bytes()), field(2, value.as_bytes())].concat();
    let descriptor = field(1, &entry);
    let message = [field(1, b"faults"), field(2, &descriptor)].concat();
    let mut frame = BytesMut::new();
    frame.put_u8(0);
    frame.put_u32(u32::try_from(message.len()).unwrap());
    frame.put_slice(&message);
    frame.freeze()
}

/// A field of bytes, fewer than 128.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u8::try_from(bytes.len()).unwrap();
    [&[number << 3 | 2, length], bytes].concat()
}

/// Breaks Redis under calls and mends it again.
fn ride_out(node: &Node, caller: &Caller, value: &str, redis: [&dyn Fn(); 2]) {
    let [break_it, mend_it] = redis;
    break_it();
    // Those on their way when it fails are answered, too.
    while !node.is_broken() {
        assert_eq!(caller.ask_at_once("ample", value, 8), 8);
    }
    assert_eq!(caller.ask_at_once("local", value, 15), 10);
    assert_eq!(caller.ask_at_once("allow", value, 5), 5);
    assert_eq!(caller.ask_at_once("deny", value, 5), 0);
    mend_it();
    node.ask_until_mended();
    assert_eq!(caller.ask_at_once("ample", value, 8), 8);
}

#[test]
fn no_fault_of_redis_is_an_error_of_a_call() {
    let redis = RedisServer::start();
    let node = Node::start(&redis.url());
    let caller = Caller::connect(&node.grpc_address());
    assert_eq!(caller.ask_at_once("local", "before", 15), 10);
    ride_out(
        &node,
        &caller,
        "killed",
        [&|| redis.kill(), &|| redis.restart()],
    );
    ride_out(
        &node,
        &caller,
        "stalled",
        [&|| redis.pause(), &|| redis.resume()],
    );
}
