//! Every file under `fixtures` is named for what it shows.
//!
//! `valid` compiles without a word, `warning` with one, `invalid` not at all; what is said about
//! the last two stands beside each in a `.txt`. `TIDEGATE_UPDATE_FIXTURES=1` rewrites those.

use std::fs;
use std::path::{Path, PathBuf};

use tidegate_rules::{CompileOptions, Compiled, MergeDomains, Report, Severity, Source, compile};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

/// The cases of a folder: a file, or a folder of files that are compiled together.
fn cases(name: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder(name)).expect("the fixtures are there");
    let paths = entries.map(|entry| entry.expect("a readable folder").path());
    let mut cases: Vec<_> = paths
        .filter(|path| path.extension().is_none_or(|it| it != "txt"))
        .collect();
    cases.sort();
    assert!(!cases.is_empty(), "no fixtures in {name}");
    cases
}

fn compile_case(case: &Path) -> Result<Compiled, Report> {
    let mut files = if case.is_dir() {
        let entries = fs::read_dir(case).expect("a readable folder");
        entries
            .map(|entry| entry.expect("a readable folder").path())
            .collect()
    } else {
        vec![case.to_owned()]
    };
    files.sort();
    let sources: Vec<_> = files.iter().map(|file| source(file)).collect();
    let is_merged = case
        .file_stem()
        .is_some_and(|stem| stem.to_string_lossy().contains("merged"));
    let merge_domains = if is_merged {
        MergeDomains::Merge
    } else {
        MergeDomains::Refuse
    };
    let options = CompileOptions {
        merge_domains,
        ..CompileOptions::default()
    };
    compile(&sources, &options)
}

fn source(file: &Path) -> Source {
    let name = file
        .file_name()
        .expect("a file")
        .to_string_lossy()
        .into_owned();
    Source {
        name,
        bytes: fs::read(file).expect("a readable file"),
    }
}

/// Holds what was said about `case` against the text beside it.
fn check_text(case: &Path, said: &Report) {
    let beside = case.with_extension("txt");
    let said = said.to_string();
    if std::env::var_os("TIDEGATE_UPDATE_FIXTURES").is_some() {
        fs::write(&beside, &said).expect("a writable folder");
    }
    let expected = fs::read_to_string(&beside).unwrap_or_default();
    assert_eq!(said, expected, "{}", case.display());
}

#[test]
fn valid_rules_compile_without_a_word() {
    for case in cases("valid") {
        match compile_case(&case) {
            Ok(compiled) => {
                let warnings = compiled.warnings;
                assert!(warnings.is_empty(), "{}:\n{warnings}", case.display());
            }
            Err(report) => panic!("{}:\n{report}", case.display()),
        }
    }
}

#[test]
fn odd_rules_compile_with_warnings() {
    for case in cases("warning") {
        match compile_case(&case) {
            Ok(compiled) => {
                assert!(
                    !compiled.warnings.is_empty(),
                    "{}: no warning",
                    case.display()
                );
                check_text(&case, &compiled.warnings);
            }
            Err(report) => panic!("{}:\n{report}", case.display()),
        }
    }
}

#[test]
fn wrong_rules_are_refused_with_all_their_faults() {
    for case in cases("invalid") {
        match compile_case(&case) {
            Ok(_) => panic!("{} compiles", case.display()),
            Err(report) => {
                let has_error = report.iter().any(|it| it.severity == Severity::Error);
                assert!(has_error, "{}: refused without a fault", case.display());
                check_text(&case, &report);
            }
        }
    }
}
