//! The rules that are handed to users compile without a word.

use tidegate_rules::{Entry, Rule};

use crate::support::compile_ok;

const EXAMPLE: &str = include_str!("../../../../deploy/rules/example.yaml");

#[test]
fn the_example_set_compiles_without_a_word() {
    let compiled = compile_ok(EXAMPLE);
    assert!(compiled.warnings.is_empty(), "{}", compiled.warnings);
    let domain = compiled.rules.domain("example").expect("the domain");
    let entry = |key, value| Entry { key, value };
    let check = |descriptor: &[Entry<'_>], path: &str| {
        assert_eq!(domain.find(descriptor).map(Rule::path), Some(path));
    };
    check(&[entry("remote_address", "203.0.113.9")], "remote_address");
    check(
        &[entry("remote_address", "::ffff:10.1.2.3")],
        "remote_address in [10.0.0.0/8, 192.168.0.0/16, fd00::/8]",
    );
    check(
        &[entry("action", "login"), entry("account", "x")],
        "action=login > account",
    );
    check(
        &[entry("plan", "team"), entry("user_id", "1")],
        "plan=[team, enterprise] > user_id",
    );
    check(&[entry("path", "/api/v2/export")], "path=/api/*/export");
}
