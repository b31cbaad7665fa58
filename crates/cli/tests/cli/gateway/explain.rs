//! `tidegate explain --request` and the settings of the gateway in `check`.

use crate::program::check;

#[test]
fn a_request_is_explained_without_a_server() {
    let config = ["--config", "gateway.yaml"];
    let explain =
        |request: &'static str| [&["explain", "--request", request], &config[..]].concat();
    check("explain_request", &explain("POST /login"));
    check("explain_request_no_route", &explain("GET /nowhere"));
    let mut denied = explain("GET /api/users");
    denied.extend(["-H", "x-user: 7", "--client-address", "192.0.2.1"]);
    check("explain_request_no_access", &denied);
    let mut with_header = explain("GET /api/users");
    with_header.extend(["-H", "x-user: 7"]);
    check("explain_request_header", &with_header);
    check("explain_request_usage", &explain("GET /.tidegate/./usage"));
    check("explain_request_own", &explain("GET /.tidegate/other"));
    let certified = [
        "explain",
        "--config",
        "gateway_certificate.yaml",
        "--request",
        "GET /",
        "--certificate",
        "CN=robot",
    ];
    check("explain_request_certificate", &certified);
    let of_proxy = ["explain", "--request", "GET /", "--certificate", "CN=robot"];
    check("explain_request_no_certificate", &of_proxy);
    check("explain_request_bad", &explain("GET nowhere"));
    check(
        "explain_request_no_gateway",
        &["explain", "--request", "GET /"],
    );
}

#[test]
fn a_token_is_judged_where_the_gateway_judges_it() {
    let bad = ["-H", "authorization: Bearer x"];
    let explain = |request: &'static str, more: &[&'static str]| {
        let args = [
            "explain",
            "--config",
            "gateway_tokens.yaml",
            "--request",
            request,
        ];
        [&args[..], more].concat()
    };
    check("explain_token_unread", &explain("GET /open", &bad));
    check("explain_token_missing", &explain("GET /user", &[]));
    check("explain_token_bad", &explain("GET /user", &bad));
    let page = [
        "-H",
        "origin: https://a",
        "-H",
        "access-control-request-method: GET",
    ];
    check("explain_preflight", &explain("OPTIONS /user", &page));
    check(
        "explain_ambiguous_path",
        &explain("GET /user/..%2fopen", &[]),
    );
    let config = ["config", "--config", "gateway_no_tokens.yaml"];
    check("config_no_tokens", &config);
    let config = ["config", "--config", "empty_sources.yaml"];
    check("config_empty_sources", &config);
}

/// A client that changes its header gets new counters, whatever stands beside the header in the same key.
#[test]
fn an_address_beside_a_header_in_one_key_does_not_help() {
    let check_with = |snapshot: &str, config: &str| {
        check(
            snapshot,
            &["check", "chosen_rules.yaml", "--config", config],
        );
    };
    check_with("check_chosen_beside", "chosen_beside.yaml");
    check_with("check_chosen_held", "chosen_held.yaml");
}

#[test]
fn keys_that_clients_choose_are_warned_of() {
    let args = ["check", "gateway_rules.yaml", "--config", "gateway.yaml"];
    check("check_chosen_keys", &args);
    check(
        "check_chosen_keys_json",
        &[&args[..], &["--format", "json"]].concat(),
    );
}

#[test]
fn all_faults_of_a_gateway_are_told_at_once() {
    check(
        "config_gateway_faults",
        &["config", "--config", "gateway_faults.yaml"],
    );
    check("config_gateway", &["config", "--config", "gateway.yaml"]);
}
