//! The files of TLS: what is wrong with them, and what happens when they change.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tidegate_server::{ListenConfig, Server, ServerConfig, TlsConfig};
use tokio::time::{interval, timeout};

use crate::harness::{LONG, Running, any_port, ask, post, scratch, try_ask};
use crate::pki::{Authority, Client};

fn secured(tls: &TlsConfig) -> ServerConfig {
    let listen = ListenConfig {
        tls: Some(tls.clone()),
        ..any_port()
    };
    ServerConfig {
        http: vec![listen],
        ..ServerConfig::default()
    }
}

async fn is_answered(running: &Running, client: &Client<'_>) -> bool {
    let Some(mut io) = client.connect(running.connect(0).await).await else {
        return false;
    };
    let reply = try_ask(&mut io, &post()).await;
    reply.is_some_and(|reply| reply.status == 200)
}

#[tokio::test]
async fn new_files_come_into_force_by_themselves() {
    let (before, after) = (Authority::new(), Authority::new());
    let folder = scratch("by_themselves");
    let tls = before.vouch_for(&["localhost"]).write(&folder);
    let running = Running::start(secured(&tls));
    let client = before.client();
    let mut old = client.connect(running.connect(0).await).await.unwrap();
    assert_eq!(ask(&mut old, &post()).await.status, 200);

    after.vouch_for(&["localhost"]).write(&folder);
    let taken = async {
        let mut looks = interval(Duration::from_millis(100));
        while !is_answered(&running, &after.client()).await {
            looks.tick().await;
        }
    };
    timeout(LONG, taken).await.expect("the new certificate");
    assert!(!is_answered(&running, &before.client()).await);
    // A connection made before keeps what it has.
    assert_eq!(ask(&mut old, &post()).await.status, 200);
}

#[tokio::test]
async fn a_bad_certificate_never_replaces_a_good_one() {
    let servers = Authority::new();
    let folder = scratch("never_replaces");
    let good = servers.vouch_for(&["localhost"]);
    let tls = good.write(&folder);
    let running = Running::start(secured(&tls));
    let other = servers.vouch_for(&["localhost"]);
    let texts = ["", "no certificate at all", &other.certificate];
    for (text, expected) in texts.into_iter().zip([
        "there is no certificate in ",
        "there is no certificate in ",
        "cannot use ",
    ]) {
        fs::write(&tls.certificate, text).unwrap();
        let faults = running.certificates.reload();
        assert!(
            faults.iter().any(|it| it.to_string().starts_with(expected)),
            "{faults:?}"
        );
        // It has been told once.
        assert!(running.certificates.reload().is_empty());
        assert!(is_answered(&running, &servers.client()).await);
    }
    fs::remove_file(&tls.certificate).unwrap();
    assert_eq!(running.certificates.reload().len(), 1);
    assert!(is_answered(&running, &servers.client()).await);
    good.write(&folder);
    assert!(running.certificates.reload().is_empty());
    assert!(is_answered(&running, &servers.client()).await);
}

#[tokio::test]
async fn a_new_authority_for_clients_takes_effect_too() {
    let (servers, before, after) = (Authority::new(), Authority::new(), Authority::new());
    let folder = scratch("new_authority");
    let mut tls = servers.vouch_for(&["localhost"]).write(&folder);
    let path = folder.join("clients.crt");
    tls.client_ca = Some(path.clone());
    fs::write(&path, before.pem()).unwrap();
    let running = Running::start(secured(&tls));
    let (old, new) = (before.vouch_for(&["envoy"]), after.vouch_for(&["envoy"]));
    let is_in = async |identity| is_answered(&running, &servers.client().with(identity)).await;
    assert!(is_in(&old).await && !is_in(&new).await);
    fs::write(&path, after.pem()).unwrap();
    assert!(running.certificates.reload().is_empty());
    assert!(!is_in(&old).await && is_in(&new).await);
}

/// Checks what a server says of files that are no good.
#[track_caller]
fn check_refused(tls: &TlsConfig, folder: &Path, expected: &str) {
    let error = Server::bind(secured(tls)).unwrap_err().to_string();
    let said = error.replace(&*folder.to_string_lossy(), "…");
    assert_eq!(said, format!("cannot use TLS on 127.0.0.1:0: {expected}"));
}

#[tokio::test]
async fn bad_files_are_named_at_start() {
    let servers = Authority::new();
    let folder = scratch("at_start");
    let good = servers.vouch_for(&["localhost"]).write(&folder);

    let missing = TlsConfig {
        key: folder.join("missing"),
        ..good.clone()
    };
    let text = "cannot read …/missing: No such file or directory (os error 2)";
    check_refused(&missing, &folder, text);

    let swapped = TlsConfig::new(&good.key, &good.certificate);
    let text = "there is no certificate in …/tls.key; it must be written in PEM";
    check_refused(&swapped, &folder, text);

    let no_key = TlsConfig::new(&good.certificate, &good.certificate);
    let text = "there is no private key in …/tls.crt; it must be written in PEM";
    check_refused(&no_key, &folder, text);

    let large = TlsConfig::new(folder.join("large"), &good.key);
    fs::write(&large.certificate, vec![b'x'; 1024 * 1024 + 1]).unwrap();
    let text = "…/large has more than 1048576 bytes; is it the right file?";
    check_refused(&large, &folder, text);
}

#[tokio::test]
async fn bad_words_on_clients_are_named_at_start() {
    let servers = Authority::new();
    let folder = scratch("on_clients");
    let good = servers.vouch_for(&["localhost"]).write(&folder);

    let alone = TlsConfig {
        client_names: vec!["envoy".to_owned()],
        ..good.clone()
    };
    let text = "names of clients are given, but no CA to vouch for them";
    check_refused(&alone, &folder, text);

    let odd = TlsConfig {
        client_ca: Some(good.certificate.clone()),
        client_names: vec!["no name".to_owned()],
        ..good.clone()
    };
    let text = "\"no name\" is no name of a client; write a DNS name, an IP address or a URI";
    check_refused(&odd, &folder, text);
}
