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
    check("explain_request_bad", &explain("GET nowhere"));
    check(
        "explain_request_no_gateway",
        &["explain", "--request", "GET /"],
    );
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
