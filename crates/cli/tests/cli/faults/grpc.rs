//! A caller who comes by gRPC: Envoy's service, and the health check beside it.

use bytes::{BufMut, Bytes, BytesMut};
use h2::client::SendRequest;
use http::Request;
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::task::JoinSet;

use super::node::Answer;

const SHOULD_RATE_LIMIT: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
const HEALTH: &str = "/grpc.health.v1.Health/Check";

/// So few that a server answers them in one go, within the time that a busy machine gives it at once.
const MOST_AT_ONCE: usize = 8;

/// Asks so many times, several at once, over one connection. Whatever happens to Redis, every call has the status of an
/// answer.
pub(super) fn ask(address: &str, key: &str, value: &str, times: usize) -> Vec<Answer> {
    let question = question(key, value);
    let answers = call(address, SHOULD_RATE_LIMIT, &question, times);
    answers.iter().map(|answer| read(answer)).collect()
}

/// Whether it says that it serves.
pub(super) fn is_serving(address: &str) -> bool {
    let answers = call(address, HEALTH, &[], 1);
    answers[0][..] == [0x08, 1]
}

/// Calls so many times and gives the messages that came back.
fn call(address: &str, path: &str, message: &[u8], times: usize) -> Vec<Bytes> {
    let mut frame = BytesMut::new();
    frame.put_u8(0);
    frame.put_u32(u32::try_from(message.len()).unwrap());
    frame.put_slice(message);
    let (uri, frame) = (format!("http://tidegate{path}"), frame.freeze());
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (requests, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        let mut answers = Vec::new();
        while answers.len() < times {
            let wave = MOST_AT_ONCE.min(times - answers.len());
            let calls = (0..wave).map(|_| exchange(requests.clone(), uri.clone(), frame.clone()));
            answers.extend(calls.collect::<JoinSet<_>>().join_all().await);
        }
        answers
    })
}

async fn exchange(requests: SendRequest<Bytes>, uri: String, frame: Bytes) -> Bytes {
    let head = Request::post(uri).header("content-type", "application/grpc");
    let mut requests = requests.ready().await.unwrap();
    let request = head.header("te", "trailers").body(()).unwrap();
    let (response, mut stream) = requests.send_request(request, false).unwrap();
    stream.send_data(frame, true).unwrap();
    let mut body = response.await.unwrap().into_body();
    let mut answer = BytesMut::new();
    while let Some(data) = body.data().await {
        answer.extend_from_slice(&data.unwrap());
    }
    let trailers = body.trailers().await.unwrap().expect("trailers");
    assert_eq!(trailers["grpc-status"], "0", "{trailers:?}");
    // Behind the head of its frame.
    answer.freeze().slice(5..)
}

/// A question with one descriptor of one entry.
fn question(key: &str, value: &str) -> Vec<u8> {
    let entry = [field(1, key.as_bytes()), field(2, value.as_bytes())].concat();
    let descriptor = field(1, &entry);
    [field(1, b"faults"), field(2, &descriptor)].concat()
}

/// A field of bytes, fewer than 128.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u8::try_from(bytes.len()).unwrap();
    [&[number << 3 | 2, length], bytes].concat()
}

fn read(answer: &[u8]) -> Answer {
    // The first field, a number, is the code of all limits together.
    let is_allowed = match answer {
        [0x08, 1, ..] => true,
        [0x08, 2, ..] => false,
        _ => panic!("no answer: {answer:?}"),
    };
    // In the metadata, a name and a value that is true.
    let mark = [&field(1, b"degraded")[..], &field(2, &[0x20, 1])].concat();
    Answer {
        is_allowed,
        is_degraded: answer.windows(mark.len()).any(|bytes| bytes == mark),
        remaining: None,
        retry_after: None,
    }
}
