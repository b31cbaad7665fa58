//! What a person is told about a match.

use tidegate_rules::{Color, Fate, Rank, explain};

use crate::support::{compile_ok, entries};

const RULES: &str = "\
domain: api
descriptors:
  - key: plan
    value: free
    descriptors:
      - key: user
        shadow_mode: true
        rate_limits:
          - {unit: minute, requests_per_unit: 100, algorithm: token_bucket, burst: 20, name: calls}
          - {unlimited: true, replaces: [{name: calls}]}
  - key: plan
    value: f*
  - key: plan
    value: fr*x
  - key: plan
    rate_limit: {unit: day, requests_per_unit: 5}
  - key: other
    rate_limit: {unit: day, requests_per_unit: 5}
";

fn check(descriptor: &str, expected: &str) {
    let compiled = compile_ok(RULES);
    let domain = compiled.rules.domain("api").expect("the domain");
    let text = explain::render(domain, &entries(descriptor), &|_| Vec::new(), Color::Never);
    assert_eq!(text, expected, "\n{text}");
}

#[test]
fn tells_the_path_the_limits_and_what_was_not_chosen() {
    check(
        "plan=free,user=u1",
        "\
domain api, descriptor plan=free,user=u1

plan=free
  ✓ plan=free  chosen: the exact value
  · plan=f*    matches, but `plan=free` has the exact value, which goes first
  · plan=fr*x  does not match
  · plan       matches, but `plan=free` has the exact value, which goes first
  1 other key is not asked for

user=u1
  ✓ user  chosen: the bare key, any value

rule `plan=free > user` at rules.yaml:6:14
  a counter for each value of `user`
  shadow mode: counts, but never refuses
  all of its limits apply at once:
  100 per minute, token_bucket, burst 20, named `calls`
    never more than 120 in any minute: the burst of 20 plus 100 per minute
  unlimited
    admits everything and counts nothing
    puts `calls` out of force in the same request
",
    );
}

#[test]
fn tells_that_an_earlier_pattern_took_it() {
    check(
        "plan=frux",
        "\
domain api, descriptor plan=frux

plan=frux
  · plan=free  does not match
  ✓ plan=f*    chosen: a pattern
  · plan=fr*x  matches, but `plan=f*` stands earlier in the file
  · plan       matches, but `plan=f*` is a pattern, which goes before the bare key
  1 other key is not asked for

rule `plan=f*` at rules.yaml:11:10
  allow-list entry: it has no limit, so the request passes
",
    );
}

#[test]
fn a_list_is_one_candidate_that_matches_by_the_value_it_matches_by() {
    let compiled = compile_ok(
        "domain: api\ndescriptors: [{key: a, value: [x, \"y*\", z]}, {key: a, value: \"yy*\"}]\n",
    );
    let domain = compiled.rules.domain("api").expect("the domain");
    let check = |descriptor: &str, expected: &[(Rank, Fate)]| {
        let trace = domain.trace(&entries(descriptor));
        let found: Vec<_> = trace.steps[0]
            .candidates
            .iter()
            .map(|it| (it.rank, it.fate))
            .collect();
        assert_eq!(found, expected, "{descriptor}");
    };
    check(
        "a=z",
        &[(Rank::Exact, Fate::Chosen), (Rank::Pattern, Fate::NoMatch)],
    );
    check(
        "a=yy",
        &[
            (Rank::Pattern, Fate::Chosen),
            (Rank::Pattern, Fate::Outranked),
        ],
    );
    check(
        "a=b",
        &[(Rank::Exact, Fate::NoMatch), (Rank::Pattern, Fate::NoMatch)],
    );
}

#[test]
fn tells_why_nothing_applies() {
    let check = |descriptor: &str, expected: &str| {
        let compiled = compile_ok(RULES);
        let domain = compiled.rules.domain("api").expect("the domain");
        let text = explain::render(domain, &entries(descriptor), &|_| Vec::new(), Color::Never);
        let last = text.lines().last().expect("lines");
        assert_eq!(
            last.split_once(": ").expect("a reason").0,
            "no limit applies"
        );
        assert!(last.contains(expected), "{last}");
    };
    check("plan=free", "rules below it, but no limit of its own");
    check("nothing=x", ": no rule matches");
    check(
        "plan=free,nothing=x",
        "a choice made before is never taken back",
    );
    check("other=x,more=y", "more entries than the rules have levels");
    check("", "no entries");
}

#[test]
fn tells_what_a_limit_counts_and_that_it_is_hidden() {
    let compiled = compile_ok(
        "domain: api\ndescriptors:\n- key: card\n  rate_limit: \
         {unit: day, requests_per_unit: 3, count_status: [402, 5xx], announce: false}\n",
    );
    let domain = compiled.rules.domain("api").expect("the domain");
    let text = explain::render(domain, &entries("card=4711"), &|_| Vec::new(), Color::Never);
    let expected = "
  3 per day, fixed_window
    never more than 3 in each day by the clock, at worst 6 in one across its edge
    counts only responses with status 402, 500-599: in the gateway, which refunds the others; elsewhere every request counts
    hidden: headers and bodies do not tell of it
";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn tells_of_no_counter_where_nothing_is_counted() {
    let compiled =
        compile_ok("domain: api\ndescriptors:\n- key: probe\n  rate_limit: {unlimited: true}\n");
    let domain = compiled.rules.domain("api").expect("the domain");
    let text = explain::render(domain, &entries("probe=1"), &|_| Vec::new(), Color::Never);
    let expected = "
rule `probe` at rules.yaml:3:8
  unlimited
    admits everything and counts nothing
";
    assert!(text.ends_with(expected), "{text}");
}
