//! What the executable says about itself, and about a command line that makes no sense.

use crate::program::{check, command, run};

#[test]
fn help_teaches() {
    check("help", &["--help"]);
    check("help_serve", &["serve", "--help"]);
    check("help_config", &["config", "--help"]);
    check("help_health", &["health", "--help"]);
    check("help_check", &["check", "--help"]);
    check("help_explain", &["explain", "--help"]);
    check("help_hash_key", &["hash-key", "--help"]);
    check("help_why", &["why", "--help"]);
    check("help_completions", &["completions", "--help"]);
    check("help_rules", &["rules", "--help"]);
    check("help_rules_push", &["rules", "push", "--help"]);
    check("help_rules_history", &["rules", "history", "--help"]);
    check("help_rules_show", &["rules", "show", "--help"]);
    check("help_rules_rollback", &["rules", "rollback", "--help"]);
}

#[test]
fn help_is_wrapped_to_the_terminal() {
    for name in ["serve", "config", "health", "check", "explain", "why"] {
        let help = command(&[name, "--help"]).env("COLUMNS", "80").output();
        let help = String::from_utf8(help.unwrap().stdout).unwrap();
        let long: Vec<&str> = help.lines().filter(|line| line.len() > 80).collect();
        assert!(long.is_empty(), "{name}: {long:#?}");
    }
}

#[test]
fn each_shell_gets_a_script_that_knows_the_flags() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = run(&["completions", shell]).stdout;
        for word in ["rollback", "max-memory"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
}

#[test]
fn the_version_is_that_of_the_package() {
    let version = concat!("tidegate ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(run(&["--version"]).stdout, version);
}

#[test]
fn a_command_line_that_makes_no_sense_says_what_to_do() {
    check("no_command", &[]);
    check("unknown_command", &["sevre"]);
    check("unknown_flag", &["serve", "--rulez", "x.yaml"]);
    check("bad_address", &["serve", "--http", "8080"]);
    check("bad_memory", &["serve", "--max-memory", "lots"]);
    check("too_little_memory", &["serve", "--max-memory", "1KiB"]);
    check("bad_charging", &["serve", "--charging", "some"]);
    check("stray_path", &["serve", "rules.yaml"]);
    check("check_without_path", &["check"]);
    check("explain_without_domain", &["explain", "user_id=42"]);
}
