//! `grpc.health.v1`.

use prost::Message;

use crate::client::{Server, framed, run};

const CHECK: &str = "/grpc.health.v1.Health/Check";
const WATCH: &str = "/grpc.health.v1.Health/Watch";

const SERVING: i32 = 1;
const NOT_SERVING: i32 = 2;
const SERVICE_UNKNOWN: i32 = 3;

#[derive(Clone, PartialEq, prost::Message)]
struct Request {
    #[prost(string, tag = "1")]
    service: String,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct Response {
    #[prost(int32, tag = "1")]
    status: i32,
}

fn ask(service: &str) -> bytes::Bytes {
    framed(&Request {
        service: service.to_owned(),
    })
}

fn read(message: &[u8]) -> i32 {
    Response::decode(&message[5..]).unwrap().status
}

#[test]
fn the_services_that_are_known_are_healthy() {
    run(async {
        let server = Server::new("domain: api");
        let mut client = server.connect().await;
        for service in [
            "",
            "ratelimit",
            "envoy.service.ratelimit.v3.RateLimitService",
        ] {
            let reply = client.call(CHECK, &ask(service)).await;
            assert_eq!(reply.status(), ("0", ""));
            assert_eq!(read(&reply.body), SERVING);
        }
        let reply = client.call(CHECK, &ask("other")).await;
        assert_eq!(reply.status(), ("5", "unknown service"));
    });
}

#[test]
fn watches_of_a_connection_are_bounded() {
    run(async {
        let server = Server::new("domain: api");
        let mut client = server.connect().await;
        let mut watches = Vec::new();
        for _ in 0..16 {
            let mut watch = client.watch(WATCH, &ask("")).await;
            assert_eq!(read(&watch.next().await.unwrap()), SERVING);
            watches.push(watch);
        }
        let reply = client.call(WATCH, &ask("")).await;
        assert_eq!(reply.status().0, "8", "{reply:?}");
        // One that ends makes room for another.
        watches.pop();
        tokio::task::yield_now().await;
        let mut watch = client.watch(WATCH, &ask("")).await;
        assert_eq!(read(&watch.next().await.unwrap()), SERVING);
    });
}

#[test]
fn who_watches_sees_the_end_come() {
    run(async {
        let server = Server::new("domain: api");
        let mut client = server.connect().await;
        let mut known = client.watch(WATCH, &ask("ratelimit")).await;
        let mut unknown = client.watch(WATCH, &ask("other")).await;
        assert_eq!(read(&known.next().await.unwrap()), SERVING);
        assert_eq!(read(&unknown.next().await.unwrap()), SERVICE_UNKNOWN);

        server.drain();
        assert_eq!(read(&known.next().await.unwrap()), NOT_SERVING);
        for mut watch in [known, unknown] {
            assert_eq!(watch.next().await, None);
            assert_eq!(watch.status().await, "14");
        }
    });
}
