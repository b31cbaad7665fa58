//! Servers that share limits through a real Redis.

mod decisions;
mod eventual;
mod postpaid;
mod regions;
mod split;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use tidegate_store_redis::test_util::{Certificates, Listening, RedisServer, ServerOptions};

use crate::faults::page::Page;
use crate::program::{command, scratch};
use crate::server::{Server, USER, value};

/// A connection to Redis on which one thing is asked at a time.
struct Desk(BufReader<TcpStream>);

/// No decision is to fail because the machine is busy.
const PATIENT: [(&str, &str); 2] = [
    ("TIDEGATE_STORE_TIMEOUT", "30s"),
    ("TIDEGATE_STORE_MIN_TIMEOUT", "30s"),
];

// === impl Desk ===

impl Desk {
    fn open(redis: &RedisServer) -> Self {
        Self(BufReader::new(TcpStream::connect(redis.address()).unwrap()))
    }

    /// Sends a command as it is typed, and gives so many numbers of the answer.
    fn numbers<const N: usize>(&mut self, command: &str) -> [u64; N] {
        let line = format!("{command}\r\n");
        self.0.get_mut().write_all(line.as_bytes()).unwrap();
        [(); N].map(|()| {
            loop {
                let mut line = String::new();
                self.0.read_line(&mut line).unwrap();
                // What says how long the answer or its next part is, is none.
                if !line.starts_with(['*', '$']) {
                    return line.trim().trim_start_matches(':').parse().unwrap();
                }
            }
        })
    }

    /// What second it is, by Redis' clock.
    fn second(&mut self) -> u64 {
        let [second, _] = self.numbers("TIME");
        second
    }
}

/// The sum of the series of one metric of a server that have `label`.
fn sum(server: &Server, name: &str, label: &str) -> u64 {
    Page::new(server.operate("GET /metrics", "")).sum(name, label)
}

/// A file of rules that give each user of the shop so many requests in a year, whose edge no test meets.
fn rules(folder: &str, limit: u32, fields: &str) -> PathBuf {
    let path = scratch(folder).join("rules.yaml");
    write_rules(&path, limit, fields);
    path
}

fn write_rules(path: &Path, limit: u32, fields: &str) {
    let limit = format!("{{unit: year, requests_per_unit: {limit}{fields}}}");
    let text = format!("domain: shop\ndescriptors: [{{key: user_id, rate_limit: {limit}}}]\n");
    fs::write(path, text).unwrap();
}

fn start(redis: &RedisServer, rules: &Path, consistency: &str) -> Server {
    let (url, rules) = (redis.url(), rules.to_str().unwrap());
    let args = ["--store", &url, "--consistency", consistency];
    Server::start_with(&[&args[..], &["--rules", rules]].concat(), &PATIENT)
}

fn is_admitted(server: &Server) -> bool {
    let answer = server.ask(USER);
    let status = answer.split(' ').nth(1);
    assert!(matches!(status, Some("200" | "429")), "{answer}");
    status == Some("200")
}

/// How many of so many requests are admitted.
fn admitted(server: &Server, requests: usize) -> usize {
    (0..requests).filter(|_| is_admitted(server)).count()
}

/// How many are admitted by both at the same time.
fn admitted_together(servers: [&Server; 2], requests: usize) -> usize {
    thread::scope(|scope| {
        let asking = servers.map(|server| scope.spawn(move || admitted(server, requests)));
        asking.map(|asking| asking.join().unwrap()).iter().sum()
    })
}

#[test]
fn two_servers_admit_exactly_the_limit_together() {
    let redis = RedisServer::start();
    let rules = rules("shared_strict", 50, "");
    let servers = [(); 2].map(|()| start(&redis, &rules, "strict"));
    let counters = value(&servers[0].banner, "counters");
    assert!(counters.contains(&redis.url()), "{counters}");
    assert!(counters.contains("strict"), "{counters}");
    let [one, other] = &servers;
    assert_eq!(admitted_together([one, other], 40), 50);
    // A third that comes later knows of it.
    assert_eq!(admitted(&start(&redis, &rules, "strict"), 5), 0);
}

#[test]
fn leases_are_never_more_than_the_limit_and_come_back() {
    let redis = RedisServer::start();
    let rules = rules("shared_leased", 200, "");
    let [one, other] = [(); 2].map(|()| start(&redis, &rules, "leased"));
    let early = admitted_together([&one, &other], 60);
    assert_eq!(early, 120);
    // What the one still holds it gives back when it ends.
    assert!(one.stop("-TERM").success());
    let late = admitted(&other, 120);
    assert_eq!(early + late, 200);
}

#[test]
fn what_a_killed_server_held_is_not_spent_again() {
    let redis = RedisServer::start();
    let rules = rules("shared_killed", 200, "");
    let [one, other] = [(); 2].map(|()| start(&redis, &rules, "leased"));
    let early = admitted_together([&one, &other], 60);
    assert_eq!(early, 120);
    let held = sum(&one, "tidegate_lease_permits_total", "fate=\"drawn\"")
        - sum(&one, "tidegate_lease_permits_total", "fate=\"spent\"");
    assert!(!one.stop("-KILL").success());
    // All but what it held, for nobody knows what became of that.
    let late = admitted(&other, 120);
    let held = usize::try_from(held).unwrap();
    assert!(
        (200 - held..=200).contains(&(early + late)),
        "{late}, {held}"
    );
}

#[test]
fn a_rule_says_otherwise_than_the_server() {
    let redis = RedisServer::start();
    let rules = rules("shared_node", 10, ", consistency: node");
    let servers = [(); 2].map(|()| start(&redis, &rules, "strict"));
    let [one, other] = &servers;
    assert_eq!(admitted_together([one, other], 20), 20);
}

#[test]
fn operators_are_told_how_a_limit_is_shared() {
    let redis = RedisServer::start();
    let rules = rules("shared_explained", 10, "");
    let server = start(&redis, &rules, "strict");
    let told = server.operate("POST /api/v1/explain", USER);
    assert!(
        told.contains("strict: every decision is made in Redis"),
        "{told}"
    );
    assert!(told.contains("without Redis: each node goes on"), "{told}");
}

#[test]
fn installations_of_other_names_count_apart() {
    let redis = RedisServer::start();
    let rules = rules("shared_names", 10, "");
    let url = redis.url();
    let args = ["--store", &url, "--rules", rules.to_str().unwrap()];
    for name in ["one", "other"] {
        let variables = [&PATIENT[..], &[("TIDEGATE_STORE_NAME", name)]].concat();
        let server = Server::start_with(&args, &variables);
        assert_eq!(admitted(&server, 15), 10, "{name}");
    }
}

#[test]
fn a_changed_limit_applies_to_what_was_counted() {
    let redis = RedisServer::start();
    let rules = rules("shared_reload", 5, "");
    let mut server = start(&redis, &rules, "leased");
    assert_eq!(admitted(&server, 10), 5);
    write_rules(&rules, 8, "");
    server.send("-HUP");
    server.next_line("reloaded the rules");
    assert_eq!(admitted(&server, 10), 3);
}

#[test]
fn a_redis_that_is_not_there_does_not_keep_it_from_starting() {
    let redis = RedisServer::start();
    redis.kill();
    let rules = rules("shared_absent", 5, "");
    let mut server = start(&redis, &rules, "strict");
    let line = server.next_line("Redis is not there");
    assert!(line.contains("on_failure"), "{line}");
    server.next_line("number of members unknown");
    assert_eq!(admitted(&server, 10), 5);
    redis.restart();
    let line = server.next_line("Redis ");
    assert!(line.contains("circuit breaker closed"), "said once: {line}");
}

/// What a server says that does not start with such a store.
fn refused(url: &str, variables: &[(&str, &str)]) -> String {
    let args = [
        "serve",
        "--http",
        "127.0.0.1:0",
        "--grpc",
        "off",
        "--admin",
        "off",
    ];
    let mut command = command(&[&args[..], &["--store", url]].concat());
    let output = command.envs(variables.iter().copied()).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(!stderr.contains("hunter"), "{stderr}");
    stderr
}

#[test]
fn a_redis_of_no_use_is_told_at_once() {
    let redis = RedisServer::start_with(ServerOptions {
        settings: vec![vec!["requirepass".to_owned(), "hunter2".to_owned()]],
        ..ServerOptions::default()
    });
    let place = redis.address();
    let missing = refused(&format!("redis://{place}"), &[]);
    assert!(missing.contains("NOAUTH"), "{missing}");
    let wrong = refused(&format!("redis://:hunter3@{place}"), &[]);
    assert!(wrong.contains("WRONGPASS"), "{wrong}");
    assert!(wrong.contains("store.password_file"), "{wrong}");
    let variable = [("TIDEGATE_STORE_PASSWORD", "hunter3")];
    let wrong = refused(&format!("redis://{place}"), &variable);
    assert!(wrong.contains("WRONGPASS"), "{wrong}");
    let single = refused(&format!("redis+cluster://:hunter2@{place}"), &[]);
    assert!(single.contains("write redis:// in --store"), "{single}");
    let misspelt = refused(&format!("redis:/:hunter3@{place}"), &[]);
    assert!(misspelt.contains("write redis://HOST:PORT"), "{misspelt}");
    let nonsense = refused("redis://127.0.0.1:many", &[]);
    assert!(nonsense.contains("`--store` takes memory or"), "{nonsense}");
}

/// Who is let in but may run no script would go by `on_failure` for ever.
#[test]
fn a_user_without_the_rights_is_told_at_once() {
    let redis = RedisServer::start();
    let login = ["ACL", "SETUSER", "ann", "on", ">hunter2", "~*"];
    redis.must(&[&login[..], &["+@all", "-evalsha"]].concat());
    let narrow = refused(&format!("redis://ann:hunter2@{}", redis.address()), &[]);
    assert!(narrow.contains("NOPERM"), "{narrow}");
    assert!(narrow.contains("its user lacks a right"), "{narrow}");
}

#[test]
fn a_password_is_read_from_a_file() {
    let redis = RedisServer::start_with(ServerOptions {
        settings: vec![vec!["requirepass".to_owned(), "hunter2".to_owned()]],
        ..ServerOptions::default()
    });
    let file = scratch("shared_password").join("password");
    fs::write(&file, "hunter2\n").unwrap();
    let url = format!("redis://{}", redis.address());
    let variables = [("TIDEGATE_STORE_PASSWORD_FILE", file.to_str().unwrap())];
    let rules = rules("shared_password_rules", 5, "");
    let rules = [
        "--rules",
        rules.to_str().unwrap(),
        "--consistency",
        "strict",
    ];
    let args = [&["--store", &url], &rules[..]].concat();
    let server = Server::start_with(&args, &[&PATIENT[..], &variables].concat());
    assert_eq!(admitted(&server, 10), 5);
    // What the URL says goes before it.
    let url = format!("redis://:hunter2@{}", redis.address());
    fs::write(&file, "hunter3\n").unwrap();
    let args = [&["--store", &url], &rules[..]].concat();
    let server = Server::start_with(&args, &[&PATIENT[..], &variables].concat());
    assert_eq!(admitted(&server, 1), 0);
}

#[test]
fn in_the_place_of_the_reference_its_redis_is_used() {
    let redis = RedisServer::start();
    let root = scratch("shared_reference");
    fs::create_dir(root.join("config")).unwrap();
    write_rules(&root.join("config/rules"), 10, "");
    let url = redis.address().to_string();
    let variables = [
        ("RUNTIME_ROOT", root.to_str().unwrap()),
        ("REDIS_SOCKET_TYPE", "tcp"),
        ("REDIS_URL", &url),
    ];
    let variables = [&PATIENT[..], &variables].concat();
    let [one, other] = [(); 2].map(|()| Server::start_with(&[], &variables));
    let counters = value(&one.banner, "counters");
    assert!(counters.contains("strict"), "{counters}");
    assert_eq!(admitted_together([&one, &other], 10), 10);
}

#[test]
fn a_server_of_something_else_is_told_from_redis() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap();
    // It answers as Redis never does, and goes with the test.
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            use std::io::{Read, Write};
            let _ = stream.read(&mut [0; 64]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let told = refused(&format!("redis://{place}"), &[]);
    assert!(told.contains("this is no Redis"), "{told}");
}

/// A text that is no certificate, between the marks of one.
const BAD_CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";

#[test]
fn a_bad_certificate_among_those_of_the_system_does_not_stop_the_start() {
    let certificates = Arc::new(Certificates::new());
    let redis = RedisServer::start_with(ServerOptions {
        listening: Listening::Tls(Arc::clone(&certificates)),
        ..ServerOptions::default()
    });
    let folder = scratch("system_roots");
    let bundle = folder.join("bundle.pem");
    let authority = fs::read_to_string(certificates.authority()).unwrap();
    fs::write(&bundle, format!("{BAD_CERTIFICATE}{authority}")).unwrap();
    let (cert, key) = (certificates.certificate(), certificates.key());
    let url = format!(
        "{}?cert={}&key={}",
        redis.url(),
        cert.display(),
        key.display()
    );
    let roots = [("SSL_CERT_FILE", bundle.to_str().unwrap())];
    let mut server = Server::start_with(&["--rules", "valid.yaml", "--store", &url], &roots);
    server.next_line("counters are in Redis at");
    // With none at all it says so.
    fs::write(&bundle, BAD_CERTIFICATE).unwrap();
    let args = [
        "serve",
        "--http",
        "127.0.0.1:0",
        "--rules",
        "valid.yaml",
        "--store",
        &url,
    ];
    let output = command(&args).envs(roots).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(said.contains("no certificates to trust"), "{said}");
}
