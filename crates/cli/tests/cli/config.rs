//! `tidegate config`: where settings come from, and what is wrong with them.

use std::fs;
use std::path::Path;

use serde_json::Value as Json;

use crate::program::{check, command, scratch};

/// The settings in force, as JSON.
fn effective(args: &[&str], variables: &[(&str, &str)]) -> Json {
    let args = [&["config", "--format", "json"], args].concat();
    let output = command(&args)
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stderr}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(args: &[&str], variables: &[(&str, &str)]) -> String {
    let output = command(args)
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_defaults_are_as_documented() {
    check("config_defaults", &["config"]);
}

#[test]
fn all_faults_of_a_file_are_told_at_once() {
    check(
        "config_faults",
        &["config", "--config", "config_faults.yaml"],
    );
    check("config_missing", &["config", "--config", "missing.yaml"]);
}

#[test]
fn flags_go_before_the_environment_and_that_before_the_file() {
    let file = ["--config", "config.yaml"];
    let memory = |args: &[&str], variables: &[(&str, &str)]| {
        effective(args, variables)["store"]["max_memory"].clone()
    };
    let variable = [("TIDEGATE_STORE_MAX_MEMORY", "3MiB")];
    let flag = [&file[..], &["--max-memory", "4MiB"]].concat();
    assert_eq!(memory(&[], &[]), "256 MiB");
    assert_eq!(memory(&file, &[]), "2 MiB");
    assert_eq!(memory(&file, &variable), "3 MiB");
    assert_eq!(memory(&flag, &variable), "4 MiB");
}

#[test]
fn every_value_says_who_set_it() {
    let variables = [("TIDEGATE_DRAIN_GRACE", "3s"), ("LOG_LEVEL", "debug")];
    let args = ["config", "--config", "config.yaml", "--threads", "2"];
    let text = text(&args, &variables);
    for (setting, origin) in [
        ("  max_memory: 2 MiB", "file"),
        ("  grace: 3s", "env TIDEGATE_DRAIN_GRACE"),
        ("    level: debug", "env LOG_LEVEL"),
        ("threads: 2", "flag --threads"),
        ("shadow: false", "default"),
    ] {
        let line = text.lines().find(|line| line.starts_with(setting));
        let line = line.unwrap_or_else(|| panic!("no {setting} in {text}"));
        assert!(line.ends_with(&format!("# {origin}")), "{line}");
    }
}

#[test]
fn what_is_printed_can_be_fed_back() {
    let variables = [
        ("TIDEGATE_LISTENERS_GRPC", "unix:/run/tidegate.sock"),
        ("TIDEGATE_LISTENERS_HTTP_TLS_CERT", "a: b.pem"),
        ("TIDEGATE_LISTENERS_HTTP_TLS_KEY", "key.pem"),
        (
            "TIDEGATE_CLIENT_ADDRESS_TRUSTED_PROXIES",
            "10.0.0.0/8, unix",
        ),
        (
            "TIDEGATE_AUTHORIZE_DESCRIPTORS",
            "[{user: 'header:x-user', a: path}, address_hierarchy]",
        ),
        ("TIDEGATE_ADMIN_TOKEN", "hunter2"),
    ];
    let printed = text(&["config"], &variables);
    let path = scratch("fed_back").join("tidegate.yaml");
    fs::write(&path, &printed).unwrap();
    let mut before = effective(&[], &variables);
    let after = effective(&["--config", path.to_str().unwrap()], &[]);
    // The secret is not printed, so it is not fed back.
    before["admin"]["token"] = Json::Null;
    assert_eq!(after, before);
    assert!(!printed.contains("hunter2"), "{printed}");
}

#[test]
fn secrets_are_redacted() {
    let variables = [("TIDEGATE_ADMIN_TOKEN", "hunter2")];
    assert_eq!(effective(&[], &variables)["admin"]["token"], "redacted");
    let bad = [("TIDEGATE_ADMIN_TOKEN", "hunter 2")];
    let output = command(&["config"]).envs(bad).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("TIDEGATE_ADMIN_TOKEN"), "{stderr}");
    assert!(!stderr.contains("hunter"), "{stderr}");
}

#[test]
fn no_fault_shows_a_secret() {
    let check = |variables: &[(&str, &str)], yaml: &str, told: &str| {
        let folder = scratch("no_secret");
        fs::write(folder.join("tidegate.yaml"), yaml).unwrap();
        let mut command = command(&["config"]);
        command.envs(variables.iter().copied()).current_dir(&folder);
        let output = command.output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains(told), "{stderr}");
        assert!(!stderr.contains("hunter"), "{stderr}");
    };
    let token = "`admin.token` takes a secret, not this";
    check(&[], "admin: {token: \"hunter 2\"}", token);
    check(&[], "admin:\n  token: hunter 2", token);
    let beside = "admin: {token: hunter2, protect_reeds: true}";
    check(&[], beside, "unknown field `protect_reeds`");
    let login = "observing: {traces: {endpoint: \"http://me:hunter2@host:4318\"}}";
    check(&[], login, "`observing.traces.endpoint` takes");
    let mistyped = [("TIDEGATE_ADMIN_TOKN", "hunter2")];
    check(&mistyped, "", "unknown variable `TIDEGATE_ADMIN_TOKN`");
    let redis = [
        ("RUNTIME_ROOT", "/data"),
        ("REDIS_URL", "redis://:hunter2@redis:none"),
        ("REDIS_AUTH", "hunter3"),
    ];
    check(&redis, "", "`REDIS_URL` takes memory or the URL of a Redis");
    let store = "store: \"redis://:hunter2@host:none\"";
    check(&[], store, "takes memory or the URL of a Redis");
    let option = "store: \"redis+sentinel://host/?sentinel_password=hunter2\"";
    check(&[], option, "takes memory or the URL of a Redis");
}

/// One file may serve a laptop and a fleet, so what only matters with Redis is told and not refused.
#[test]
fn what_does_nothing_without_redis_is_told() {
    let check = |args: &[&str], yaml: &str, told: Option<&str>| {
        let folder = scratch("idle");
        fs::write(folder.join("tidegate.yaml"), yaml).unwrap();
        let mut command = command(&[&["config"], args].concat());
        let output = command.current_dir(&folder).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let idle = text.lines().find(|line| line.contains("without effect"));
        let told = told.map(|told| format!("# without effect: {told}"));
        assert_eq!(idle, told.as_deref());
    };
    let memory = "counters are in the memory of this process; share them with --store redis://…";
    check(&[], "", None);
    let flag = format!("--consistency: {memory}");
    check(&["--consistency", "strict"], "", Some(&flag));
    let fleet = "store: {timeout: 9ms, tls: {ca: ca.pem}}\nregions: {eu: redis://eu}";
    let all = format!("store.timeout, store.tls.ca, regions: {memory}");
    check(&[], fleet, Some(&all));
    check(&["--store", "rediss://redis"], fleet, None);
    let plain = "store.tls.ca: the store is reached without TLS; write rediss:// in its URL";
    check(&["--store", "redis://redis"], fleet, Some(plain));
}

#[test]
fn what_would_serve_nobody_is_a_fault() {
    let check = |yaml: &str, told: &str| {
        let folder = scratch("nobody");
        fs::write(folder.join("tidegate.yaml"), yaml).unwrap();
        let mut command = command(&["config"]);
        let output = command.current_dir(&folder).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains(told), "{stderr}");
    };
    check("listeners: {http: off, grpc: off}", "nobody could ask");
    check("limits: {head_bytes: 4KiB}", "write at least 8 KiB");
    check("limits: {body_bytes: 0}", "write at least 256 B");
    check("threads: 3000", "write at most 1024");
    let names = "answers: {headers: named, names: {limit: Content-Length}}";
    check(names, "no name that HTTP needs itself");
}

#[test]
fn who_protects_reading_must_have_a_token() {
    let check = |token: &[(&str, &str)], code| {
        let variables = [&[("TIDEGATE_ADMIN_PROTECT_READS", "true")], token].concat();
        let output = command(&["config"]).envs(variables).output().unwrap();
        assert_eq!(output.status.code(), Some(code));
    };
    check(&[], 1);
    check(&[("TIDEGATE_ADMIN_TOKEN", "hunter2")], 0);
    check(&[("TIDEGATE_ADMIN_TOKEN_FILE", "token")], 0);
}

#[test]
fn a_file_in_the_working_folder_is_found() {
    let folder = scratch("found");
    fs::write(folder.join("tidegate.yaml"), "threads: 7\n").unwrap();
    let output = command(&["config", "--format", "json"])
        .current_dir(&folder)
        .output()
        .unwrap();
    let effective: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(effective["threads"], 7);
}

#[test]
fn variables_that_kubernetes_sets_for_a_service_are_no_settings() {
    let variables = [
        ("TIDEGATE_SERVICE_HOST", "10.0.0.1"),
        ("TIDEGATE_SERVICE_PORT_GRPC", "8081"),
        ("TIDEGATE_PORT", "tcp://10.0.0.1:8081"),
        ("TIDEGATE_PORT_8081_TCP_ADDR", "10.0.0.1"),
        ("TIDEGATE_ADMIN_PORT_6070_TCP", "tcp://10.0.0.1:6070"),
    ];
    assert_eq!(effective(&[], &variables), effective(&[], &[]));
}

#[test]
fn an_unknown_variable_is_a_fault() {
    let check = |name: &str, value: &str, told: &str| {
        let output = command(&["config"]).env(name, value).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains(told), "{stderr}");
    };
    let memory = "did you mean `TIDEGATE_STORE_MAX_MEMORY`?";
    check("TIDEGATE_STORE_MAXMEMORY", "1GiB", memory);
    // Not one that Kubernetes sets, for that would be a URL.
    check("TIDEGATE_GRPC_PORT", "8081", "unknown variable");
}

/// Every setting, with a name for each level of blocks.
fn paths(tree: &Json, path: &str, found: &mut Vec<String>) {
    match tree {
        Json::Object(fields) => {
            for (name, inner) in fields {
                let path = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                paths(inner, &path, found);
            }
        }
        _ => found.push(path.to_owned()),
    }
}

#[test]
fn every_setting_is_in_the_docs_and_has_its_variable() {
    let docs = fs::read_to_string(root().join("docs/config.md")).unwrap();
    let mut settings = Vec::new();
    paths(&effective(&[], &[]), "", &mut settings);
    assert!(settings.len() > 40, "{settings:?}");
    for path in settings {
        // The five listeners have the same settings but for the address, documented once.
        let shared = path
            .strip_prefix("listeners.")
            .and_then(|rest| rest.split_once('.'));
        let listed = match shared {
            Some((_, name)) if name != "address" => format!("`listeners.*.{name}`"),
            _ => format!("`{path}`"),
        };
        assert!(
            docs.contains(&listed),
            "docs/config.md does not list {path}"
        );
        // A value that nothing takes shows that the variable is looked at.
        let variable = format!("TIDEGATE_{}", path.replace('.', "_").to_uppercase());
        let output = command(&["config"])
            .env(&variable, "\u{1}\u{2}")
            .output()
            .unwrap();
        let told =
            String::from_utf8(output.stderr).unwrap() + &String::from_utf8(output.stdout).unwrap();
        assert!(
            told.contains(&variable),
            "{variable} is not looked at: {told}"
        );
        assert!(!told.contains("unknown variable"), "{variable} is unknown");
    }
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

#[test]
fn the_schemas_are_those_of_the_repository() {
    for (what, file) in [
        ("config", "config.schema.json"),
        ("rules", "rules.schema.json"),
    ] {
        let path = root().join("deploy/schema").join(file);
        let printed = text(&["config", "--schema", what], &[]);
        if std::env::var_os("TIDEGATE_UPDATE_FIXTURES").is_some() {
            fs::write(&path, &printed).unwrap();
        }
        assert_eq!(printed, fs::read_to_string(&path).unwrap(), "{file}");
    }
}

#[test]
fn the_files_in_the_docs_are_good() {
    let check = |page: &str, expected: usize| {
        let docs = fs::read_to_string(root().join("docs").join(page)).unwrap();
        let blocks = docs.split("```yaml config\n").skip(1);
        let mut n_blocks = 0;
        for (block, _) in blocks.filter_map(|rest| rest.split_once("```")) {
            let path = scratch(&format!("docs_{page}_{n_blocks}")).join("tidegate.yaml");
            fs::write(&path, block).unwrap();
            effective(&["--config", path.to_str().unwrap()], &[]);
            n_blocks += 1;
        }
        assert_eq!(n_blocks, expected, "{page}");
    };
    check("config.md", 3);
    check("gateway.md", 1);
    check("identity.md", 1);
}
