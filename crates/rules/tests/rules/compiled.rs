//! What a compiled rule says about itself.

use tidegate_algorithms::Quota;
use tidegate_rules::{
    Charging, CompileOptions, Consistency, Dialect, Domain, Limit, MetadataValue, MetricDetail,
    OnFailure, OnFull, OverLimit, Refusals, Rule, RuleMode, Source, Terms, compile, compile_for,
};

use crate::support::{compile_ok, entries, source};

/// Gives the rule that holds `descriptor` to `look`.
fn with_rule<T>(rules: &str, descriptor: &str, look: impl FnOnce(&Rule) -> T) -> T {
    let compiled = compile_ok(&format!("domain: d\ndescriptors:\n{rules}"));
    let domain = compiled.rules.domain("d").expect("the domain");
    look(domain.find(&entries(descriptor)).expect("a rule"))
}

/// The description of the only limit of a rule with these fields.
fn describe(fields: &str) -> String {
    let rules = format!("- key: k\n  rate_limit: {{{fields}}}\n");
    with_rule(&rules, "k=v", |rule| {
        rule.limits()[0].description().to_owned()
    })
}

#[test]
fn a_limit_describes_itself() {
    let check = |fields: &str, expected: &str| assert_eq!(describe(fields), expected);
    check(
        "unit: minute, requests_per_unit: 100",
        "100 per minute, fixed_window",
    );
    check(
        "unit: minute, requests_per_unit: 100, algorithm: token_bucket, burst: 20",
        "100 per minute, token_bucket, burst 20",
    );
    check(
        "limit: 4, window: 90s, algorithm: token_bucket, refill: interval",
        "4 per 1m30s, token_bucket, refilled at intervals",
    );
    check(
        "limit: 4, unit: second, algorithm: leaky_bucket, queue: 7",
        "4 per second, leaky_bucket, queue 7",
    );
    check(
        "limit: 4, unit: hour, algorithm: sliding_log, log_refused: true",
        "4 per hour, sliding_log, refused requests logged",
    );
    check(
        "limit: 4, unit: hour, algorithm: sliding_counter, sub_windows: 60, rounding: up",
        "4 per hour, sliding_counter, 60 sub-windows, rounded up",
    );
    check(
        "limit: 50, unit: day, soft: 10%, soft_for: 30s",
        "50 per day, fixed_window, soft 10% for 30s",
    );
    check(
        "limit: 50, unit: day, elastic: 10%",
        "50 per day, fixed_window, elastic 10%",
    );
    check("unlimited: true", "unlimited");
}

#[test]
fn modes_and_policies_are_kept() {
    let limit = "rate_limit: {unit: day, requests_per_unit: 1}";
    let check = |field: &str, expected: RuleMode| {
        with_rule(
            &format!("- key: k\n  {field}\n  {limit}\n"),
            "k=v",
            |rule| {
                assert_eq!(rule.mode(), expected);
            },
        );
    };
    check("shadow_mode: true", RuleMode::Shadow);
    check("quota_mode: true", RuleMode::Quota);
    check("quota_mode: false", RuleMode::Enforce);
    let rules = "- key: k\n  rate_limit: {unit: day, limit: 1, name: n, replaces: [{name: m}], \
                 consistency: strict, on_failure: allow, on_full: deny, \
                 count_status: [402, 5xx], announce: false}\n";
    with_rule(rules, "k=v", |rule| {
        let limit = &rule.limits()[0];
        assert_eq!(limit.name(), Some("n"));
        assert_eq!(limit.replaces(), [Box::from("m")]);
        assert_eq!(limit.over_limit(), OverLimit::Reject);
        assert_eq!(limit.consistency(), Some(Consistency::Strict));
        assert_eq!(limit.on_failure(), OnFailure::Allow);
        assert_eq!(limit.on_full(), OnFull::Deny);
        let statuses = limit.counts_status().expect("it counts by status");
        assert!(statuses.contains(402) && statuses.contains(503) && !statuses.contains(200));
        assert!(limit.is_hidden());
        assert!(matches!(limit.terms(), Terms::Quota(quota) if quota.limit() == 1));
    });
}

#[test]
fn several_limits_keep_their_order_the_single_one_first() {
    let rules = "- key: k\n  rate_limits:\n  - {unit: hour, limit: 2}\n  - {unit: day, limit: 3}\n  \
                 rate_limit: {unit: minute, limit: 1}\n";
    with_rule(rules, "k=v", |rule| {
        let descriptions: Vec<_> = rule.limits().iter().map(Limit::description).collect();
        let expected = [
            "1 per minute, fixed_window",
            "2 per hour, fixed_window",
            "3 per day, fixed_window",
        ];
        assert_eq!(descriptions, expected);
    });
}

#[test]
fn metrics_carry_the_values_that_are_asked_for() {
    let rules = "\
- key: a
  value_to_metric: true
  descriptors:
  - key: b
    value: x*
    share_threshold: true
    value_to_metric: true
    descriptors:
    - key: c
      value_to_metric: true
      rate_limit: &limit {unit: day, requests_per_unit: 1}
    - key: d
      detailed_metric: true
      rate_limit: *limit
- key: e
  rate_limit: *limit
";
    let check = |descriptor: &str, expected: MetricDetail| {
        let detail = with_rule(rules, descriptor, |rule| rule.metric_detail().clone());
        assert_eq!(detail, expected, "{descriptor}");
    };
    check("a=1,b=x,c=3", MetricDetail::Values([0, 2].into()));
    check("a=1,b=x,d=3", MetricDetail::All);
    check("e=1", MetricDetail::Path);
}

#[test]
fn metadata_is_kept_as_a_protobuf_struct_would_hold_it() {
    let rules = "\
- key: k
  rate_limit: {unit: day, requests_per_unit: 1}
  metadata: {n: 1.5, s: \"1\", t: true, z: ~, l: [a, nan], 7: -2}
";
    let text = |text: &str| MetadataValue::Text(text.into());
    let field = |name: &str, value| (Box::from(name), value);
    let expected = MetadataValue::Map(
        [
            field("n", MetadataValue::Number(1.5)),
            field("s", text("1")),
            field("t", MetadataValue::Bool(true)),
            field("z", MetadataValue::Null),
            field("l", MetadataValue::List([text("a"), text("nan")].into())),
            field("7", MetadataValue::Number(-2.0)),
        ]
        .into(),
    );
    let metadata = with_rule(rules, "k=v", |rule| rule.metadata().cloned());
    assert_eq!(metadata, Some(expected));
}

#[test]
fn a_rule_names_the_dialect_of_its_headers() {
    let limit = "rate_limit: {unit: day, requests_per_unit: 1}";
    let headers = |rules: &str| with_rule(rules, "k=v", Rule::headers);
    for dialect in Dialect::ALL {
        let rules = format!("- {{key: k, headers: {}, {limit}}}\n", dialect.name());
        assert_eq!(headers(&rules), Some(dialect));
        assert_eq!(dialect.name().parse(), Ok(dialect));
    }
    assert_eq!(headers(&format!("- {{key: k, {limit}}}\n")), None);
    let unknown = "iatf".parse::<Dialect>().unwrap_err();
    let expected = "no such dialect; there are x-ratelimit, ietf, ietf-06, github, envoy, none";
    assert_eq!(unknown.to_string(), expected);
}

#[test]
fn rules_are_numbered_through_the_set() {
    let compiled = compile_ok(
        "domain: d\ncharging: every_match\ndescriptors:\n- key: a\n  descriptors:\n  - key: b\n- key: c\n",
    );
    let rules = &compiled.rules;
    let paths: Vec<_> = rules.rules().map(Rule::path).collect();
    assert_eq!(paths, ["a > b", "c"]);
    for (at, rule) in rules.rules().enumerate() {
        assert_eq!(rule.id().index(), at);
        assert_eq!(rules.rule(rule.id()).path(), rule.path());
    }
    let domain = rules.domain("d").expect("the domain");
    assert_eq!(domain.charging(), Some(Charging::EveryMatch));
    let location = rules.rules().nth(1).expect("two rules").location();
    assert_eq!(
        (&*location.file, location.line, location.column),
        ("rules.yaml", 7, 8)
    );
}

#[test]
fn numbers_of_several_domains_do_not_clash() {
    let source = |name: &str, text: &str| Source {
        name: name.to_owned(),
        bytes: text.as_bytes().to_vec(),
    };
    let sources = [
        source("1", "domain: empty\n"),
        source("2", "domain: two\ndescriptors: [{key: a}, {key: b}]\n"),
        source("3", "domain: also_empty\n"),
        source("4", "domain: one\ndescriptors: [{key: c}]\n"),
    ];
    let compiled = compile(&sources, &CompileOptions::default()).expect("no faults");
    let names: Vec<_> = compiled.rules.domains().map(Domain::name).collect();
    assert_eq!(names, ["empty", "two", "also_empty", "one"]);
    for rule in compiled.rules.rules() {
        assert_eq!(compiled.rules.rule(rule.id()).path(), rule.path());
    }
}

#[test]
fn rules_that_do_not_say_are_quota_rules_if_so_told() {
    let yaml = "
domain: d
descriptors:
  - key: a
    rate_limit: { unit: day, requests_per_unit: 1 }
    descriptors:
      - { key: b, rate_limit: { unit: day, requests_per_unit: 1 } }
      - { key: c, shadow_mode: true, rate_limit: { unit: day, requests_per_unit: 1 } }
";
    let source = Source {
        name: "rules.yaml".to_owned(),
        bytes: yaml.into(),
    };
    let options = CompileOptions {
        refusals: Refusals::Quota,
        ..CompileOptions::default()
    };
    let compiled = compile(&[source], &options).expect("good rules");
    let domain = compiled.rules.domain("d").expect("the domain");
    let mode = |descriptor| domain.find(&entries(descriptor)).expect("a rule").mode();
    assert_eq!(mode("a=1"), RuleMode::Quota);
    assert_eq!(mode("a=1,b=1"), RuleMode::Quota);
    assert_eq!(mode("a=1,c=1"), RuleMode::Shadow);
}

#[test]
fn a_limit_that_the_store_cannot_count_is_a_fault_where_it_stands() {
    let text = "\
domain: d
descriptors:
  - key: small
    rate_limit: { unit: second, requests_per_unit: 1 }
    descriptors:
      - key: large
        rate_limit: { unit: second, requests_per_unit: 1000 }
      - key: large_and_alone
        rate_limit: { unit: second, requests_per_unit: 1000, consistency: node }
";
    let sources = [source(text)];
    let fits = |quota: &Quota, consistency: Option<Consistency>| {
        if consistency == Some(Consistency::Node) || quota.limit() <= 10 {
            return Ok(());
        }
        Err("it is more than ten".to_owned())
    };
    let report =
        compile_for(&sources, &CompileOptions::default(), &fits).expect_err("one is large");
    let [fault] = report.iter().collect::<Vec<_>>()[..] else {
        panic!("one fault is expected: {report}");
    };
    assert_eq!((fault.code, fault.line), ("unfit", 7));
    assert_eq!(
        fault.message,
        "the store cannot count this limit exactly: it is more than ten"
    );
}
