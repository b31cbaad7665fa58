//! Who we are to a server, and where it listens.

use std::fs;
use std::sync::Arc;

use tidegate_store_redis::client::{Client, ClientConfig, Credentials, KnockError};
use tidegate_store_redis::test_util::{
    Certificates, Folder, Listening, PATIENCE, RedisServer, ServerOptions,
};

use super::{ask, client, insist, text, until_open};

fn settings(settings: &[&[&str]]) -> Vec<Vec<String>> {
    let owned = |setting: &&[&str]| setting.iter().map(|&word| word.to_owned()).collect();
    settings.iter().map(owned).collect()
}

#[tokio::test]
async fn a_unix_socket_is_a_server_too() {
    let server = RedisServer::start_unix();
    let client = client(&format!("{}?db=3", server.url()));
    assert_eq!(text(&client, &["SET", "a", "1"]).await, "OK");
    let info = text(&client, &["INFO", "keyspace"]).await;
    assert!(info.contains("db3:keys=1"), "{info}");
}

#[tokio::test]
async fn a_database_is_chosen() {
    let server = RedisServer::start();
    let client = client(&format!("{}/5", server.url()));
    assert_eq!(text(&client, &["SET", "a", "1"]).await, "OK");
    let info = text(&client, &["INFO", "keyspace"]).await;
    assert!(info.contains("db5:keys=1"), "{info}");
}

#[tokio::test]
async fn a_password_opens_the_door_and_a_wrong_one_does_not() {
    let server = RedisServer::start_with(ServerOptions {
        settings: settings(&[&["requirepass", "p@ss"]]),
        credentials: Some(":p@ss".to_owned()),
        ..ServerOptions::default()
    });
    let good = client(&server.url());
    assert_eq!(text(&good, &["PING"]).await, "PONG");
    for url in [
        format!("redis://:guess@127.0.0.1:{}", server.port()),
        format!("redis://127.0.0.1:{}", server.port()),
    ] {
        let bad = client(&url);
        let error = ask(&bad, &["PING"]).await.unwrap_err().to_string();
        assert!(
            error.contains("WRONGPASS") || error.contains("NOAUTH"),
            "{error}"
        );
        assert!(!error.contains("guess"), "{error}");
        until_open(&bad, &["PING"]).await;
    }
}

#[tokio::test]
async fn a_user_may_do_what_the_acl_lets_it() {
    let server = RedisServer::start();
    server.must(&[
        "ACL", "SETUSER", "limiter", "on", ">s3/cret", "~tg:*", "+set", "+ping",
    ]);
    let client = client(&format!(
        "redis://limiter:s3%2Fcret@127.0.0.1:{}",
        server.port()
    ));
    assert_eq!(text(&client, &["SET", "tg:a", "1"]).await, "OK");
    let error = ask(&client, &["GET", "tg:a"]).await.unwrap_err();
    assert!(error.to_string().contains("NOPERM"), "{error}");
    // The user may not ask for the role, which must not keep the breaker open.
    until_open(&client, &["GET", "tg:a"]).await;
    super::insist(&client, &["SET", "tg:a", "2"]).await;
}

#[tokio::test]
async fn an_encrypted_server_proves_who_it_is() {
    let certificates = Arc::new(Certificates::new());
    let path = |path: std::path::PathBuf| path.display().to_string();
    let (ca, certificate, key) = (
        path(certificates.authority()),
        path(certificates.certificate()),
        path(certificates.key()),
    );
    let server = RedisServer::start_with(ServerOptions {
        listening: Listening::Tls(Arc::clone(&certificates)),
        ..ServerOptions::default()
    });
    let mutual = client(&format!("{}?{}", server.url(), certificates.query()));
    assert_eq!(text(&mutual, &["PING"]).await, "PONG");
    let unverified = format!(
        "{}?insecure=true&cert={certificate}&key={key}",
        server.url()
    );
    assert_eq!(text(&client(&unverified), &["PING"]).await, "PONG");

    let others = path(Certificates::new().authority());
    // The folder is gone with its value, so there is nothing to read.
    let config = tidegate_store_redis::client::ClientConfig::from_url(&format!(
        "{}?ca={others}",
        server.url()
    ));
    let error = tidegate_store_redis::client::Client::new(&config.unwrap()).unwrap_err();
    assert!(error.to_string().starts_with("cannot read"), "{error}");
    let others = Certificates::new();
    let stranger = client(&format!("{}?ca={}", server.url(), path(others.authority())));
    let error = ask(&stranger, &["PING"]).await.unwrap_err().to_string();
    assert!(error.contains("invalid peer certificate"), "{error}");
    let nobody = client(&format!("{}?ca={ca}", server.url()));
    let turned = nobody.knock(PATIENCE).await.unwrap_err();
    assert!(
        matches!(&turned, KnockError::Turned(text) if text.contains("CertificateRequired")),
        "it wants our certificate: {turned:?}"
    );
}

#[tokio::test]
async fn a_password_file_is_read_again_for_the_next_connection() {
    let server = RedisServer::start_with(ServerOptions {
        settings: settings(&[&["requirepass", "old"]]),
        credentials: Some(":old".to_owned()),
        ..ServerOptions::default()
    });
    let folder = Folder::new();
    let path = folder.path().join("password");
    fs::write(&path, "old\n").unwrap();
    let mut config =
        ClientConfig::from_url(&format!("redis://127.0.0.1:{}", server.port())).unwrap();
    config.connect_timeout = Some(PATIENCE);
    config.credentials = Some(Credentials {
        user: None,
        password: "old".to_owned(),
        password_file: Some(path.clone()),
    });
    let client = Client::new(&config).unwrap().with_timeout(PATIENCE);
    assert_eq!(text(&client, &["PING"]).await, "PONG");
    fs::write(&path, "new\n").unwrap();
    assert_eq!(
        text(&client, &["CONFIG", "SET", "requirepass", "new"]).await,
        "OK"
    );
    // Its own connection too.
    let _ = ask(
        &client,
        &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no"],
    )
    .await;
    insist(&client, &["SET", "a", "1"]).await;
}
