//! Bytes of any kind: no panic, no runaway, and a report that can be printed.

use std::fmt::Write as _;

use proptest::prelude::*;
use tidegate_rules::{Color, CompileOptions, MergeDomains, Report, Severity, Source, compile};

use crate::support::{compile_err, compile_ok};

const VALID: &str = include_str!("../../../../deploy/rules/example.yaml");

/// Compiles the bytes as two files and renders whatever is said about them.
fn survive(bytes: &[u8]) -> Option<Report> {
    let sources = ["a.yaml", "b.yaml"].map(|name| Source {
        name: name.to_owned(),
        bytes: bytes.to_vec(),
    });
    for merge_domains in [MergeDomains::Refuse, MergeDomains::Merge] {
        let options = CompileOptions {
            merge_domains,
            ..CompileOptions::default()
        };
        let report = match compile(&sources[..1], &options) {
            Ok(compiled) => compiled.warnings,
            Err(report) => report,
        };
        report.render(Color::Always);
        assert!(report.len() <= 200);
    }
    compile(&sources, &CompileOptions::default()).err()
}

proptest! {
    #[test]
    fn random_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        survive(&bytes);
    }

    /// Text made of the signs that mean something to YAML.
    #[test]
    fn random_signs(text in "[-:,?!&*<|>%@`'\"#{}\\[\\] \n\tab0~\u{85}\u{feff}]{0,200}") {
        survive(text.as_bytes());
    }

    /// A valid file with a piece replaced by another.
    #[test]
    fn mutated_rules(
        at in 0..VALID.len(),
        cut in 0..40_usize,
        from in 0..VALID.len(),
        length in 0..60_usize,
    ) {
        let bytes = VALID.as_bytes();
        let mut mutated = bytes[..at].to_vec();
        mutated.extend(bytes[from..].iter().take(length));
        mutated.extend(bytes[at..].iter().skip(cut));
        survive(&mutated);
    }

    /// A valid file with single bytes changed.
    #[test]
    fn spoilt_bytes(changes in proptest::collection::vec((0..VALID.len(), any::<u8>()), 1..6)) {
        let mut bytes = VALID.as_bytes().to_vec();
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        survive(&bytes);
    }
}

/// The codes of a report.
fn codes(report: &Report) -> Vec<&'static str> {
    report.iter().map(|diagnostic| diagnostic.code).collect()
}

#[test]
fn aliases_that_multiply_are_refused() {
    let mut text = "domain: d\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let below = level - 1;
        let row = vec![format!("*a{below}"); 10].join(", ");
        let _ = writeln!(text, "a{level}: &a{level} [{row}]");
    }
    assert_eq!(codes(&compile_err(&text)), ["too-large"]);
}

#[test]
fn aliases_of_long_texts_are_refused() {
    let text = format!(
        "domain: &a {}\nx: [{}]\n",
        "x".repeat(1 << 20),
        "*a, ".repeat(100_000)
    );
    assert_eq!(codes(&compile_err(&text)), ["too-large"]);
}

#[test]
fn anchors_that_nest_are_refused_before_their_copies_fill_memory() {
    let mut text = "domain: d\nx: ".to_owned();
    for level in 0..90 {
        let _ = write!(text, "&a{level} [");
    }
    text.push_str(&"x,".repeat(50_000));
    text.push_str(&"]".repeat(90));
    assert_eq!(codes(&compile_err(&text)), ["too-large"]);
}

#[test]
fn an_alias_to_what_it_stands_in_is_refused() {
    let report = compile_err("domain: d\ndescriptors: &a\n- key: x\n  descriptors: *a\n");
    assert_eq!(codes(&report), ["syntax"]);
}

#[test]
fn nesting_without_end_is_refused() {
    for text in [
        "[".repeat(100_000),
        "- ".repeat(100_000),
        "{a: ".repeat(100_000),
    ] {
        let report = compile_err(&text);
        assert_eq!(report.len(), 1, "{report}");
    }
    let mut text = "domain: d\n".to_owned();
    for level in 0..200 {
        let _ = writeln!(text, "{0}descriptors:\n{0}- key: k", " ".repeat(2 * level));
    }
    assert_eq!(compile_err(&text).len(), 1);
}

#[test]
fn an_oversized_file_is_refused() {
    let text = format!("domain: d\n#{}", "x".repeat(16 << 20));
    assert_eq!(codes(&compile_err(&text)), ["too-large"]);
}

#[test]
fn texts_that_every_answer_or_log_would_repeat_are_bounded() {
    let with_metadata = |n_fields: usize| {
        let mut text = "domain: d\ndescriptors:\n- key: k\n  metadata:\n".to_owned();
        for field in 0..n_fields {
            let _ = writeln!(text, "    f{field:04}: [1, x]");
        }
        text
    };
    // Nine bytes each: the name, the list, and what is in it.
    compile_ok(&with_metadata(7_000));
    assert_eq!(codes(&compile_err(&with_metadata(8_000))), ["too-large"]);
    let of_domain = |n_bytes: usize| format!("domain: {}\ndescriptors: []\n", "d".repeat(n_bytes));
    compile_ok(&of_domain(4_096));
    assert_eq!(codes(&compile_err(&of_domain(4_097))), ["too-large"]);
}

#[test]
fn too_many_files_are_refused() {
    let file = |at: usize| Source {
        name: format!("{at}.yaml"),
        bytes: format!("domain: d{at}\n#{}", "x".repeat(3 << 20)).into_bytes(),
    };
    let sources: Vec<_> = (0..6).map(file).collect();
    let report = compile(&sources, &CompileOptions::default()).expect_err("18 MiB");
    assert!(codes(&report).contains(&"too-large"));
}

#[test]
fn too_many_rules_are_refused() {
    let mut text = "domain: d\ndescriptors:\n- key: first\n  descriptors: &below\n".to_owned();
    for rule in 0..1_000 {
        let _ = writeln!(text, "  - key: k{rule}");
    }
    for rule in 0..99 {
        let _ = writeln!(text, "- {{key: a{rule}, descriptors: *below}}");
    }
    assert!(codes(&compile_err(&text)).contains(&"too-large"));
}

#[test]
fn too_many_windows_are_refused() {
    let rules = |windows: usize, algorithms: &[&str]| {
        let mut text = "domain: d\ndescriptors:\n".to_owned();
        for window in 1..=windows {
            for algorithm in algorithms {
                let limit = format!("{{limit: 1, window: {window}s, algorithm: {algorithm}}}");
                let value = format!("{algorithm}{window}");
                let _ = writeln!(text, "- {{key: k, value: {value}, rate_limit: {limit}}}");
            }
        }
        text
    };
    compile_ok(&rules(512, &["fixed_window"]));
    let refused = |text: &str| assert_eq!(codes(&compile_err(text)), ["too-large"]);
    refused(&rules(513, &["fixed_window"]));
    // A store tells the windows of different algorithms apart.
    compile_ok(&rules(256, &["fixed_window", "sliding_log"]));
    refused(&rules(257, &["fixed_window", "sliding_log"]));
}

#[test]
fn a_flood_of_faults_is_cut_short_and_counted() {
    let mut text = "domain: d\n".to_owned();
    for fault in 0..5_000 {
        let _ = writeln!(text, "nonsense{fault}: 1");
    }
    let report = compile_err(&text);
    assert_eq!((report.len(), report.omitted()), (100, 4_900));
    assert_eq!(report.count(Severity::Error), 5_000);
    assert!(report.to_string().ends_with("… and 4900 more\n"));
}

#[test]
fn a_large_set_compiles() {
    let mut text = "domain: d\ndescriptors:\n".to_owned();
    for rule in 0..5_000 {
        let _ = writeln!(
            text,
            "- {{key: k, value: v{rule}, rate_limit: {{unit: day, requests_per_unit: 1}}}}",
        );
    }
    assert_eq!(compile_ok(&text).rules.rules().count(), 5_000);
}
