//! Settings that change under a gateway that runs.

use std::fs;
use std::path::Path;

use super::upstream::Upstream;
use super::{ask, start};
use crate::program::scratch;
use crate::reload::set_open_files;
use crate::server::Server;

pub(super) const RELOADED: &str = "reloaded the settings";
pub(super) const KEPT: &str = "settings reload failed; the previous settings stay in force";

/// Puts another file in the place of one, so that nobody reads half of it.
pub(super) fn replace(path: &Path, text: &str) {
    let fresh = path.with_extension("new");
    fs::write(&fresh, text).unwrap();
    fs::rename(fresh, path).unwrap();
}

fn responding(status: u16) -> String {
    format!("gateway: {{routes: [{{path: /own, respond: {status}}}]}}\n")
}

fn start_with(name: &str, config: &str) -> (Server, std::path::PathBuf, Upstream) {
    let folder = scratch(name);
    let path = folder.join("tidegate.yaml");
    fs::write(&path, config).unwrap();
    let upstream = Upstream::start();
    let server = start(&folder, &upstream, &[]);
    (server, path, upstream)
}

#[test]
fn a_changed_config_file_comes_into_force() {
    let (mut server, path, upstream) = start_with("gateway_reload", &responding(201));
    assert_eq!(ask(&server, "GET /own", &[]).status(), 201);
    replace(&path, &responding(202));
    let line = server.next_line(RELOADED);
    assert!(
        line.contains(r#"trigger="watch" routes=2 upstreams=1"#),
        "{line}"
    );
    assert_eq!(ask(&server, "GET /own", &[]).status(), 202);
    assert_eq!(ask(&server, "GET /other", &[]).status(), 200);
    assert_eq!(upstream.requests(), ["GET /other"]);
}

#[test]
fn bad_settings_never_replace_good_ones() {
    let (mut server, path, _upstream) = start_with("gateway_bad_reload", &responding(201));
    let faulty = "gateway: {routes: [{path: own, respond: 99}]}\nthreads: none\n";
    replace(&path, faulty);
    let line = server.next_line(KEPT);
    let end = r#"3 faults trigger="watch" findings="#;
    assert!(line.ends_with(end), "{line}");
    server.next_line("`path` takes a path, not `own`");
    server.next_line("`respond.status` takes a status, not `99`");
    server.next_line("`threads` takes a whole number, not `none`");
    assert_eq!(ask(&server, "GET /own", &[]).status(), 201);
    replace(&path, &responding(203));
    server.next_line(RELOADED);
    assert_eq!(ask(&server, "GET /own", &[]).status(), 203);
}

#[test]
fn settings_that_could_not_be_read_are_read_again_though_they_have_not_changed() {
    let (mut server, path, _upstream) = start_with("gateway_unread", &responding(201));
    // Its threads, which need files of their own, have started once it answers.
    assert_eq!(ask(&server, "GET /own", &[]).status(), 201);
    set_open_files(&server, "3");
    replace(&path, &responding(202));
    let line = server.next_line(KEPT);
    assert!(line.contains("Too many open files"), "{line}");
    set_open_files(&server, "1024");
    server.next_line(RELOADED);
    assert_eq!(ask(&server, "GET /own", &[]).status(), 202);
}

#[test]
fn a_reload_that_failed_is_shown_until_one_succeeds() {
    let path = scratch("gateway_failed_reload").join("tidegate.yaml");
    fs::write(&path, responding(201)).unwrap();
    let mut server = Server::start(&[
        "--config",
        path.to_str().unwrap(),
        "--gateway",
        "127.0.0.1:0",
        "--upstream",
        "http://127.0.0.1:9",
    ]);
    let check = |server: &Server, gauge: &str, warnings: &str| {
        let metrics = server.operate("GET /metrics", "");
        let line = format!("\ntidegate_last_reload_successful{{subject=\"settings\"}} {gauge}\n");
        assert!(metrics.contains(&line), "{metrics}");
        let ready = server.operate("GET /readyz", "");
        assert!(ready.starts_with("HTTP/1.1 200"), "{ready}");
        assert!(
            ready.contains(&format!("\"warnings\":[{warnings}")),
            "{ready}"
        );
    };
    check(&server, "1", "]");
    replace(&path, "threads: none\n");
    server.next_line(KEPT);
    check(&server, "0", "\"the last reload of the settings failed");
    replace(&path, &responding(202));
    server.next_line(RELOADED);
    check(&server, "1", "]");
}

#[test]
fn settings_that_are_read_at_start_are_named() {
    let (mut server, path, _upstream) = start_with("gateway_restart", &responding(201));
    let more = "store: {max_memory: 1GiB}\n";
    let bounds = "gateway: {bounds: {max_headers: 7}, routes: [{path: /own, respond: 202}]}\n";
    replace(&path, &format!("{more}{bounds}"));
    let line = server.next_line("restart to apply");
    assert!(
        line.ends_with("restart to apply: store.max_memory, gateway.bounds.max_headers"),
        "{line}"
    );
    assert_eq!(ask(&server, "GET /own", &[]).status(), 202);
}

#[test]
fn files_that_the_settings_name_are_watched() {
    let folder = scratch("gateway_files");
    let config = "gateway:\n  routes: [{path: /own, respond: 201, require: {\"label:site\": [office]}}]\n\
                  identity: {labels: {site: sites.csv}}\n";
    fs::write(folder.join("tidegate.yaml"), config).unwrap();
    fs::write(folder.join("sites.csv"), "10.0.0.0/8,office\n").unwrap();
    let upstream = Upstream::start();
    let mut server = start(&folder, &upstream, &[]);
    assert_eq!(ask(&server, "GET /own", &[]).status(), 403);
    replace(&folder.join("sites.csv"), "127.0.0.0/8,office\n");
    server.next_line(RELOADED);
    assert_eq!(ask(&server, "GET /own", &[]).status(), 201);
    replace(&folder.join("sites.csv"), "127.0.0.0/8\n");
    let line = server.next_line(KEPT);
    assert!(line.contains("sites.csv"), "{line}");
    assert_eq!(ask(&server, "GET /own", &[]).status(), 201);
}

#[test]
fn a_hangup_reads_the_settings_again() {
    let config = format!("rules: {{watch: false}}\n{}", responding(201));
    let (mut server, path, _upstream) = start_with("gateway_hangup", &config);
    let changed = format!("rules: {{watch: false}}\n{}", responding(202));
    replace(&path, &changed);
    server.send("-HUP");
    let line = server.next_line(RELOADED);
    assert!(line.contains(r#"trigger="signal""#), "{line}");
    assert_eq!(ask(&server, "GET /own", &[]).status(), 202);
}
