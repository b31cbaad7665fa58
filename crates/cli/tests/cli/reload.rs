//! Rules that change under a server that runs.

use std::fmt::Write;
use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{run, scratch};
use crate::serve::too_many_windows;
use crate::server::{Server, USER, number};

const RELOADED: &str = "reloaded the rules: 1 domain, 1 rule, 1 limit";
const KEPT: &str = "rules reload failed; the previous rules stay in force: ";

/// Rules that let each user in so often a year.
fn rules(limit: &str) -> String {
    let rule = format!("{{key: user_id, rate_limit: {{unit: year, requests_per_unit: {limit}}}}}");
    format!("domain: shop\ndescriptors: [{rule}]\n")
}

/// A folder as Kubernetes mounts a `ConfigMap`: files are links into `..data`, which is a link to the
/// folder of one version.
struct ConfigMap {
    folder: PathBuf,
}

// === impl ConfigMap ===

impl ConfigMap {
    fn new(folder: PathBuf, rules: &str) -> Self {
        let map = Self { folder };
        map.put("..v1", rules);
        symlink("..v1", map.folder.join("..data")).unwrap();
        symlink("..data/rules.yaml", map.folder.join("rules.yaml")).unwrap();
        map
    }

    /// Swaps the version as the kubelet does: the link is renamed over, then the old folder goes.
    fn swap(&self, old: &str, new: &str, rules: &str) {
        self.put(new, rules);
        let fresh = self.folder.join("..data_tmp");
        symlink(new, &fresh).unwrap();
        fs::rename(fresh, self.folder.join("..data")).unwrap();
        fs::remove_dir_all(self.folder.join(old)).unwrap();
    }

    fn put(&self, version: &str, rules: &str) {
        let folder = self.folder.join(version);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("rules.yaml"), rules).unwrap();
    }
}

/// Puts another file in the place of one, so that nobody reads half of it.
fn replace(path: &Path, text: &str) {
    let fresh = path.with_extension("new");
    fs::write(&fresh, text).unwrap();
    fs::rename(fresh, path).unwrap();
}

fn serve(path: &Path) -> Server {
    Server::start(&["--rules", path.to_str().unwrap()])
}

/// The limit that a user is told.
fn limit(server: &Server) -> Option<u64> {
    number(&server.ask(USER), "x-ratelimit-limit")
}

#[test]
fn a_hangup_reloads_the_rules_and_keeps_the_counters() {
    let path = scratch("hangup").join("rules.yaml");
    fs::write(&path, rules("1")).unwrap();
    let arguments = ["--rules", path.to_str().unwrap()];
    let mut server = Server::start_with(&arguments, &[("TIDEGATE_RULES_WATCH", "false")]);
    assert!(server.ask(USER).starts_with("HTTP/1.1 200"));
    assert!(server.ask(USER).starts_with("HTTP/1.1 429"));
    fs::write(&path, rules("2")).unwrap();
    server.send("-HUP");
    let line = server.next_line(RELOADED);
    assert!(line.contains(r#"trigger="signal""#), "{line}");
    assert!(server.ask(USER).starts_with("HTTP/1.1 200"));
    fs::write(&path, rules("none")).unwrap();
    server.send("-HUP");
    let line = server.next_line(KEPT);
    assert!(line.contains("the rules have 1 fault"), "{line}");
    server.next_line("error[bad-value]: `requests_per_unit` takes a whole number, not `none`");
    let answer = server.ask(USER);
    assert_eq!(number(&answer, "x-ratelimit-limit"), Some(2), "{answer}");
    assert!(answer.starts_with("HTTP/1.1 429"), "{answer}");
}

#[test]
fn a_reload_that_failed_is_shown_until_one_succeeds() {
    let path = scratch("failed_reload").join("rules.yaml");
    fs::write(&path, rules("1")).unwrap();
    let mut server = serve(&path);
    let check = |server: &Server, gauge: &str, warnings: &str| {
        let metrics = server.operate("GET /metrics", "");
        let line = format!("\ntidegate_last_reload_successful{{subject=\"rules\"}} {gauge}\n");
        assert!(metrics.contains(&line), "{metrics}");
        let ready = server.operate("GET /readyz", "");
        assert!(ready.starts_with("HTTP/1.1 200"), "{ready}");
        assert!(
            ready.contains(&format!("\"warnings\":[{warnings}")),
            "{ready}"
        );
    };
    check(&server, "1", "]");
    fs::write(&path, rules("none")).unwrap();
    let line = server.next_line(KEPT);
    let end = r#": the rules have 1 fault trigger="watch" findings="#;
    assert!(line.ends_with(end), "{line}");
    check(&server, "0", "\"the last reload of the rules failed");
    // The last hint is followed by nothing.
    let hint = server.next_line("= hint: ");
    assert!(!hint.contains("trigger"), "{hint}");
    fs::write(&path, rules("2")).unwrap();
    server.next_line(RELOADED);
    check(&server, "1", "]");
}

/// More rules than there may be.
fn too_many_rules() -> String {
    let mut rules = "domain: shop\ndescriptors:\n".to_owned();
    for number in 0..=100_000 {
        writeln!(rules, "  - {{key: key{number}}}").unwrap();
    }
    rules
}

#[test]
fn a_reload_that_does_not_fit_changes_nothing_and_says_so() {
    let path = scratch("unfit_reload").join("rules.yaml");
    fs::write(&path, rules("1")).unwrap();
    let arguments = ["--rules", path.to_str().unwrap()];
    let mut server = Server::start_with(&arguments, &[("TIDEGATE_RULES_WATCH", "false")]);
    let gauge =
        |value: &str| format!("\ntidegate_last_reload_successful{{subject=\"rules\"}} {value}\n");
    let cases = [
        (
            too_many_windows(),
            "more than the 1022 pairs of algorithm and window",
        ),
        (too_many_rules(), "the rules have 1 fault"),
    ];
    for (unfit, reason) in cases {
        fs::write(&path, unfit).unwrap();
        let answer = server.operate("POST /api/v1/reload", "");
        assert!(answer.starts_with("HTTP/1.1 422 "), "{answer}");
        assert!(answer.contains(reason), "{answer}");
        let line = server.next_line(KEPT);
        assert!(line.contains(reason), "{line}");
        assert!(server.operate("GET /metrics", "").contains(&gauge("0")));
        let ready = server.operate("GET /readyz", "");
        assert!(ready.starts_with("HTTP/1.1 200"), "{ready}");
        let warning = "\"warnings\":[\"the last reload of the rules failed";
        assert!(ready.contains(warning), "{ready}");
        // The rules from before are in force, with their counters.
        assert_eq!(limit(&server), Some(1));
        fs::write(&path, rules("1")).unwrap();
        let answer = server.operate("POST /api/v1/reload", "");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert!(server.operate("GET /metrics", "").contains(&gauge("1")));
    }
    assert!(server.ask(USER).starts_with("HTTP/1.1 429"));
}

#[test]
fn a_file_that_is_written_again_is_read_again() {
    let path = scratch("written").join("rules.yaml");
    fs::write(&path, rules("1")).unwrap();
    let mut server = serve(&path);
    assert_eq!(limit(&server), Some(1));
    fs::write(&path, rules("2")).unwrap();
    let line = server.next_line(RELOADED);
    assert!(line.contains(r#"trigger="watch""#), "{line}");
    assert_eq!(limit(&server), Some(2));
}

#[test]
fn a_file_that_another_is_renamed_over_is_read_again() {
    let path = scratch("renamed").join("rules.yaml");
    fs::write(&path, rules("1")).unwrap();
    let mut server = serve(&path);
    for (written, told) in [("2", 2), ("3", 3)] {
        replace(&path, &rules(written));
        server.next_line(RELOADED);
        assert_eq!(limit(&server), Some(told));
    }
}

#[test]
fn a_config_map_that_is_swapped_is_read_again() {
    let map = ConfigMap::new(scratch("config_map"), &rules("1"));
    let mut server = serve(&map.folder);
    assert_eq!(limit(&server), Some(1));
    map.swap("..v1", "..v2", &rules("2"));
    server.next_line(RELOADED);
    assert_eq!(limit(&server), Some(2));
    map.swap("..v2", "..v3", &rules("3"));
    server.next_line(RELOADED);
    assert_eq!(limit(&server), Some(3));
}

#[test]
fn a_file_of_a_config_map_is_watched_by_itself_too() {
    let map = ConfigMap::new(scratch("config_map_file"), &rules("1"));
    let mut server = serve(&map.folder.join("rules.yaml"));
    map.swap("..v1", "..v2", &rules("2"));
    server.next_line(RELOADED);
    assert_eq!(limit(&server), Some(2));
}

#[test]
fn bad_rules_are_told_once_and_good_ones_after_them_taken() {
    let folder = scratch("bad_then_good");
    let path = folder.join("rules.yaml");
    fs::write(&path, rules("1")).unwrap();
    let mut server = serve(&folder);
    replace(&path, &rules("many"));
    server.next_line(KEPT);
    assert_eq!(limit(&server), Some(1));
    replace(&path, &rules("5"));
    // Were the bad rules told again, that line would come first.
    let line = server.next_line("reloaded");
    assert!(line.contains(RELOADED), "{line}");
    assert_eq!(limit(&server), Some(5));
}

#[test]
fn a_folder_that_goes_and_comes_back_is_read_again() {
    let folder = scratch("gone").join("rules");
    let put = |limit: &str| {
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("rules.yaml"), rules(limit)).unwrap();
    };
    put("1");
    let mut server = serve(&folder);
    fs::remove_dir_all(&folder).unwrap();
    let line = server.next_line(KEPT);
    assert!(
        line.contains("No such file or directory") || line.contains("no *.yaml"),
        "{line}"
    );
    assert_eq!(limit(&server), Some(1));
    put("2");
    server.next_line(RELOADED);
    assert_eq!(limit(&server), Some(2));
}

#[test]
fn a_file_that_joins_the_folder_is_read_too() {
    let folder = scratch("joined");
    fs::write(folder.join("a.yaml"), rules("1")).unwrap();
    let mut server = serve(&folder);
    let other = rules("1").replace("shop", "market");
    fs::write(folder.join("b.yaml"), other).unwrap();
    server.next_line("reloaded the rules: 2 domains, 2 rules, 2 limits");
}

#[test]
fn operators_reload_and_see_what_is_wrong() {
    let path = scratch("operated").join("rules.yaml");
    fs::write(&path, rules("1")).unwrap();
    let arguments = ["--rules", path.to_str().unwrap()];
    let mut server = Server::start_with(&arguments, &[("TIDEGATE_RULES_WATCH", "false")]);
    fs::write(&path, rules("2")).unwrap();
    let answer = server.operate("POST /api/v1/reload", "");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let line = server.next_line(RELOADED);
    assert!(line.contains(r#"trigger="admin""#), "{line}");
    assert_eq!(limit(&server), Some(2));
    fs::write(&path, rules("none")).unwrap();
    let answer = server.operate("POST /api/v1/reload", "");
    assert!(answer.starts_with("HTTP/1.1 422"), "{answer}");
    server.next_line(KEPT);
    assert_eq!(limit(&server), Some(2));
    let told = server.operate("GET /api/v1/reload", "");
    assert!(told.contains("takes a whole number, not `none`"), "{told}");
    let metrics = server.operate("GET /metrics", "");
    assert!(
        metrics.contains(r#"tidegate_reloads_total{result="success"} 2"#),
        "{metrics}"
    );
    assert!(
        metrics.contains(r#"tidegate_reloads_total{result="failure"} 1"#),
        "{metrics}"
    );
}

#[test]
fn operators_see_the_settings_and_change_the_level_of_the_log() {
    let path = scratch("level").join("rules.yaml");
    fs::write(&path, rules("1")).unwrap();
    let arguments = ["--rules", path.to_str().unwrap(), "--log-level", "off"];
    let variables = [
        ("TIDEGATE_RULES_WATCH", "false"),
        ("TIDEGATE_OBSERVING_TRACES_SAMPLE", "0.25"),
    ];
    let mut server = Server::start_with(&arguments, &variables);
    let settings = server.operate("GET /api/v1/config", "");
    assert!(settings.contains(r#""sample":0.25"#), "{settings}");
    // Nobody hears of this one.
    server.operate("POST /api/v1/reload", "");
    let answer = server.operate("PUT /api/v1/log-level", r#"{"level": "info,audit=off"}"#);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(
        server
            .operate("GET /api/v1/log-level", "")
            .contains("info,audit=off")
    );
    server.send("-HUP");
    let line = server.next_line("reloaded");
    assert!(line.contains(r#"trigger="signal""#), "{line}");
}

#[test]
fn a_port_for_scrapers_takes_no_rights_from_operators_on_this_machine() {
    let everywhere = [("TIDEGATE_LISTENERS_METRICS", "0.0.0.0:0")];
    let server = Server::start_with(&["--rules", "valid.yaml"], &everywhere);
    let scraped = |line: &String| line.ends_with("(metrics)");
    assert!(server.banner.iter().any(scraped), "{:?}", server.banner);
    let answer = server.operate("POST /api/v1/reload", "");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// Sets how many files the server may have open, by `prlimit`.
pub(crate) fn set_open_files(server: &Server, limit: &str) {
    let (pid, limit) = (
        format!("--pid={}", server.id()),
        format!("--nofile={limit}:"),
    );
    let set = Command::new("prlimit").args([&pid, &limit]).status();
    assert!(set.unwrap().success());
}

#[test]
fn a_file_that_could_not_be_read_is_read_again_though_it_has_not_changed() {
    let path = scratch("unread").join("rules.yaml");
    fs::write(&path, rules("1")).unwrap();
    let mut server = serve(&path);
    assert_eq!(limit(&server), Some(1));
    set_open_files(&server, "3");
    replace(&path, &rules("2"));
    let line = server.next_line(KEPT);
    assert!(line.contains("Too many open files"), "{line}");
    set_open_files(&server, "1024");
    server.next_line(RELOADED);
    assert_eq!(limit(&server), Some(2));
}

/// Clients cannot take the descriptors that operators and reloads need.
#[test]
fn rules_are_reloaded_though_clients_have_all_the_descriptors_that_they_may() {
    let path = scratch("descriptors").join("rules.yaml");
    fs::write(&path, rules("1")).unwrap();
    let args = ["--rules", path.to_str().unwrap()];
    let mut server = Server::start_with_files("-n", 192, &args);
    let begun = b"POST /json HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{";
    let connect = |address: &String| {
        let connect = |_| TcpStream::connect(address).unwrap();
        (0..150).map(connect).collect::<Vec<TcpStream>>()
    };
    let callers = connect(&server.grpc_address());
    server.next_line("connection limit reached");
    let mut clients = connect(&server.address);
    for client in &mut clients {
        // One that was evicted meanwhile cannot be written to.
        let _ = client.write_all(begun);
    }
    server.next_line("connection limit reached");
    replace(&path, &rules("2"));
    server.next_line(RELOADED);
    replace(&path, &rules("3"));
    server.send("-HUP");
    server.next_line(RELOADED);
    let answer = server.operate("POST /api/v1/reload", "");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    drop((callers, clients));
    assert_eq!(limit(&server), Some(3));
}

fn make_fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn a_fifo_among_the_rules_stops_neither_reloads_nor_the_end() {
    let folder = scratch("fifo");
    let path = folder.join("rules.yaml");
    fs::write(&path, rules("1")).unwrap();
    let mut server = serve(&folder);
    make_fifo(&folder.join("zz.yaml"));
    replace(&path, &rules("2"));
    server.next_line(RELOADED);
    let answer = server.operate("POST /api/v1/reload", "");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    server.next_line(RELOADED);
    assert_eq!(limit(&server), Some(2));
    // Named by itself it is a fault, and no wait.
    fs::remove_file(&path).unwrap();
    make_fifo(&path);
    let line = server.next_line(KEPT);
    assert!(line.contains("no *.yaml"), "{line}");
    assert!(server.stop("-TERM").success());
}

#[test]
fn a_fifo_that_is_named_is_a_fault() {
    let path = scratch("named_fifo").join("rules.yaml");
    make_fifo(&path);
    let path = path.to_str().unwrap();
    for arguments in [vec!["check", path], vec!["config", "--config", path]] {
        let run = run(&arguments);
        assert_ne!(run.code, Some(0), "{run:?}");
        assert!(run.stderr.contains("not a regular file"), "{run:?}");
    }
}

#[test]
fn a_hundred_thousand_plain_rules_load() {
    let path = scratch("hundred_thousand").join("rules.yaml");
    let mut text = "domain: shop\ndescriptors:\n".to_owned();
    for n in 0..100_000 {
        let limit = "{unit: minute, requests_per_unit: 10}";
        let _ = writeln!(
            text,
            "  - {{key: user_id, value: u{n}, rate_limit: {limit}}}"
        );
    }
    fs::write(&path, text).unwrap();
    let run = run(&["check", path.to_str().unwrap()]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(
        run.stdout.contains("100,000 rules") || run.stdout.contains("100000 rules"),
        "{run:?}"
    );
}
