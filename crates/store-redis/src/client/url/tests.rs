use std::path::Path;
use std::time::Duration;

use super::*;
use crate::client::config::Verification;

fn config(url: &str) -> ClientConfig {
    ClientConfig::from_url(url).unwrap_or_else(|error| panic!("{url}: {error}"))
}

fn error(url: &str) -> String {
    ClientConfig::from_url(url).unwrap_err().to_string()
}

fn single(url: &str) -> String {
    match config(url).deployment {
        Deployment::Single(address) => address.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_host_has_a_port_and_a_database() {
    assert_eq!(single("redis://localhost"), "localhost:6379");
    assert_eq!(single("redis://localhost/"), "localhost:6379");
    assert_eq!(single("redis://127.0.0.1:7000/3"), "127.0.0.1:7000");
    assert_eq!(config("redis://127.0.0.1:7000/3").database, 3);
    assert_eq!(single("redis://[::1]:7000"), "[::1]:7000");
    assert_eq!(single("redis://[::1]"), "[::1]:6379");
    assert_eq!(config("redis://a?db=2").database, 2);
}

#[test]
fn credentials_are_decoded_and_never_shown() {
    let some = |user: Option<&str>, password: &str| {
        Some(Credentials {
            user: user.map(str::to_owned),
            password: password.to_owned(),
            password_file: None,
        })
    };
    assert_eq!(config("redis://:pw@a").credentials, some(None, "pw"));
    let written = config("redis://me:p%40s%2Fs%3a@a");
    assert_eq!(written.credentials, some(Some("me"), "p@s/s:"));
    assert!(!format!("{written:?}").contains("p@s"));
    // Forgotten to write as %XX, but not to be mistaken.
    assert_eq!(
        config("redis://me:p@s/s@a:1").credentials,
        some(Some("me"), "p@s/s")
    );
    assert_eq!(
        error("redis://me@a"),
        "a user without a password; write USER:PASSWORD@ or :PASSWORD@"
    );
    for url in [
        "secret://x",
        "redis://:secret%zz@a",
        "redis://:secret@a b",
        "redis://:secret@",
        "redis://:secret@a/b/c",
        "redis+sentinel://:secret@a",
        "me:secret@host:1",
        "redis://me:secret",
        "redis://:sec?secret@a",
        "redis://:secret?more@a?timeout=5ms",
        "redis://:secret?more=x@a",
        "redis://:p@ss?secret@a",
        "redis://:p@ss?timeout=5ms&secret@a",
    ] {
        let error = error(url);
        assert!(
            !error.contains("secret") || url.starts_with("secret:"),
            "{error}"
        );
    }
}

#[test]
fn a_socket_has_three_slashes() {
    assert_eq!(single("redis+unix:///run/redis.sock"), "/run/redis.sock");
    let config = config("unix://me:pw@/a%20b.sock?db=4");
    assert_eq!(
        config.deployment,
        Deployment::Single(Address::Unix(Path::new("/a b.sock").into()))
    );
    assert_eq!(config.database, 4);
    assert!(config.credentials.is_some());
    assert!(error("redis+unix://run/redis.sock").contains("three slashes"));
}

#[test]
fn sentinels_have_a_master() {
    let url = "redis+sentinel://:pw@s1,s2:7,[::1]:8/main/2?sentinel_user=u&sentinel_password=x%26y";
    let config = config(url);
    assert_eq!(
        config.deployment,
        Deployment::Sentinel {
            sentinels: vec![
                Address::tcp("s1", 26379),
                Address::tcp("s2", 7),
                Address::tcp("::1", 8)
            ],
            master: "main".to_owned(),
            credentials: Some(Credentials {
                user: Some("u".to_owned()),
                password: "x&y".to_owned(),
                password_file: None,
            }),
        }
    );
    assert_eq!(config.database, 2);
    assert!(error("redis+sentinel://s1").contains("no name of a master"));
    assert!(error("redis+sentinel://s1/m?sentinel_user=u").contains("without a password"));
}

#[test]
fn a_cluster_has_seeds_and_one_database() {
    let config = config("rediss+cluster://a:1,b?insecure=true");
    assert_eq!(
        config.deployment,
        Deployment::Cluster {
            seeds: vec![Address::tcp("a", 1), Address::tcp("b", 6379)]
        }
    );
    assert!(config.tls.is_some());
    assert!(error("redis+cluster://a/1").contains("databases"));
    assert!(error("redis+cluster://a?db=1").contains("databases"));
    assert!(error("redis://a,b").contains("redis+cluster://"));
}

#[test]
fn encryption_has_files() {
    let tls = config("rediss://a?ca=/ca.pem&cert=c%26.pem&key=k.pem").tls;
    let tls = tls.expect("it is encrypted");
    assert_eq!(tls.ca.as_deref(), Some(Path::new("/ca.pem")));
    assert_eq!(tls.certificate.as_deref(), Some(Path::new("c&.pem")));
    assert_eq!(tls.key.as_deref(), Some(Path::new("k.pem")));
    assert_eq!(tls.verification, Verification::Full);
    assert!(error("redis://a?ca=x").contains("write rediss"));
    assert!(error("rediss://a?insecure=1").contains("true or false"));
}

#[test]
fn times_have_units() {
    let config = config("redis://a?timeout=20ms&min_timeout=2ms&connect_timeout=3s");
    assert_eq!(config.timeout, Some(Duration::from_millis(20)));
    assert_eq!(config.min_timeout, Some(Duration::from_millis(2)));
    assert_eq!(config.connect_timeout, Some(Duration::from_secs(3)));
    for bad in [
        "5",
        "ms",
        "0ms",
        "1us",
        "2h",
        "-1s",
        "99999999999999999999s",
    ] {
        let error = error(&format!("redis://a?timeout={bad}"));
        assert!(error.starts_with("timeout is wrong"), "{error}");
    }
}

#[test]
fn faults_say_what_to_write() {
    for (url, expected) in [
        ("", "is no way to reach Redis"),
        ("localhost:6379", "\"localhost\" is no way to reach Redis"),
        ("http://a", "\"http\" is no way to reach Redis"),
        ("redis://", "there is no host"),
        ("redis://:6379", "\":6379\" is no HOST:PORT"),
        ("redis://a:b", "\"a:…\" is no HOST:PORT"),
        ("redis://a:70000", "is no HOST:PORT"),
        ("redis://a:0", "is no HOST:PORT"),
        ("redis://::1", "an IPv6 address goes in brackets"),
        ("redis://[::1", "is no HOST:PORT"),
        ("redis://[x]", "is no HOST:PORT"),
        ("redis://[::1]7", "is no HOST:PORT"),
        ("redis://a/x", "\"x\" is no number of a database"),
        ("redis://a/1/2", "is too much"),
        ("redis://a?tiemout=1s", "\"tiemout\" is no parameter"),
        ("redis://:%f@a", "a % must be written %25"),
        ("redis://:%ff@a", "a % must be written %25"),
    ] {
        let error = error(url);
        assert!(error.contains(expected), "{url}: {error}");
    }
}
