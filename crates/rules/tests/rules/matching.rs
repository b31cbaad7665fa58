//! Which rule holds a descriptor: every sentence of the matching rules.

use tidegate_rules::Rule;

use crate::support::{compile_ok, entries};

const RULES: &str = r#"
domain: match
descriptors:
  - key: exact
    value: one
    rate_limit: &limit { unit: second, requests_per_unit: 1 }
  - key: exact
    rate_limit: *limit
  - key: order
    value: a*
    rate_limit: *limit
  - key: order
    value: "*b"
    rate_limit: *limit
  - key: order
    value: axb
    rate_limit: *limit
  - key: order
    rate_limit: *limit
  - key: dead_end
    value: known
    descriptors:
      - key: below
        value: only
        rate_limit: *limit
  - key: dead_end
    descriptors:
      - key: below
        rate_limit: *limit
  - key: middle
    rate_limit: *limit
    descriptors:
      - key: leaf
        rate_limit: *limit
  - key: way
    descriptors:
      - key: leaf
        rate_limit: *limit
  - key: allowed
    value: pass
  - key: allowed
    rate_limit: *limit
  - key: list
    value: [red, green, blue*]
    rate_limit: *limit
  - key: list
    rate_limit: *limit
  - key: address
    cidr: 10.0.0.0/8
    rate_limit: *limit
  - key: address
    value: "10.1.*"
    rate_limit: *limit
  - key: address
    value: 10.9.9.9
    rate_limit: *limit
  - key: address
    cidr: [192.168.0.0/16, 2001:db8::/32]
    rate_limit: *limit
  - key: address
    rate_limit: *limit
  - key: a
    value: b_c
    rate_limit: *limit
  - key: a_b
    rate_limit: *limit
  - key: user_*
    rate_limit: *limit
  - key: empty
    value: ""
    rate_limit: *limit
"#;

/// Checks `a=b,c=d` against the path of the rule that holds it.
fn check(descriptor: &str, expected: Option<&str>) {
    let compiled = compile_ok(RULES);
    let domain = compiled.rules.domain("match").expect("the domain");
    let descriptor = entries(descriptor);
    let found = domain.find(&descriptor).map(Rule::path);
    assert_eq!(found, expected, "{descriptor:?}");
    let traced = domain.trace(&descriptor).rule().map(Rule::path);
    assert_eq!(traced, expected, "the trace of {descriptor:?}");
}

#[test]
fn the_exact_value_goes_before_the_bare_key() {
    check("exact=one", Some("exact=one"));
    check("exact=two", Some("exact"));
    check("exact=", Some("exact"));
}

#[test]
fn matching_minds_the_case() {
    check("exact=ONE", Some("exact"));
    check("EXACT=one", None);
}

#[test]
fn the_first_pattern_of_the_file_wins_not_the_most_specific() {
    check("order=a", Some("order=a*"));
    check("order=ab", Some("order=a*"));
    check("order=cb", Some("order=*b"));
    check("order=c", Some("order"));
}

#[test]
fn the_exact_value_goes_before_patterns_that_stand_earlier() {
    check("order=axb", Some("order=axb"));
}

#[test]
fn what_was_chosen_is_never_taken_back() {
    check(
        "dead_end=known,below=only",
        Some("dead_end=known > below=only"),
    );
    check("dead_end=known,below=other", None);
    check("dead_end=unknown,below=other", Some("dead_end > below"));
}

#[test]
fn the_limit_is_that_of_the_last_entry() {
    check("middle=x", Some("middle"));
    check("middle=x,leaf=y", Some("middle > leaf"));
    check("middle=x,leaf=y,more=z", None);
    check("middle=x,other=y", None);
}

#[test]
fn a_node_without_limit_holds_nothing() {
    check("way=x", None);
    check("way=x,leaf=y", Some("way > leaf"));
}

#[test]
fn the_order_of_entries_matters() {
    check("leaf=y,middle=x", None);
}

#[test]
fn an_entry_without_limit_and_children_is_found_and_has_no_limits() {
    check("allowed=pass", Some("allowed=pass"));
    let compiled = compile_ok(RULES);
    let domain = compiled.rules.domain("match").expect("the domain");
    let rule = domain.find(&entries("allowed=pass")).expect("the entry");
    assert!(rule.limits().is_empty());
}

#[test]
fn an_unknown_domain_key_or_an_empty_descriptor_holds_nothing() {
    assert!(compile_ok(RULES).rules.domain("other").is_none());
    check("unknown=x", None);
    check("", None);
}

#[test]
fn an_empty_value_in_the_rules_is_the_bare_key() {
    check("empty=anything", Some("empty"));
    check("empty=", Some("empty"));
}

#[test]
fn a_list_takes_each_of_its_values() {
    check("list=red", Some("list=[red, green, blue*]"));
    check("list=green", Some("list=[red, green, blue*]"));
    check("list=bluest", Some("list=[red, green, blue*]"));
    check("list=yellow", Some("list"));
}

#[test]
fn networks_are_patterns_in_the_order_of_the_file() {
    check("address=10.1.2.3", Some("address in 10.0.0.0/8"));
    check("address=::ffff:10.1.2.3", Some("address in 10.0.0.0/8"));
    check("address=10.9.9.9", Some("address=10.9.9.9"));
    check("address=10.1.host", Some("address=10.1.*"));
    check(
        "address=192.168.1.1",
        Some("address in [192.168.0.0/16, 2001:db8::/32]"),
    );
    check(
        "address=2001:db8::1",
        Some("address in [192.168.0.0/16, 2001:db8::/32]"),
    );
    check("address=8.8.8.8", Some("address"));
    check("address=nonsense", Some("address"));
}

#[test]
fn keys_and_values_are_never_joined() {
    check("a=b_c", Some("a=b_c"));
    check("a_b=c", Some("a_b"));
    check("a=b", None);
    check("user_id=1", None);
    check("user_*=1", Some("user_*"));
}

#[test]
fn the_values_that_tell_counters_apart() {
    let compiled = compile_ok(
        r"
domain: count
descriptors:
  - key: bare
    rate_limit: &limit { unit: second, requests_per_unit: 1 }
  - key: exact
    value: v
    rate_limit: *limit
    descriptors:
      - key: user
        rate_limit: *limit
  - key: apart
    value: v*
    rate_limit: *limit
  - key: shared
    value: v*
    share_threshold: true
    rate_limit: *limit
    descriptors:
      - key: user
        descriptors:
          - key: item
            value: i*
            rate_limit: *limit
  - key: list
    value: [a, b]
    rate_limit: *limit
  - key: shared_list
    value: [a, b]
    share_threshold: true
    rate_limit: *limit
  - key: list_of_one
    value: [a]
    rate_limit: *limit
  - key: net
    cidr: 10.0.0.0/8
    rate_limit: *limit
  - key: shared_net
    cidr: 10.0.0.0/8
    share_threshold: true
    rate_limit: *limit
",
    );
    let domain = compiled.rules.domain("count").expect("the domain");
    let check = |descriptor: &str, expected: &[usize]| {
        let rule = domain.find(&entries(descriptor)).expect(descriptor);
        assert_eq!(rule.counted_values(), expected, "{descriptor}");
    };
    check("bare=x", &[0]);
    check("exact=v", &[]);
    check("exact=v,user=u", &[1]);
    check("apart=v1", &[0]);
    check("shared=v1", &[]);
    check("shared=v1,user=u,item=i", &[1, 2]);
    check("list=a", &[0]);
    check("shared_list=a", &[]);
    check("list_of_one=a", &[]);
    check("net=10.1.1.1", &[0]);
    check("shared_net=10.1.1.1", &[]);
}
