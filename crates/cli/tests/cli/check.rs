//! `tidegate check`.

use std::fs;
use std::os::unix::fs::symlink;

use crate::program::{check, command, run, scratch};

const RULES: &str =
    "domain: DOMAIN\ndescriptors:\n  - key: a\n    rate_limit: {unit: day, limit: 1}\n";

#[test]
fn valid_rules_are_valid() {
    check("check_valid", &["check", "valid.yaml"]);
    check(
        "check_valid_json",
        &["check", "valid.yaml", "--format", "json"],
    );
}

#[test]
fn warnings_are_shown_and_do_no_harm() {
    check("check_warning", &["check", "warning.yaml"]);
    check(
        "check_warning_json",
        &["check", "warning.yaml", "--format", "json"],
    );
}

#[test]
fn all_faults_are_shown() {
    check("check_faults", &["check", "faults.yaml", "valid.yaml"]);
    check(
        "check_faults_json",
        &["check", "faults.yaml", "--format", "json"],
    );
}

#[test]
fn all_unreadable_paths_are_reported() {
    check(
        "check_unreadable",
        &["check", "missing.yaml", "valid.yaml", "nowhere/"],
    );
    check(
        "check_unreadable_json",
        &["check", "missing.yaml", "nowhere/", "--format", "json"],
    );
}

#[test]
fn a_domain_in_two_files_is_a_fault_unless_merged() {
    check(
        "check_two_files",
        &["check", "valid.yaml", "valid_too.yaml"],
    );
    check(
        "check_merged",
        &["check", "valid.yaml", "valid_too.yaml", "--merge-domains"],
    );
}

/// Kubernetes mounts a folder of links into `..data`, itself a link to a folder with a date.
#[test]
fn a_mounted_folder_is_read_once() {
    let folder = scratch("mounted");
    fs::create_dir(folder.join("..2026")).unwrap();
    fs::write(folder.join("..2026/b.yml"), RULES.replace("DOMAIN", "b")).unwrap();
    symlink("..2026", folder.join("..data")).unwrap();
    symlink("..data/b.yml", folder.join("b.yml")).unwrap();
    fs::write(folder.join("a.yaml"), RULES.replace("DOMAIN", "a")).unwrap();
    fs::write(folder.join(".hidden.yaml"), "no rules").unwrap();
    fs::write(folder.join("notes.txt"), "no rules").unwrap();
    fs::create_dir(folder.join("folder.yaml")).unwrap();
    let run = run(&["check", folder.to_str().unwrap()]);
    assert_eq!(
        run.stdout, "valid: 2 files, 2 domains, 2 rules, 2 limits\n",
        "{run:?}"
    );
}

#[test]
fn a_folder_without_rules_could_not_be_read() {
    let folder = scratch("empty");
    let run = run(&["check", folder.to_str().unwrap()]);
    assert_eq!(run.code, Some(2));
    assert!(
        run.stderr
            .ends_with("no *.yaml or *.yml file in this folder\n"),
        "{run:?}"
    );
}

#[test]
fn a_reader_who_has_gone_is_no_failure() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command(&["check", "valid.yaml"])
        .stdout(writer)
        .output()
        .unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

#[test]
fn what_cannot_be_read_does_not_hide_the_faults_of_the_rest() {
    check(
        "check_unreadable_and_faults",
        &["check", "missing.yaml", "faults.yaml"],
    );
}

#[test]
fn what_a_store_makes_of_limits_is_noted() {
    check("check_in_memory", &["check", "shared.yaml"]);
    let redis = ["--store", "redis://127.0.0.1:6379"];
    check(
        "check_in_redis",
        &[&["check", "shared.yaml"], &redis[..]].concat(),
    );
    check(
        "check_in_redis_json",
        &[&["check", "shared.yaml", "--format", "json"], &redis[..]].concat(),
    );
}

#[test]
fn a_postpaid_limit_is_never_lent_or_split() {
    let redis = ["--store", "redis://127.0.0.1:6379"];
    check(
        "check_postpaid",
        &[&["check", "postpaid.yaml"], &redis[..]].concat(),
    );
    let rules = ["explain", "--rules", "postpaid.yaml", "--domain", "llm"];
    let descriptors = ["leased=1", "split=1", "eventual=1"];
    check(
        "explain_postpaid",
        &[&rules[..], &redis, &descriptors].concat(),
    );
}

#[test]
fn a_flag_that_does_nothing_is_told() {
    let told = |args: &[&str]| {
        let checked = run(&[&["check", "valid.yaml", "--consistency", "strict"], args].concat());
        assert_eq!(checked.code, Some(0), "{checked:?}");
        checked.stderr
    };
    assert!(told(&[]).starts_with("note: without effect: --consistency: counters are in"));
    assert_eq!(told(&["--store", "redis://127.0.0.1:6379"]), "");
}

#[test]
fn a_limit_that_redis_cannot_count_is_a_fault_only_there() {
    assert_eq!(run(&["check", "unfit.yaml"]).code, Some(0));
    let redis = ["check", "unfit.yaml", "--store", "redis://127.0.0.1:6379"];
    check("check_unfit", &redis);
    // A server of such settings does not start with them either.
    let serve = ["--rules", "unfit.yaml", "--store", "redis://127.0.0.1:6379"];
    assert_eq!(run(&[&["serve"], &serve[..]].concat()).code, Some(1));
}

#[test]
fn rules_in_redis_are_made_files_first() {
    let checked = run(&["check", "redis://:hunter2@127.0.0.1:6379"]);
    assert_eq!(checked.code, Some(2), "{checked:?}");
    assert!(checked.stderr.contains("rules show --into"), "{checked:?}");
    assert!(!checked.stderr.contains("hunter"), "{checked:?}");
}
