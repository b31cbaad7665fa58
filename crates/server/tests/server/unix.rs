//! Unix sockets, and their files.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tidegate_server::{Address, ListenConfig, Server, ServerConfig, Stop};
use tokio::net::UnixStream;

use crate::harness::{Running, any_port, ask, post, scratch, try_call};

fn listen(path: &Path) -> ServerConfig {
    ServerConfig {
        http: vec![ListenConfig::new(Address::Unix(path.to_owned()))],
        ..ServerConfig::default()
    }
}

fn fault(config: ServerConfig, path: &Path) -> String {
    let error = Server::bind(config).unwrap_err().to_string();
    error.replace(&*path.to_string_lossy(), "SOCKET")
}

#[tokio::test]
async fn both_protocols_are_served_and_the_files_go_with_the_server() {
    let folder = scratch("unix_both");
    let (http, grpc) = (folder.join("http"), folder.join("grpc"));
    let mut config = listen(&http);
    config.grpc = listen(&grpc).http;
    config.grpc[0].socket_mode = Some(0o600);
    let running = Running::start(config);
    let mut io = UnixStream::connect(&http).await.unwrap();
    assert_eq!(ask(&mut io, &post()).await.status, 200);
    let io = UnixStream::connect(&grpc).await.unwrap();
    assert_eq!(try_call(io).await.as_deref(), Some("0"));
    let mode = fs::metadata(&grpc).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    running.ask_to_stop(Stop::Now);
    running.ended().await;
    assert!(!http.exists() && !grpc.exists());
}

#[tokio::test]
async fn the_socket_of_a_dead_server_is_replaced() {
    let path = scratch("unix_dead").join("socket");
    // The standard library leaves the file behind, as a server that was killed does.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let _running = Running::start(listen(&path));
    let mut io = UnixStream::connect(&path).await.unwrap();
    assert_eq!(ask(&mut io, &post()).await.status, 200);
}

#[tokio::test]
async fn the_socket_of_a_live_server_is_not() {
    let path = scratch("unix_live").join("socket");
    let _running = Running::start(listen(&path));
    let expected = "cannot listen on unix:SOCKET: a running server listens there; stop it first";
    assert_eq!(fault(listen(&path), &path), expected);
    let mut io = UnixStream::connect(&path).await.unwrap();
    assert_eq!(ask(&mut io, &post()).await.status, 200);
}

#[tokio::test]
async fn a_file_that_is_no_socket_is_left_alone() {
    let path = scratch("unix_file").join("precious");
    fs::write(&path, "data").unwrap();
    let expected = "cannot listen on unix:SOCKET: a file is there that is no socket; move it away";
    assert_eq!(fault(listen(&path), &path), expected);
    assert_eq!(fs::read_to_string(&path).unwrap(), "data");
}

#[tokio::test]
async fn what_another_put_in_its_place_is_left_alone() {
    let path = scratch("unix_another").join("socket");
    let running = Running::start(listen(&path));
    fs::remove_file(&path).unwrap();
    fs::write(&path, "data").unwrap();
    running.ask_to_stop(Stop::Now);
    running.ended().await;
    assert_eq!(fs::read_to_string(&path).unwrap(), "data");
}

#[tokio::test]
async fn every_listener_that_cannot_be_had_is_named() {
    let folder: PathBuf = scratch("unix_every");
    let path = folder.join("missing").join("socket");
    let taken = Server::bind(ServerConfig {
        http: vec![any_port()],
        ..ServerConfig::default()
    })
    .unwrap();
    let taken_address = taken.bound()[0].address.clone();
    let mut config = listen(&path);
    config.grpc = vec![ListenConfig::new(taken_address.clone())];
    let said = fault(config, &path);
    let faults: Vec<&str> = said.lines().collect();
    assert_eq!(faults.len(), 2, "{said}");
    assert!(faults[0].starts_with("cannot listen on unix:SOCKET: No such file"));
    let start = format!("cannot listen on {taken_address}: Address already in use");
    assert!(faults[1].starts_with(&start), "{said}");
}
