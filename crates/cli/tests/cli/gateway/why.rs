//! A denial through the gateway, explained by `tidegate why`.

use std::fs;

use super::upstream::Upstream;
use super::{Answer, ask};
use crate::program::{check, command, run, scratch};
use crate::server::{Server, value};

const RULES: &str = "domain: gateway
descriptors:
  - key: remote_address
    rate_limit: {unit: day, requests_per_unit: 2, name: two-a-day}
";

/// Starts a gateway with an admin listener.
fn start(name: &str, upstream: &Upstream, config: &str) -> Server {
    let folder = scratch(name);
    fs::write(folder.join("rules.yaml"), RULES).unwrap();
    fs::write(folder.join("tidegate.yaml"), config).unwrap();
    let url = upstream.url();
    let mut command = command(&[
        "serve",
        "--gateway",
        "127.0.0.1:0",
        "--upstream",
        &url,
        "--http",
        "off",
        "--grpc",
        "off",
        "--admin",
        "127.0.0.1:0",
        "--rules",
        "rules.yaml",
    ]);
    command.current_dir(folder);
    Server::run(command)
}

/// Asks until the gateway denies, and returns the id of the decision.
fn deny(server: &Server) -> String {
    let is_denied = |answer: &Answer| answer.status() == 429;
    let mut answers = (0..3).map(|_| ask(server, "GET /", &[]));
    let denied = answers.find(is_denied).expect("two a day are allowed");
    let (_, rest) = denied.0.split_once("x-tidegate-decision: ").expect("an id");
    rest.split("\r\n").next().unwrap_or_default().to_owned()
}

#[test]
fn a_denial_is_explained_by_its_id() {
    let upstream = Upstream::start();
    let server = start("why", &upstream, "");
    let id = deny(&server);
    let admin = server.admin_address();
    for admin in [admin.clone(), format!("http://{admin}/")] {
        let why = run(&["why", &id, "--admin", &admin]);
        assert_eq!(why.code, Some(0), "{why:?}");
        for told in [
            &*format!("decision {id}: denied\n"),
            "by the clock of the store",
            "`remote_address` of domain `gateway`, at rules.yaml:3\n",
            "2 per day, fixed_window",
            "0 of 2 remained before, 0 after",
            "memory: a counter of this node",
            "nothing at that time; 1 unit after ",
        ] {
            assert!(why.stdout.contains(told), "{told} in {}", why.stdout);
        }
    }
    let urn = format!("urn:tidegate:decision:{id}");
    assert_eq!(run(&["why", &urn, "--admin", &admin]).code, Some(0));
    let unknown = run(&["why", "0123456789abcdef", "--admin", &admin]);
    assert_eq!(unknown.code, Some(1));
    let said = &unknown.stderr;
    assert!(
        said.contains("there was no decision 0123456789abcdef"),
        "{said}"
    );
    assert!(said.contains("keeps its latest 65536 decisions"), "{said}");
}

#[test]
fn a_guarded_server_is_asked_with_the_token_of_its_settings() {
    let upstream = Upstream::start();
    let config = "admin: {token: open-sesame, protect_reads: true}\n";
    let server = start("why_guarded", &upstream, config);
    let id = deny(&server);
    let admin = server.admin_address();
    let stranger = run(&["why", &id, "--admin", &admin]);
    assert_eq!(stranger.code, Some(1));
    assert!(
        stranger.stderr.contains("bring the admin token"),
        "{stranger:?}"
    );
    let folder = scratch("why_guarded_settings");
    let path = folder.join("tidegate.yaml");
    fs::write(&path, config).unwrap();
    let path = path.to_str().unwrap();
    let why = run(&["why", &id, "--admin", &admin, "--config", path]);
    assert_eq!(why.code, Some(0), "{why:?}");
}

#[test]
fn decisions_can_be_switched_off() {
    let upstream = Upstream::start();
    let server = start("why_off", &upstream, "observing: {decisions: 0}\n");
    let answers: Vec<Answer> = (0..3).map(|_| ask(&server, "GET /", &[])).collect();
    assert_eq!(answers[2].status(), 429);
    assert!(!answers[2].0.contains("x-tidegate-decision"));
    assert!(value(&server.banner, "listening").contains("http://"));
    let unknown = run(&[
        "why",
        "0123456789abcdef",
        "--admin",
        &server.admin_address(),
    ]);
    assert!(
        unknown.stderr.contains("`observing.decisions` is 0"),
        "{unknown:?}"
    );
}

#[test]
fn what_cannot_be_asked_says_so() {
    check("why_bad_id", &["why", "nonsense"]);
    check(
        "why_no_admin",
        &["why", "0123456789abcdef", "--admin", "off"],
    );
}
