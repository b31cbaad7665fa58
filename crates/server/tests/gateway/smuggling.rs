//! Requests that two servers could read differently: either they are rejected and the connection closes, or exactly one well-formed
//! request arrives.

use crate::harness::{RecordingUpstream, RunningGateway};

/// The fate of a request.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// Answered with this status, nothing arrives, and the connection closes.
    Rejected(u16),
    /// One request arrives, with this body.
    One(&'static str),
}

/// A second request that must not come out of the first one.
const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";

async fn check(request: &str, fate: Fate) {
    let upstream = RecordingUpstream::ok().await;
    let gateway = RunningGateway::start(upstream.address);
    let received = gateway.send(request.as_bytes()).await;
    let requests = upstream.requests();
    match fate {
        Fate::Rejected(status) => {
            let received = received.unwrap_or_else(|| panic!("an answer to {request:?}"));
            assert_eq!(received.status, status, "{request:?}");
            assert!(requests.is_empty(), "{request:?} became {requests:?}");
        }
        Fate::One(body) => {
            assert_eq!(received.map(|it| it.status), Some(200), "{request:?}");
            let [one] = &requests[..] else {
                panic!("{request:?} became {requests:?}");
            };
            let (head, its_body) = one.split_once("\r\n\r\n").unwrap();
            assert_eq!(its_body, body, "{request:?} became {one:?}");
            let bare = head.replace("\r\n", "");
            assert!(!bare.contains(['\r', '\n', '\0']), "{one:?}");
            let n_hosts = head
                .lines()
                .filter(|line| line.to_ascii_lowercase().starts_with("host:"));
            assert_eq!(n_hosts.count(), 1, "{one:?}");
        }
    }
}

#[tokio::test]
async fn lengths_and_encodings_that_disagree() {
    let head = "POST / HTTP/1.1\r\nHost: a\r\n";
    let with = |lines: &str, body: &str| format!("{head}{lines}\r\n{body}");
    // hyper takes the encoding, drops the length and closes afterwards (RFC 9112, section 6.1).
    check(
        &with(
            "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
            &format!("0\r\n\r\n{SMUGGLED}"),
        ),
        Fate::One("0\r\n\r\n"),
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
    check("GET / HTTP/1.1\nHost: a\n\n", Fate::One("")).await;
    check(
        "GET / HTTP/1.1\r\nHost: a\r\nX: a\nY: b\r\n\r\n",
        Fate::One(""),
    )
    .await;
}

#[tokio::test]
async fn hosts_that_disagree() {
    check("GET / HTTP/1.1\r\n\r\n", Fate::Rejected(400)).await;
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
    check("GET http://a/x HTTP/1.1\r\nHost: a\r\n\r\n", Fate::One("")).await;
    check(
        "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n",
        Fate::Rejected(405),
    )
    .await;
}
