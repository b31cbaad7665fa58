//! Requests that two servers could read differently. Either they are rejected and the connection closes, or exactly one well-formed request arrives.
//! Another request follows each of them at once: it must not come out of the first one, nor out of what is left of it.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::harness::{LONG, RecordingUpstream, RunningGateway};

/// The fate of a request.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// Answered with this status, nothing arrives, and the connection closes.
    Rejected(u16),
    /// One request arrives with this body, and the connection closes.
    Last(&'static str),
    /// One request arrives without a body, and the one behind it as another one.
    Clean,
}

/// The request that follows. Answered by itself, it closes the connection.
const NEXT: &str = "GET /next HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

async fn check(request: &str, fate: Fate) {
    let mut upstream = RecordingUpstream::ok().await;
    let gateway = RunningGateway::start(upstream.address);
    let sent = [request, NEXT].concat();
    let received = gateway.send_until_closed(sent.as_bytes()).await;
    gateway.ask_to_stop();
    gateway.ended().await;
    let requests = upstream.all_requests().await;
    let (statuses, paths): (&[u16], &[&str]) = match &fate {
        Fate::Rejected(status) => (&[*status], &[]),
        Fate::Last(_) => (&[200], &["/"]),
        Fate::Clean => (&[200, 200], &["/", "/next"]),
    };
    let found = statuses_of(&received);
    assert_eq!(found, statuses, "{request:?}");
    let its_paths: Vec<&str> = requests.iter().map(|it| well_formed(it)).collect();
    assert_eq!(its_paths, paths, "{request:?}");
    if let Fate::Last(body) = fate {
        let (_, its_body) = requests[0].split_once("\r\n\r\n").unwrap();
        assert_eq!(its_body, body, "{request:?}");
    }
}

/// The statuses of all responses among these bytes.
fn statuses_of(bytes: &[u8]) -> Vec<u16> {
    let text = String::from_utf8_lossy(bytes);
    let responses = text.split("HTTP/1.1 ").skip(1);
    responses.map(|it| it[..3].parse().unwrap()).collect()
}

/// The path of a request, which has nothing that a server could read in two ways.
fn well_formed(request: &str) -> &str {
    let (head, _) = request.split_once("\r\n\r\n").unwrap();
    let bare = head.replace("\r\n", "");
    assert!(!bare.contains(['\r', '\n', '\0']), "{request:?}");
    let (line, headers) = head.split_once("\r\n").unwrap();
    let [_, path, "HTTP/1.1"] = line.split(' ').collect::<Vec<_>>()[..] else {
        panic!("{request:?}");
    };
    let names: Vec<String> = headers
        .split("\r\n")
        .map(|line| line.split_once(": ").expect(line).0.to_ascii_lowercase())
        .collect();
    let n_lines = |name: &str| names.iter().filter(|it| *it == name).count();
    assert_eq!(n_lines("host"), 1, "{request:?}");
    let n_framings = n_lines("content-length") + n_lines("transfer-encoding");
    assert!(n_framings <= 1, "{request:?}");
    path
}

#[tokio::test]
async fn lengths_and_encodings_that_disagree() {
    let head = "POST / HTTP/1.1\r\nHost: a\r\n";
    let with = |lines: &str, body: &str| format!("{head}{lines}\r\n{body}");
    // hyper takes the encoding, drops the length and closes afterwards (RFC 9112, section 6.1).
    check(
        &with(
            "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
            "0\r\n\r\n",
        ),
        Fate::Last("0\r\n\r\n"),
    )
    .await;
    for encoding in [
        "gzip, chunked",
        "chunked, chunked",
        "xchunked",
        "identity",
        "chunked\r\nTransfer-Encoding: chunked",
    ] {
        check(
            &with(&format!("Transfer-Encoding: {encoding}\r\n"), "0\r\n\r\n"),
            Fate::Rejected(400),
        )
        .await;
    }
    check(
        &with("Content-Length: 1\r\nContent-Length: 2\r\n", "ab"),
        Fate::Rejected(400),
    )
    .await;
    check(&with("Content-Length: +1\r\n", "a"), Fate::Rejected(400)).await;
    check(&with("Content-Length: 1, 1\r\n", "a"), Fate::Rejected(400)).await;
    check(&with("Content-Length: -1\r\n", "a"), Fate::Rejected(400)).await;
    check(
        &with("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"),
        Fate::Rejected(400),
    )
    .await;
    check(
        &with("Transfer-Encoding: chunked\r\n", "zz\r\n\r\n"),
        Fate::Rejected(400),
    )
    .await;
}

#[tokio::test]
async fn heads_that_are_not_clean() {
    check(
        "GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n",
        Fate::Rejected(400),
    )
    .await;
    check(
        "GET / HTTP/1.1\r\nHost: a\r\nX : a\r\n\r\n",
        Fate::Rejected(400),
    )
    .await;
    check(
        "GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n",
        Fate::Rejected(400),
    )
    .await;
    check(
        "GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n",
        Fate::Rejected(400),
    )
    .await;
    check("GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n", Fate::Rejected(400)).await;
    check(
        "GET / HTTP/1.1\r\nHost: a\r\n: a\r\n\r\n",
        Fate::Rejected(400),
    )
    .await;
    // hyper accepts a bare LF; what arrives has none.
    check("GET / HTTP/1.1\nHost: a\n\n", Fate::Clean).await;
    check(
        "GET / HTTP/1.1\r\nHost: a\r\nX: a\nY: b\r\n\r\n",
        Fate::Clean,
    )
    .await;
}

#[tokio::test]
async fn hosts_that_disagree() {
    check("GET / HTTP/1.1\r\n\r\n", Fate::Rejected(400)).await;
    // The next request is a part of the body, and the body is not read.
    check(
        "POST / HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 10\r\n\r\n",
        Fate::Rejected(400),
    )
    .await;
    check(
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        Fate::Rejected(400),
    )
    .await;
    check(
        "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        Fate::Rejected(400),
    )
    .await;
    check(
        "GET / HTTP/1.1\r\nHost: a/../b\r\n\r\n",
        Fate::Rejected(400),
    )
    .await;
    check("GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", Fate::Rejected(400)).await;
    check(
        "GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n",
        Fate::Rejected(400),
    )
    .await;
    check("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", Fate::Clean).await;
    check(
        "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n",
        Fate::Rejected(405),
    )
    .await;
}

/// The answer to an HTTP/2 request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Http2Answer {
    /// A response of this status, by its index in the static table (RFC 7541, appendix A).
    Response(u8),
    /// The stream is reset, or the connection ends.
    Reset,
}

const STATUS_200: Http2Answer = Http2Answer::Response(0x88);
const STATUS_400: Http2Answer = Http2Answer::Response(0x8c);

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    let head = [0, 0, length, kind, flags, 0, 0, 0, stream];
    [&head, payload].concat()
}

/// `GET http://a/` with these headers, as they are written here.
fn http2_get(lines: &[(&str, &str)]) -> Vec<u8> {
    let mut block = vec![0x82, 0x86, 0x84, 0x41, 1, b'a'];
    for (name, value) in lines {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).unwrap());
            block.extend_from_slice(text.as_bytes());
        }
    }
    frame(HEADERS, END_STREAM | END_HEADERS, 1, &block)
}

async fn http2_answer(stream: &mut TcpStream) -> Http2Answer {
    loop {
        let mut head = [0; 9];
        if stream.read_exact(&mut head).await.is_err() {
            return Http2Answer::Reset;
        }
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        stream.read_exact(&mut payload).await.unwrap();
        match head[3] {
            HEADERS => return Http2Answer::Response(payload[0]),
            RST_STREAM | GOAWAY => return Http2Answer::Reset,
            DATA => panic!("data before a head"),
            _ => {}
        }
    }
}

#[tokio::test]
async fn http2_requests_that_would_be_others_in_http1() {
    let reset = Http2Answer::Reset;
    let cases: [(&[(&str, &str)], Http2Answer); 12] = [
        (&[("x", "a")], STATUS_200),
        (&[("host", "b")], STATUS_400),
        (&[("transfer-encoding", "chunked")], reset),
        (&[("connection", "close")], reset),
        (
            &[("x", "a\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\n\r\n")],
            reset,
        ),
        (&[("x", "a\nb")], reset),
        (&[("x", "a\0b")], reset),
        (&[("x\r\ny", "a")], reset),
        (&[("x: y", "a")], reset),
        (&[("X", "a")], reset),
        (&[(":path", "/next")], reset),
        (&[("content-length", "10")], reset),
    ];
    for (lines, expected) in cases {
        let mut upstream = RecordingUpstream::ok().await;
        let gateway = RunningGateway::start(upstream.address);
        let mut stream = gateway.connect().await;
        let sent = [PREFACE, &frame(SETTINGS, 0, 0, b""), &http2_get(lines)].concat();
        stream.write_all(&sent).await.unwrap();
        let answer = timeout(LONG, http2_answer(&mut stream)).await;
        assert_eq!(answer.expect("an answer"), expected, "{lines:?}");
        drop(stream);
        gateway.ask_to_stop();
        gateway.ended().await;
        let requests = upstream.all_requests().await;
        let paths: Vec<&str> = requests.iter().map(|it| well_formed(it)).collect();
        let expected_paths: &[&str] = if expected == STATUS_200 { &["/"] } else { &[] };
        assert_eq!(paths, expected_paths, "{lines:?}");
    }
}
