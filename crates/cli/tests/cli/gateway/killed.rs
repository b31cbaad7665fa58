//! A node that is killed, and another one that shares its limits.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use tidegate_store_redis::test_util::RedisServer;

use super::upstream::Upstream;
use super::{NO_OTHERS, ask};
use crate::program::{command, scratch};
use crate::server::Server;

/// In a year, whose edge no test meets. A payment is charged on entry, and refunded unless its answer is 402.
const RULES: &str = "
domain: gateway
descriptors:
  - key: card
    rate_limit: {unit: year, requests_per_unit: 3, count_status: [402], consistency: strict}
";

/// A node that shares its limits through `redis`.
fn start_node(name: &str, redis: &RedisServer, upstream: &str) -> Server {
    let folder = scratch(name);
    fs::write(folder.join("rules.yaml"), RULES).unwrap();
    let config = "rules: rules.yaml\ngateway: {descriptors: [{card: 'header:x-card'}]}\n";
    fs::write(folder.join("tidegate.yaml"), config).unwrap();
    let url = redis.url();
    let front = ["serve", "--gateway", "127.0.0.1:0", "--upstream", upstream];
    let shared = ["--config", "tidegate.yaml", "--store", &url];
    let mut command = command(&[&front[..], &NO_OTHERS, &shared].concat());
    command.current_dir(folder);
    Server::run(command)
}

/// Nobody can tell whether the payment under way was made, so its charge stays; the other node goes on from there.
#[test]
fn the_charges_of_a_killed_node_stay() {
    let redis = RedisServer::start();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let killed = start_node(
        "gateway_killed",
        &redis,
        &format!("http://{}", silent.local_addr().unwrap()),
    );
    let upstream = Upstream::start();
    let other = start_node("gateway_not_killed", &redis, &upstream.url());
    let declined = ["x-card: 1", "x-answer: 402"];
    assert_eq!(ask(&other, "POST /", &declined).status(), 402);
    let address = killed.address.clone();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut client = TcpStream::connect(address).unwrap();
            let head = "POST / HTTP/1.1\r\nHost: a\r\nx-card: 1\r\nContent-Length: 0\r\n\r\n";
            client.write_all(head.as_bytes()).unwrap();
            // It is closed without an answer.
            assert_eq!(client.read(&mut [0]).unwrap_or(0), 0);
        });
        let (mut request, _) = silent.accept().unwrap();
        request.read_exact(&mut [0]).unwrap();
        killed.stop("-KILL");
    });
    assert_eq!(ask(&other, "POST /", &declined).status(), 402);
    assert_eq!(ask(&other, "POST /", &declined).status(), 429);
    let another = ["x-card: 2", "x-answer: 402"];
    assert_eq!(ask(&other, "POST /", &another).status(), 402);
    assert_eq!(upstream.requests().len(), 3);
}
