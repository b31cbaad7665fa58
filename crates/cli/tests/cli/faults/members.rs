//! The number of members that a node divides limits by when it starts without Redis.

use std::fs;
use std::path::{Path, PathBuf};

use tidegate_store_redis::test_util::{RedisServer, wait_until};

use super::page::Page;
use crate::program::scratch;
use crate::server::Server;

/// Starts a node that keeps what it needs in `folder`, with one more setting.
fn start(redis: &RedisServer, folder: &Path, variables: &[(&str, &str)]) -> Server {
    let args = ["--rules", "redis_fails.yaml", "--store", &redis.url()];
    let folder = [("TIDEGATE_STORE_FOLDER", folder.to_str().unwrap())];
    Server::start_with(&args, &[&folder[..], variables].concat())
}

/// How many of 15 requests are admitted to a limit of 10.
fn admitted(server: &Server) -> usize {
    let question =
        r#"{"domain": "faults", "descriptors": [{"entries": [{"key": "local", "value": "a"}]}]}"#;
    let is_admitted = |_: &usize| server.ask(question).starts_with("HTTP/1.1 200");
    (0..15).filter(is_admitted).count()
}

fn health(server: &Server) -> String {
    let answer = server.operate("GET /healthcheck", "");
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

fn is_unshared(server: &Server) -> bool {
    let answer = server.operate("GET /readyz", "");
    assert!(answer.contains("\"degraded\":true"), "{answer}");
    answer.contains("\"unshared\":true")
}

fn wait_for_members(server: &Server, members: u64) {
    wait_until("all members are counted", || {
        let page = Page::new(server.operate("GET /metrics", ""));
        page.sum("tidegate_members", "") == members
    });
}

/// The file of the number of members.
fn members_file(folder: &Path) -> PathBuf {
    let is_it = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with("members-") && !name.contains('.')
    };
    let files = fs::read_dir(folder).unwrap();
    let mut paths = files.map(|file| file.unwrap().path());
    paths.find(is_it).unwrap()
}

#[test]
fn a_node_that_knows_no_members_says_that_it_enforces_whole_limits() {
    let redis = RedisServer::start();
    redis.kill();
    let mut server = start(&redis, &scratch("members_unknown"), &[]);
    server.next_line("number of members unknown: this node enforces whole limits");
    assert_eq!(admitted(&server), 10);
    let expected = "degraded: number of members unknown, whole limits are enforced";
    assert_eq!(health(&server), expected);
    assert!(is_unshared(&server));
    redis.restart();
    wait_until("a heartbeat is answered", || {
        let page = Page::new(server.operate("GET /metrics", ""));
        let is_answered = page.values("tidegate_heartbeat_age_seconds", "").next();
        is_answered.is_some() && health(&server) == "OK"
    });
    redis.kill();
    wait_until("the breaker opens", || {
        admitted(&server);
        health(&server) != "OK"
    });
    assert_eq!(health(&server), "degraded");
}

#[test]
fn a_configured_number_of_members_is_the_least() {
    let redis = RedisServer::start();
    redis.kill();
    let variables = [("TIDEGATE_STORE_MEMBERS", "5")];
    let mut server = start(&redis, &scratch("members_configured"), &variables);
    server.next_line("limits are divided among 5 members");
    assert_eq!(admitted(&server), 2);
    assert_eq!(health(&server), "degraded");
    assert!(!is_unshared(&server));
}

/// A fleet that is stopped counts itself down to 1, and is four all the same.
#[test]
fn a_fleet_that_was_stopped_is_as_large_as_it_was() {
    let redis = RedisServer::start();
    let folder = scratch("members_stopped");
    let servers = [(); 4].map(|()| start(&redis, &folder, &[]));
    for server in &servers {
        wait_for_members(server, 4);
    }
    let [last, others @ ..] = servers;
    for server in others {
        assert!(server.stop("-TERM").success());
    }
    wait_for_members(&last, 1);
    assert!(last.stop("-TERM").success());
    redis.kill();
    let mut server = start(&redis, &folder, &[]);
    server.next_line("limits are divided among 4 members");
    assert_eq!(admitted(&server), 2, "of 10");
    server.stop("-TERM");
    let mut server = start(&redis, &folder, &[]);
    server.next_line("restored 1 counter from ");
    assert_eq!(admitted(&server), 0, "its share is spent");
}

#[test]
fn a_damaged_file_is_reported_and_ignored() {
    let redis = RedisServer::start();
    let folder = scratch("members_damaged");
    let server = start(&redis, &folder, &[]);
    wait_for_members(&server, 1);
    assert!(server.stop("-TERM").success());
    let path = members_file(&folder);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("heartbeat 1", "heartbeat 9")).unwrap();
    for file in fs::read_dir(&folder).unwrap() {
        let path = file.unwrap().path();
        if path
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with("standby-")
        {
            fs::write(path, "no snapshot").unwrap();
        }
    }
    redis.kill();
    let mut server = start(&redis, &folder, &[]);
    let line = server.next_line("the file is damaged");
    assert!(line.contains(path.to_str().unwrap()), "{line}");
    server.next_line("number of members unknown");
    server.next_line("counters start empty");
    assert_eq!(admitted(&server), 10);
}

#[test]
fn a_folder_that_cannot_be_written_is_a_warning() {
    let redis = RedisServer::start();
    let folder = scratch("members_folder").join("file");
    fs::write(&folder, "").unwrap();
    let mut server = start(&redis, &folder.join("inside"), &[]);
    let line = server.next_line("cannot write to the state folder");
    assert!(line.contains(" WARN "), "{line}");
    assert_eq!(admitted(&server), 10);
    assert!(server.stop("-TERM").success());
}
