//! `tidegate explain`.

use std::fs;

use crate::program::{check, check_with, command, run, scratch};

#[test]
fn the_path_and_the_limits_are_explained() {
    let rules = ["explain", "--rules", "valid.yaml", "--domain", "shop"];
    let explain = |descriptors: &[&'static str]| [&rules, descriptors].concat();
    check("explain_limit", &explain(&["user_id=42"]));
    check(
        "explain_several",
        &explain(&["path=/login,user_id=42", "unknown=x"]),
    );
    check(
        "explain_quoted",
        &explain(&[r#"path="a,b=c",user_id=4\,2"#]),
    );
}

#[test]
fn without_rules_the_example_is_explained() {
    let run = run(&["explain", "--domain", "example", "user_id=42"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("5 per second"), "{run:?}");
}

#[test]
fn the_rules_of_the_settings_are_explained_unless_others_are_named() {
    let folder = scratch("explain_config");
    let write = |name: &str, limit: u32| {
        let rule =
            format!("{{key: user_id, rate_limit: {{unit: year, requests_per_unit: {limit}}}}}");
        let path = folder.join(name);
        fs::write(&path, format!("domain: shop\ndescriptors: [{rule}]\n")).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (of_settings, named) = (write("of_settings.yaml", 17), write("named.yaml", 18));
    let config = folder.join("tidegate.yaml");
    fs::write(&config, format!("rules: {of_settings}\n")).unwrap();
    let args = [
        "explain",
        "--config",
        config.to_str().unwrap(),
        "--domain",
        "shop",
        "user_id=42",
    ];
    let told = run(&args);
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(told.stdout.contains("17 per year"), "{told:?}");
    let told = run(&[&args[..], &["--rules", &named]].concat());
    assert!(told.stdout.contains("18 per year"), "{told:?}");
    let variables = [("TIDEGATE_RULES", of_settings.as_str())];
    let by_variable = ["explain", "--domain", "shop", "user_id=42"];
    let told = command(&by_variable).envs(variables).output().unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.contains("17 per year"), "{told}");
}

#[test]
fn what_cannot_be_explained_says_why() {
    check(
        "explain_no_domain",
        &["explain", "--rules", "valid.yaml", "--domain", "shp", "a=b"],
    );
    check(
        "explain_no_entry",
        &["explain", "--rules", "valid.yaml", "--domain", "shop", "a"],
    );
    check(
        "explain_faults",
        &[
            "explain",
            "--rules",
            "faults.yaml",
            "--domain",
            "shop",
            "a=b",
        ],
    );
    check(
        "explain_unreadable",
        &[
            "explain",
            "--rules",
            "missing.yaml",
            "--domain",
            "shop",
            "a=b",
        ],
    );
}

#[test]
fn how_a_limit_is_shared_is_told() {
    let descriptors = ["hot=1", "exact=1", "queue=1", "soft=1", "parts=1", "own=1"];
    let args = [
        "explain",
        "--rules",
        "shared.yaml",
        "--domain",
        "shared",
        "--store",
        "redis://127.0.0.1:6379",
    ];
    check("explain_shared", &[&args, &descriptors[..]].concat());
}

#[test]
fn which_limits_regions_share_is_told() {
    let args = [
        "explain",
        "--rules",
        "shared.yaml",
        "--domain",
        "shared",
        "--store",
        "redis://redis.eu",
    ];
    let regions = "{eu: redis://redis.eu, us: redis://redis.us, asia: redis://redis.asia}";
    let variables = [("TIDEGATE_REGIONS", regions)];
    let descriptors = ["exact=1", "soft=1"];
    check_with(
        "explain_regions",
        &[&args, &descriptors[..]].concat(),
        &variables,
    );
}
