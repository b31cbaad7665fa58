//! The identity of a limit: what changes it, what does not, and that it never changes by itself.

use std::collections::HashMap;

use crate::support::compile_ok;

/// Computed once; a change here forgets every counter of every user.
const PINNED_FIXED: u128 = 0x7220_dfde_8795_ac6d_61e3_e775_1dcb_6a4f;
const PINNED_TOKEN: u128 = 0x43c7_a9f0_5af5_2db0_ee07_d473_7da2_a46d;
const PINNED_UNLIMITED: u128 = 0xeb75_5178_5099_6210_8dda_0096_7a1f_4157;

/// The identities of all limits, by path and place.
fn ids(text: &str) -> HashMap<(String, usize), u128> {
    let compiled = compile_ok(text);
    let rules = compiled.rules.rules();
    let limits = rules.flat_map(|rule| {
        let limits = rule.limits().iter().enumerate();
        limits.map(|(place, limit)| ((rule.path().to_owned(), place), limit.id()))
    });
    limits.collect()
}

/// The identity of the only limit of `key: user` with these fields.
fn id_of(fields: &str) -> u128 {
    let text = format!("domain: d\ndescriptors:\n- key: user\n  rate_limit: {{{fields}}}\n");
    let ids = ids(&text);
    assert_eq!(ids.len(), 1);
    *ids.values().next().expect("one limit")
}

#[test]
fn is_pinned_across_versions() {
    let check = |fields: &str, expected: u128| {
        assert_eq!(id_of(fields), expected, "{fields}: {:#034x}", id_of(fields));
    };
    check("unit: minute, requests_per_unit: 5", PINNED_FIXED);
    check(
        "unit: minute, requests_per_unit: 5, algorithm: token_bucket",
        PINNED_TOKEN,
    );
    check("unlimited: true", PINNED_UNLIMITED);
}

#[test]
fn numbers_do_not_change_it() {
    let bucket = id_of("unit: minute, requests_per_unit: 5, algorithm: token_bucket");
    let check = |fields: &str| assert_eq!(id_of(fields), bucket, "{fields}");
    check("unit: minute, requests_per_unit: 6, algorithm: token_bucket");
    check("unit: minute, requests_per_unit: 5, algorithm: token_bucket, burst: 9");
    check("window: 60s, limit: 5, algorithm: token_bucket, soft: 20%");
    check("unit: minute, requests_per_unit: 5, algorithm: token_bucket, name: x, on_full: deny");
}

#[test]
fn window_and_algorithm_change_it() {
    let all = [
        "unit: minute, requests_per_unit: 5",
        "unit: hour, requests_per_unit: 5",
        "unit: minute, requests_per_unit: 5, algorithm: token_bucket",
        "unit: minute, requests_per_unit: 5, algorithm: token_bucket, refill: interval",
        "unit: minute, requests_per_unit: 5, algorithm: leaky_bucket",
        "unit: minute, requests_per_unit: 5, algorithm: sliding_log",
        "unit: minute, requests_per_unit: 5, algorithm: sliding_counter",
        "unit: minute, requests_per_unit: 5, algorithm: sliding_counter, sub_windows: 6",
        "unit: minute, requests_per_unit: 5, algorithm: sliding_counter, sub_windows: 12",
        "unlimited: true",
    ];
    let distinct: std::collections::HashSet<_> = all.iter().map(|fields| id_of(fields)).collect();
    assert_eq!(distinct.len(), all.len());
}

#[test]
fn domain_key_value_and_depth_change_it() {
    let limit = "rate_limit: {unit: day, requests_per_unit: 1}";
    let texts = [
        format!("domain: a\ndescriptors:\n- key: b_c\n  {limit}\n"),
        format!("domain: a_b\ndescriptors:\n- key: c\n  {limit}\n"),
        format!("domain: a\ndescriptors:\n- key: b\n  value: c\n  {limit}\n"),
        format!("domain: a\ndescriptors:\n- key: b\n  value: c*\n  {limit}\n"),
        format!("domain: a\ndescriptors:\n- key: b\n  value: [c, d]\n  {limit}\n"),
        format!("domain: a\ndescriptors:\n- key: b\n  cidr: 10.0.0.0/8\n  {limit}\n"),
        format!("domain: a\ndescriptors:\n- key: b\n  descriptors:\n  - key: c\n    {limit}\n"),
    ];
    let distinct: std::collections::HashSet<_> = texts
        .iter()
        .flat_map(|text| ids(text).into_values())
        .collect();
    assert_eq!(distinct.len(), texts.len());
}

#[test]
fn the_order_of_siblings_files_and_list_values_does_not_change_it() {
    let limit = "rate_limit: {unit: day, requests_per_unit: 1}";
    let one = format!("domain: d\ndescriptors:\n- key: a\n  {limit}\n- key: b\n  {limit}\n");
    let two = format!("domain: d\ndescriptors:\n- key: b\n  {limit}\n- key: a\n  {limit}\n");
    assert_eq!(ids(&one), ids(&two));
    let list =
        |values| format!("domain: d\ndescriptors:\n- key: a\n  value: {values}\n  {limit}\n");
    let only = |text: &str| ids(text).into_values().collect::<Vec<_>>();
    assert_eq!(only(&list("[x, y]")), only(&list("[y, x]")));
}

#[test]
fn limits_of_one_rule_differ_and_others_may_come_and_go() {
    let rule =
        |limits: &str| format!("domain: d\ndescriptors:\n- key: a\n  rate_limits:\n{limits}");
    let day = "  - {unit: day, requests_per_unit: 100}\n";
    let more = "  - {unit: day, requests_per_unit: 200}\n";
    let second = "  - {unit: second, requests_per_unit: 5}\n";
    let id = |ids: &HashMap<(String, usize), u128>, place| ids[&("a".to_owned(), place)];
    let two_days = ids(&rule(&format!("{day}{more}")));
    assert_ne!(id(&two_days, 0), id(&two_days, 1));
    let alone = ids(&rule(day));
    let behind = ids(&rule(&format!("{second}{day}")));
    assert_eq!(id(&alone, 0), id(&behind, 1));
}

#[test]
fn a_rule_is_known_by_its_path_whatever_its_limits_are() {
    let identity = |text: &str| {
        let compiled = compile_ok(text);
        compiled.rules.rules().last().expect("a rule").identity()
    };
    let rule = identity("{domain: d, descriptors: [{key: user}]}");
    let limited =
        "{domain: d, descriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 1}}]}";
    assert_eq!(identity(limited), rule);
    assert_ne!(identity("{domain: e, descriptors: [{key: user}]}"), rule);
    assert_ne!(
        identity("{domain: d, descriptors: [{key: user, value: ann}]}"),
        rule
    );
}
