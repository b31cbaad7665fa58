//! The executable in the place of envoyproxy/ratelimit.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::program::{check_with, command, scratch};
use crate::server::{Server, USER, number, value};

#[test]
fn it_starts_as_the_reference_does_and_says_what_it_does_not_do() {
    let root = scratch("runtime_root");
    let folder = root.join("ratelimit/config/deep");
    fs::create_dir_all(&folder).unwrap();
    // Every file is rules there, whatever its name and however deep.
    let shop = "domain: shop\ndescriptors: [{key: user_id, rate_limit: {unit: year, requests_per_unit: 2}}]\n";
    fs::write(folder.join("shop"), shop).unwrap();
    fs::write(root.join("ratelimit/config/.hidden"), "not rules").unwrap();
    symlink("..", folder.join("circle")).unwrap();
    let variables = [
        ("RUNTIME_ROOT", root.to_str().unwrap()),
        ("RUNTIME_SUBDIRECTORY", "ratelimit"),
        ("LIMIT_RESPONSE_HEADERS_ENABLED", "true"),
        ("LIMIT_REMAINING_HEADER", "X-Left"),
        ("STATSD_HOST", "localhost"),
        ("REDIS_URL", "redis:6379"),
        ("REDIS_POOL_SIZE", "10"),
        ("TIDEGATE_STORE_ENGINE", "memory"),
    ];
    let mut server = Server::start_with(&[], &variables);
    assert_eq!(value(&server.banner, "charging"), "every_match");
    assert!(value(&server.banner, "instead of").contains("envoyproxy/ratelimit"));
    let line = server.next_line("not supported: STATSD_HOST");
    assert!(line.contains("scrape /metrics"), "{line}");
    let line = server.next_line("not supported: REDIS_POOL_SIZE");
    assert!(line.contains("as one write"), "{line}");
    let answer = server.ask(USER);
    assert_eq!(number(&answer, "x-left"), Some(1), "{answer}");
}

#[test]
fn a_swapped_image_that_shared_counters_says_what_to_do() {
    let variables = [
        ("RUNTIME_ROOT", "data"),
        ("BACKEND_TYPE", "memcache"),
        ("MEMCACHE_HOST_PORT", "memcached:11211"),
    ];
    check_with("reference_memcached", &["serve"], &variables);
}

#[test]
fn logs_are_json_if_they_are_asked_to_be() {
    let args = [
        "serve",
        "--http",
        "127.0.0.1:0",
        "--grpc",
        "off",
        "--admin",
        "off",
    ];
    let mut child = command(&args)
        .envs([("LOG_FORMAT", "json"), ("DISABLE_STATS", "false")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    let lines = std::io::BufRead::lines(stderr).map(Result::unwrap);
    let mut messages = Vec::new();
    for line in lines {
        let event: serde_json::Value = serde_json::from_str(&line).unwrap();
        let message = event["message"].as_str().unwrap().to_owned();
        let is_last = message.starts_with("serving");
        messages.push(message);
        if is_last {
            break;
        }
    }
    child.kill().unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(
        messages[0].starts_with("not supported: DISABLE_STATS"),
        "{messages:?}"
    );
    assert!(
        messages.iter().any(|message| message == "listening"),
        "{messages:?}"
    );
    assert_eq!(output.stdout, b"", "the banner is for people");
}

/// The variables of the reference go before the settings of the image that takes its place.
#[test]
fn the_image_leaves_room_for_the_variables_of_the_reference() {
    let image = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../deploy/docker/tidegate.yaml"
    );
    let settings = |variables: &[(&str, &str)]| {
        let args = ["config", "--format", "json", "--config", image];
        let output = command(&args)
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        let settings: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let address = |name: &str| settings["listeners"][name]["address"].clone();
        let listeners = ["http", "grpc", "admin"].map(address);
        (listeners, settings["rules"]["paths"].clone())
    };
    let (listeners, rules) = settings(&[]);
    assert_eq!(
        listeners,
        ["0.0.0.0:8080", "0.0.0.0:8081", "127.0.0.1:6070"]
    );
    assert_eq!(rules, serde_json::json!(["/rules"]));
    let (listeners, rules) = settings(&[("RUNTIME_ROOT", "/data"), ("PORT", "9000")]);
    assert_eq!(listeners, ["0.0.0.0:9000", "0.0.0.0:8081", "0.0.0.0:6070"]);
    assert_eq!(rules, serde_json::json!(["/data/config"]));
}

/// The image begins empty: `rediss://` and `https://` upstreams would trust nobody there.
#[test]
fn the_image_has_the_certificate_authorities_of_the_system() {
    let dockerfile = include_str!("../../../../deploy/docker/Dockerfile");
    // Where rustls-native-certs looks first.
    let bundle = "/etc/ssl/certs/ca-certificates.crt";
    let has_line = |parts: &[&str]| {
        let mut lines = dockerfile.lines().filter(|line| !line.starts_with('#'));
        lines.any(|line| parts.iter().all(|part| line.contains(part)))
    };
    assert!(has_line(&["apk add ", " ca-certificates "]));
    assert!(has_line(&[
        "install -D ",
        bundle,
        &format!(" /image{bundle}")
    ]));
    assert!(has_line(&["COPY --from=build /image /"]));
}

#[test]
fn called_by_the_name_of_the_reference_it_serves() {
    let program = Path::new(env!("CARGO_BIN_EXE_tidegate"));
    let link = scratch("called").join("ratelimit");
    symlink(program, &link).unwrap();
    // Compose puts `command:` after the entry point of an image.
    let ways: [(&Path, &[&str]); 3] = [
        (&link, &[]),
        (&link, &["/bin/ratelimit"]),
        (program, &["/bin/ratelimit"]),
    ];
    for (called, arguments) in ways {
        let output = Command::new(called)
            .args(arguments)
            .env_clear()
            .env("RUNTIME_ROOT", "nowhere")
            .output()
            .unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains("cannot read nowhere/config"), "{stderr}");
        assert!(stderr.contains("hint: RUNTIME_ROOT,"), "{stderr}");
    }
}
