//! Counters that outlive the process.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::program::{command, scratch};
use crate::server::{OTHERS, Server, USER};

/// A folder with rules that let a user in twice a year, and a config whose counters are kept in `file`
/// and written often.
fn prepare(name: &str) -> PathBuf {
    let folder = scratch(name);
    let rule = "{key: user_id, rate_limit: {unit: year, requests_per_unit: 2}}";
    fs::write(
        folder.join("rules.yaml"),
        format!("domain: shop\ndescriptors: [{rule}]\n"),
    )
    .unwrap();
    let config = "store: {state: {interval: 100ms}}\nobserving: {log: {level: debug}}\n";
    fs::write(folder.join("tidegate.yaml"), config).unwrap();
    folder
}

fn args(folder: &Path) -> Vec<String> {
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    vec![
        "--config".to_owned(),
        path("tidegate.yaml"),
        "--rules".to_owned(),
        path("rules.yaml"),
        "--state".to_owned(),
        path("counters"),
    ]
}

fn serve(folder: &Path) -> Server {
    let args = args(folder);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    Server::start(&args)
}

fn exhaust(server: &Server) {
    for _ in 0..2 {
        assert!(server.ask(USER).starts_with("HTTP/1.1 200"));
    }
    assert!(server.ask(USER).starts_with("HTTP/1.1 429"));
}

#[test]
fn a_restart_hands_out_no_fresh_quota() {
    let folder = prepare("state_restart");
    let mut server = serve(&folder);
    server.next_line("there is no ");
    exhaust(&server);
    assert_eq!(server.stop("-TERM").code(), Some(0));
    let mode = fs::metadata(folder.join("counters")).unwrap().permissions();
    assert_eq!(mode.mode() & 0o777, 0o600, "it holds a secret");
    for _ in 0..2 {
        let mut server = serve(&folder);
        server.next_line("1 counters go on from ");
        assert!(server.ask(USER).starts_with("HTTP/1.1 429"));
        assert_eq!(server.stop("-TERM").code(), Some(0));
    }
}

#[test]
fn a_process_that_is_killed_loses_an_interval_at_most() {
    let folder = prepare("state_killed");
    let mut server = serve(&folder);
    exhaust(&server);
    // The first may have been begun before the charges, the second was not.
    for _ in 0..2 {
        server.next_line("wrote 1 counters to ");
    }
    server.stop("-KILL");
    let server = serve(&folder);
    assert!(server.ask(USER).starts_with("HTTP/1.1 429"));
}

#[test]
fn a_damaged_file_is_put_aside_and_counters_start_empty() {
    let folder = prepare("state_damaged");
    let server = serve(&folder);
    exhaust(&server);
    server.stop("-TERM");
    let path = folder.join("counters");
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let mut server = serve(&folder);
    let line = server.next_line("is of no use, all counters start empty: it is damaged: ");
    assert!(line.contains(path.to_str().unwrap()), "{line}");
    assert_eq!(fs::read(folder.join("counters.bad")).unwrap(), bytes);
    exhaust(&server);
}

#[test]
fn two_processes_do_not_share_a_file() {
    let folder = prepare("state_shared");
    let _server = serve(&folder);
    let args = args(&folder);
    let start = [&["serve", "--http", "127.0.0.1:0"], &OTHERS[..]].concat();
    let mut second = command(&start);
    let output = second.args(&args).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    let word = "; give each its own file with --state\n";
    assert!(
        stderr.contains("error: another process keeps its counters in "),
        "{stderr}"
    );
    assert!(stderr.ends_with(word), "{stderr}");
}

#[test]
fn a_place_that_cannot_be_written_is_told_at_start() {
    let args = [
        "serve",
        "--state",
        "missing/counters",
        "--http",
        "127.0.0.1:0",
    ];
    let output = command(&[&args[..], &OTHERS[..]].concat())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    let start = "error: cannot keep counters in missing/counters: ";
    assert!(stderr.starts_with(start), "{stderr}");
}

#[test]
fn what_is_no_file_stays_where_it_is() {
    let folder = prepare("state_folder");
    fs::create_dir(folder.join("counters")).unwrap();
    let serve = [vec!["serve".to_owned()], args(&folder)].concat();
    let serve: Vec<&str> = serve.iter().map(String::as_str).collect();
    let output = command(&serve).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("counters is no file"), "{stderr}");
    assert!(folder.join("counters").is_dir(), "it was moved");
}

/// Others who may write to the folder would choose what is created.
#[test]
fn the_lock_creates_no_target_of_a_symlink() {
    let folder = prepare("state_lock_symlink");
    let target = folder.join("elsewhere");
    symlink(&target, folder.join("counters.lock")).unwrap();
    let args = args(&folder);
    let args: Vec<&str> = ["serve"]
        .into_iter()
        .chain(args.iter().map(String::as_str))
        .collect();
    let output = command(&args).output().unwrap();
    assert!(!output.status.success(), "{output:?}");
    assert!(!target.exists());
}
