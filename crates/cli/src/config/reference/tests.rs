use std::ffi::OsString;

use serde_json::Value as Json;

use super::super::environment::Environment;
use super::super::raw::{Origin, RawConfig};
use super::super::value::{Engine, RedisUrl};
use super::super::{self as config, Loaded};
use super::names::MOGRIFIER;
use super::*;
use crate::args::SettingArgs;
use crate::failure::Failure;

/// Reads an environment of these variables and nothing else.
fn load(variables: &[(&str, &str)]) -> Result<Loaded, Failure> {
    let variables = variables
        .iter()
        .map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let environment = Environment::read(1, variables);
    config::resolve(&SettingArgs::default(), environment, None, None)
}

/// A setting in force.
fn setting(loaded: &Loaded, path: &str) -> Json {
    let json = config::effective_json(&loaded.known);
    let pointer = format!("/{}", path.replace('.', "/"));
    json.pointer(&pointer).expect(path).clone()
}

#[track_caller]
fn check(variables: &[(&str, &str)], expected: &[(&str, &str)]) {
    let loaded = load(variables).expect("good settings");
    for (path, value) in expected {
        let found = setting(&loaded, path);
        let found = found
            .as_str()
            .map_or_else(|| found.to_string(), str::to_owned);
        assert_eq!(found, *value, "{path}");
    }
}

#[test]
fn every_name_is_there_once() {
    let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
    // 114 of the settings, and the family of the mogrifiers.
    assert_eq!(names.len(), 115);
    for (at, name) in names.iter().enumerate() {
        assert!(!names[..at].contains(name), "{name} twice");
    }
}

/// What must be set besides for a name to have an effect.
const SWITCHES: [(&str, &str); 8] = [
    ("REDIS_URL", "redis:6379"),
    ("REDIS_TLS_CLIENT_CERT", "cert.pem"),
    ("REDIS_TLS_CLIENT_KEY", "key.pem"),
    ("RUNTIME_ROOT", "/data"),
    ("GRPC_SERVER_USE_TLS", "true"),
    ("GRPC_SERVER_TLS_CERT", "cert.pem"),
    ("GRPC_SERVER_TLS_KEY", "key.pem"),
    ("USE_PROMETHEUS", "true"),
];

/// A value that each name takes, and that is not its default.
fn value_for(name: &str) -> &'static str {
    match name {
        "PORT" | "DEBUG_PORT" | "GRPC_PORT" => "9999",
        "HOST" | "DEBUG_HOST" | "GRPC_HOST" => "127.0.0.9",
        "PROMETHEUS_ADDR" => ":9999",
        "LOG_LEVEL" => "DEBUG",
        "LOG_FORMAT" => "json",
        "NEAR_LIMIT_RATIO" | "TRACING_SAMPLING_RATE" => "0.5",
        "GRPC_MAX_CONNECTION_AGE" | "GRPC_MAX_CONNECTION_AGE_GRACE" => "5m0s",
        "CONFIG_TYPE" => "FILE",
        "REDIS_TYPE" => "cluster",
        "REDIS_SOCKET_TYPE" => "unix",
        "REDIS_URL" => "other:6379",
        "BACKEND_TYPE" => "redis",
        "GRPC_SERVER_USE_TLS" | "USE_PROMETHEUS" => "false",
        "REDIS_AUTH" | "REDIS_SENTINEL_AUTH" => "secret",
        _ if name.contains("HEADER") && !name.ends_with("ENABLED") => "X-Other",
        _ if name.ends_with("_CERT") || name.ends_with("_KEY") || name.ends_with("_CACERT") => {
            "other.pem"
        }
        _ if name.starts_with("RUNTIME_") && name.ends_with("ROOT") => "/other",
        _ if name.ends_with("DIRECTORY") => "other",
        _ if name.ends_with("SAN") || name.contains("SERVICE") => "other",
        _ => "true",
    }
}

/// What makes sense only together with a name.
fn companions(name: &str) -> &'static [(&'static str, &'static str)] {
    match name {
        "REDIS_SOCKET_TYPE" => &[("REDIS_URL", "/redis.sock")],
        "REDIS_SENTINEL_AUTH" => &[("REDIS_TYPE", "sentinel"), ("REDIS_URL", "main,redis")],
        _ => &[],
    }
}

#[test]
fn every_name_is_honoured_or_told() {
    for (name, fate) in NAMES {
        let mut variables = SWITCHES.to_vec();
        let before = load(&variables).expect(name);
        variables.retain(|(switch, _)| switch != name);
        for (other, value) in companions(name) {
            variables.retain(|(switch, _)| switch != other);
            variables.push((other, value));
        }
        variables.push((name, value_for(name)));
        let after = load(&variables).expect(name);
        let is_told = after.unsupported.iter().any(|one| one.names.contains(name));
        match fate {
            Fate::Sets(path) | Fate::Makes(path) | Fate::OfListener(path) | Fate::OfRedis(path) => {
                assert_ne!(
                    setting(&after, path),
                    setting(&before, path),
                    "{name} sets {path}"
                );
                assert!(!is_told, "{name}");
            }
            Fate::Unsupported(_) => assert!(is_told, "{name}"),
            Fate::OnlyIf(value, _) => {
                let is_so = load(&[("RUNTIME_ROOT", "/data"), (name, value)]).expect(name);
                assert_eq!(is_so.unsupported, [], "{name}={value}");
            }
            Fate::Always => assert!(!is_told, "{name}"),
        }
    }
}

#[test]
fn what_is_only_so_by_one_value_is_told_otherwise() {
    for (name, value) in [
        ("USE_STATSD", "true"),
        ("DISABLE_STATS", "false"),
        ("RUNTIME_IGNOREDOTFILES", "false"),
        ("PROMETHEUS_PATH", "/prom"),
        ("FORCE_START_WITHOUT_INITIAL_CONFIG", "1"),
        ("TRACING_EXPORTER_PROTOCOL", "gRPC"),
    ] {
        let loaded = load(&[(name, value)]).expect(name);
        assert_eq!(loaded.unsupported[0].names, [name]);
    }
}

#[test]
fn every_reason_says_what_to_do() {
    for (_, fate) in NAMES {
        if let Fate::Unsupported(reason) | Fate::OnlyIf(_, reason) = fate {
            assert!(!reason.because().is_empty() && !reason.instead().is_empty());
        }
    }
}

#[test]
fn every_name_is_in_the_docs() {
    let docs = include_str!("../../../../../docs/migrating-from-envoy-ratelimit.md");
    for (name, _) in NAMES {
        assert!(
            docs.contains(&format!("`{name}")),
            "{name} is not in the docs"
        );
    }
}

#[test]
fn where_the_reference_ran_its_defaults_hold() {
    check(
        &[
            ("RUNTIME_ROOT", "/data"),
            ("RUNTIME_SUBDIRECTORY", "ratelimit"),
        ],
        &[
            ("rules.paths", r#"["/data/ratelimit/config"]"#),
            ("rules.files", "every"),
            ("listeners.http.address", "0.0.0.0:8080"),
            ("listeners.grpc.address", "0.0.0.0:8081"),
            ("listeners.admin.address", "0.0.0.0:6070"),
            ("charging", "every_match"),
            ("looks_at_limit", "allow"),
            ("answers.headers", "none"),
            ("answers.body", "none"),
            ("limits.connection_age", "1d"),
        ],
    );
    check(
        &[("RUNTIME_APPDIRECTORY", "/app")],
        &[("rules.paths", r#"["/srv/runtime_data/current/app"]"#)],
    );
}

#[test]
fn host_and_port_make_an_address() {
    check(
        &[
            ("RUNTIME_ROOT", "/data"),
            ("HOST", "::1"),
            ("GRPC_PORT", "9"),
            ("DEBUG_HOST", "localhost"),
        ],
        &[
            ("listeners.http.address", "[::1]:8080"),
            ("listeners.grpc.address", "0.0.0.0:9"),
            ("listeners.admin.address", "127.0.0.1:6070"),
        ],
    );
    check(
        &[("GRPC_UDS", "/run/rl.sock"), ("GRPC_PORT", "9")],
        &[("listeners.grpc.address", "unix:/run/rl.sock")],
    );
    // Alone it opens no door to other machines.
    check(
        &[("PORT", "9000")],
        &[("listeners.http.address", "127.0.0.1:9000")],
    );
}

#[test]
fn a_host_that_some_shell_exports_is_told_and_does_nothing() {
    let loaded = load(&[("HOST", "laptop")]).expect("it is not read");
    assert_eq!(setting(&loaded, "listeners.http.address"), "127.0.0.1:8080");
    assert_eq!(loaded.unsupported[0].reason, Reason::HostOfAnother);
}

#[test]
fn headers_are_named_once_they_are_switched_on() {
    check(
        &[
            ("LIMIT_RESPONSE_HEADERS_ENABLED", "true"),
            ("LIMIT_RESET_HEADER", "X-Reset"),
        ],
        &[
            ("answers.headers", "named"),
            ("answers.names.reset", "X-Reset"),
        ],
    );
    check(
        &[("LIMIT_RESPONSE_HEADERS_ENABLED", "false")],
        &[("answers.headers", "none")],
    );
}

#[test]
fn traces_go_where_opentelemetry_says() {
    check(
        &[
            ("TRACING_ENABLED", "true"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318"),
        ],
        &[("observing.traces.endpoint", "http://collector:4318/")],
    );
    check(
        &[
            ("TRACING_ENABLED", "true"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318"),
            (
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                "http://spans:4318/v1/traces",
            ),
        ],
        &[("observing.traces.endpoint", "http://spans:4318/")],
    );
    check(
        &[("TRACING_ENABLED", "true")],
        &[("observing.traces.endpoint", "http://localhost:4318/")],
    );
    check(
        &[("TRACING_ENABLED", "false")],
        &[("observing.traces.endpoint", "null")],
    );
}

#[test]
fn variables_of_opentelemetry_say_what_is_not_set() {
    let endpoint = (
        "TIDEGATE_OBSERVING_TRACES_ENDPOINT",
        "http://collector:4318",
    );
    let otel = ("OTEL_SERVICE_NAME", "limits");
    let name = |variables: &[(&str, &str)]| {
        let loaded = load(variables).expect("good settings");
        loaded.traces.map(|traces| traces.service_name)
    };
    assert_eq!(name(&[otel]), None, "an endpoint is missing");
    assert_eq!(name(&[endpoint]).as_deref(), Some("tidegate"));
    assert_eq!(name(&[endpoint, otel]).as_deref(), Some("limits"));
    let said = [endpoint, otel, ("TRACING_SERVICE_NAME", "ours")];
    assert_eq!(name(&said).as_deref(), Some("ours"));
    let bad = [endpoint, ("OTEL_TRACES_SAMPLER", "often")];
    assert!(matches!(load(&bad), Err(Failure::BadVariables(_))));
}

/// Where the reference counts in Redis, so do we, and as exactly.
#[test]
fn its_redis_is_ours() {
    let check_url = |variables: &[(&str, &str)], url: &str| {
        let variables = [&[("RUNTIME_ROOT", "/data")], variables].concat();
        let loaded = load(&variables).expect("good settings");
        let Engine::Redis(found) = &loaded.config.store.engine else {
            panic!("{variables:?} does not lead to Redis");
        };
        let expected = RedisUrl::parse(url).expect(url);
        assert_eq!(**found, expected);
        assert_eq!(setting(&loaded, "store.consistency"), "strict");
    };
    check_url(&[("REDIS_URL", "redis:6379")], "redis://redis:6379");
    check_url(
        &[
            ("REDIS_SOCKET_TYPE", "tcp"),
            ("REDIS_URL", "redis:6379"),
            ("REDIS_TLS", "true"),
            ("REDIS_AUTH", "p@ss:w/rd"),
        ],
        "rediss://p%40ss:w%2Frd@redis:6379",
    );
    check_url(
        &[("REDIS_URL", "redis:6379"), ("REDIS_AUTH", "hunter2")],
        "redis://:hunter2@redis:6379",
    );
    check_url(
        &[
            ("REDIS_TYPE", "CLUSTER"),
            ("REDIS_URL", "redis://redis:6379"),
            ("REDIS_AUTH", "hunter2"),
        ],
        "redis+cluster://:hunter2@redis:6379",
    );
    check_url(
        &[
            ("REDIS_URL", "rediss://:hunter3@redis:6379"),
            ("REDIS_AUTH", "hunter2"),
        ],
        "rediss://:hunter3@redis:6379",
    );
    check_url(
        &[("REDIS_URL", "/run/redis.sock")],
        "redis+unix:///run/redis.sock",
    );
    check_url(
        &[("REDIS_SOCKET_TYPE", "unix"), ("REDIS_URL", "/redis.sock")],
        "redis+unix:///redis.sock",
    );
    check_url(
        &[("REDIS_TYPE", "CLUSTER"), ("REDIS_URL", "a:1,b:2,c:3")],
        "redis+cluster://a:1,b:2,c:3",
    );
    check_url(
        &[
            ("REDIS_TYPE", "CLUSTER"),
            ("REDIS_URL", "redis://a:1,rediss://b:2"),
        ],
        "rediss+cluster://a:1,b:2",
    );
    check_url(
        &[
            ("REDIS_TYPE", "sentinel"),
            ("REDIS_URL", "mymaster,a:26379,b:26379"),
            ("REDIS_AUTH", "hunter2"),
            ("REDIS_SENTINEL_AUTH", "me:hunter3"),
        ],
        "redis+sentinel://:hunter2@a:26379,b:26379/mymaster\
         ?sentinel_user=me&sentinel_password=hunter3",
    );
}

#[test]
fn our_word_on_the_store_goes_before_its() {
    let swapped = [("RUNTIME_ROOT", "/data"), ("REDIS_URL", "redis:6379")];
    for name in ["TIDEGATE_STORE", "TIDEGATE_STORE_ENGINE"] {
        let said = [&swapped[..], &[(name, "memory")]].concat();
        check(&said, &[("store.engine", "memory")]);
    }
    check(
        &[&swapped[..], &[("TIDEGATE_STORE_CONSISTENCY", "leased")]].concat(),
        &[("store.consistency", "leased")],
    );
}

/// Nobody is to believe that a password is asked for, or TLS spoken, because a variable says so.
#[test]
fn what_has_no_part_in_the_url_of_the_store_is_told() {
    let check_told = |variables: &[(&str, &str)], names: &[&str]| {
        let variables = [&[("RUNTIME_ROOT", "/data")], variables].concat();
        let loaded = load(&variables).expect("it is only told");
        let told = loaded.unsupported.iter();
        let told = told.filter(|one| one.reason == Reason::NotInUrl);
        let told: Vec<_> = told.flat_map(|one| one.names.clone()).collect();
        assert_eq!(told, names, "{variables:?}");
    };
    let url = ("REDIS_URL", "redis:6379");
    let (tls, auth) = (("REDIS_TLS", "true"), ("REDIS_AUTH", "hunter2"));
    check_told(&[url, tls, auth], &[]);
    check_told(&[tls, auth], &["REDIS_AUTH", "REDIS_TLS"]);
    for store in ["memory", "redis://other:6379"] {
        let names = ["REDIS_URL", "REDIS_AUTH", "REDIS_TLS"];
        check_told(&[url, tls, auth, ("TIDEGATE_STORE", store)], &names);
    }
    let ours = ("REDIS_URL", "redis+cluster://a:1,b:2");
    check_told(&[ours, auth], &["REDIS_AUTH"]);
}

#[test]
fn tls_over_a_socket_is_refused() {
    let check_refused = |url: (&str, &str), more: &[(&str, &str)], is_refused: bool| {
        let tls = ("REDIS_TLS", "true");
        let variables = [&[("RUNTIME_ROOT", "/data"), tls, url], more].concat();
        let loaded = load(&variables);
        assert_eq!(loaded.is_err(), is_refused, "{variables:?}: {loaded:?}");
    };
    let socket = ("REDIS_URL", "/redis.sock");
    check_refused(socket, &[], true);
    check_refused(socket, &[("TIDEGATE_STORE", "redis://a")], false);
    check_refused(("REDIS_URL", "redis:6379"), &[], false);
}

#[test]
fn a_redis_of_another_program_is_told_and_does_nothing() {
    let loaded = load(&[("REDIS_URL", "redis:6379")]).expect("it is not read");
    assert_eq!(setting(&loaded, "store.engine"), "memory");
    assert_eq!(loaded.unsupported[0].reason, Reason::RedisOfAnother);
}

#[test]
fn a_type_of_redis_that_is_none_is_refused() {
    for (name, told) in [("REDIS_TYPE", "CLUSTER"), ("REDIS_SOCKET_TYPE", "tcp")] {
        let variables = [
            ("RUNTIME_ROOT", "/data"),
            ("REDIS_URL", "redis:6379"),
            (name, "many"),
        ];
        let Err(Failure::BadConfig(report)) = load(&variables) else {
            panic!("{name} was taken");
        };
        assert!(report.to_string().contains(told), "{report}");
    }
}

/// A swapped image must not quietly stop sharing counters.
#[test]
fn memcached_is_refused_unless_a_store_is_said() {
    for (name, value) in [
        ("MEMCACHE_HOST_PORT", "memcached:11211"),
        ("MEMCACHE_SRV", "_memcache._tcp.example.org"),
        ("BACKEND_TYPE", "memcache"),
    ] {
        let swapped = [("RUNTIME_ROOT", "/data"), (name, value)];
        let Err(Failure::BadConfig(report)) = load(&swapped) else {
            panic!("{name} was not refused");
        };
        assert!(
            report.to_string().contains("TIDEGATE_STORE=memory"),
            "{report}"
        );
        for store in ["memory", "redis://redis:6379"] {
            let said = [&swapped[..], &[("TIDEGATE_STORE", store)]].concat();
            let loaded = load(&said).expect("a store was said");
            assert_eq!(loaded.unsupported[0].names, [name]);
        }
        // Whoever runs us as ourselves has it for another program.
        load(&[(name, value)]).expect("it is only told");
    }
    // Its Redis would not have been asked.
    let both = [
        ("RUNTIME_ROOT", "/data"),
        ("BACKEND_TYPE", "memcache"),
        ("REDIS_URL", "redis:6379"),
    ];
    assert!(matches!(load(&both), Err(Failure::BadConfig(_))));
}

/// A swapped image must not quietly speak in plain text.
#[test]
fn tls_without_a_certificate_is_refused() {
    let switch = ("GRPC_SERVER_USE_TLS", "true");
    let Err(Failure::BadConfig(report)) = load(&[switch]) else {
        panic!("it would speak in plain text");
    };
    assert!(
        report.to_string().contains("set GRPC_SERVER_TLS_CERT"),
        "{report}"
    );
    let ours = [
        ("TIDEGATE_LISTENERS_GRPC_TLS_CERT", "cert.pem"),
        ("TIDEGATE_LISTENERS_GRPC_TLS_KEY", "key.pem"),
    ];
    load(&[&ours[..], &[switch]].concat()).expect("there is a certificate");
}

#[test]
fn a_switch_is_on_or_off() {
    for name in [
        "GRPC_SERVER_USE_TLS",
        "LIMIT_RESPONSE_HEADERS_ENABLED",
        "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT",
        "QUOTA_MODE",
        "TRACING_ENABLED",
        "REDIS_TLS",
        "SHADOW_MODE",
        "USE_PROMETHEUS",
        "MERGE_DOMAIN_CONFIG",
    ] {
        let Err(Failure::BadConfig(report)) = load(&[(name, "maybe")]) else {
            panic!("{name} was taken");
        };
        assert!(report.to_string().contains(name), "{report}");
    }
}

#[test]
fn rules_over_xds_are_refused() {
    let variables = [("RUNTIME_ROOT", "/data"), ("CONFIG_TYPE", "GRPC_XDS_SOTW")];
    assert!(matches!(load(&variables), Err(Failure::BadConfig(_))));
}

#[test]
fn our_own_variables_go_before_those_of_the_reference() {
    check(
        &[
            ("PORT", "9000"),
            ("TIDEGATE_LISTENERS_HTTP", "127.0.0.1:9001"),
        ],
        &[("listeners.http.address", "127.0.0.1:9001")],
    );
}

#[test]
fn a_mogrifier_is_told_whatever_its_number() {
    let loaded = load(&[("DOG_STATSD_MOGRIFIER_TAG_PATTERN", "x")]).expect("it is only told");
    assert_eq!(loaded.unsupported[0].names, [MOGRIFIER]);
}

#[test]
fn assumptions_name_what_brought_them() {
    let mut raw = RawConfig::default();
    let mut reference = Reference::default();
    let span = Span {
        file: 1,
        line: 1,
        column: 1,
        end_column: 1,
    };
    reference.insert("RUNTIME_ROOT", "/data".to_owned(), span);
    reference.translate(&mut raw);
    let origins = raw.assumed.iter().map(|written| &written.origin);
    assert!(origins.clone().count() > 0);
    assert!(
        origins
            .into_iter()
            .all(|origin| *origin == Origin::Assumed("RUNTIME_ROOT"))
    );
}
