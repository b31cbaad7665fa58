//! How findings look, and that nothing in a file can act on a terminal.

use tidegate_rules::{Color, CompileOptions, Severity, Source, compile};

use crate::support::compile_err;

#[test]
fn a_diagnostic_is_plain_data() {
    let report = compile_err(
        "domain: d\ndescriptors:\n- key: a\n  rate_limit: {unit: fortnight, limit: 1}\n",
    );
    let diagnostics: Vec<_> = report.iter().collect();
    let [diagnostic] = diagnostics.as_slice() else {
        panic!("{report}")
    };
    assert_eq!(diagnostic.severity, Severity::Error);
    assert_eq!(diagnostic.code, "bad-value");
    assert_eq!(&*diagnostic.file, "rules.yaml");
    assert_eq!(
        (diagnostic.line, diagnostic.column, diagnostic.end_column),
        (4, 22, 31)
    );
    assert_eq!(diagnostic.message, "`fortnight` is no `unit`");
    assert_eq!(
        diagnostic.snippet,
        "  rate_limit: {unit: fortnight, limit: 1}"
    );
    let hint = diagnostic.hint.as_deref().expect("a hint");
    assert!(hint.starts_with("one of `second`, `minute`"), "{hint}");
}

#[test]
fn columns_count_characters_not_bytes() {
    let report = compile_err("domain: d\ndescriptors: [{ key: äöü, colour: 1 }]\n");
    let rendered = report.to_string();
    assert!(
        rendered.contains(
            "2 | descriptors: [{ key: äöü, colour: 1 }]\n  |                           ^^^^^^\n"
        ),
        "{rendered}"
    );
}

#[test]
fn colours_only_on_request() {
    let report = compile_err("nonsense: 1\n");
    assert!(!report.render(Color::Never).contains('\u{1b}'));
    assert!(
        report
            .render(Color::Always)
            .contains("\u{1b}[1;31merror[unknown-field]\u{1b}[0m")
    );
    assert_eq!(report.render(Color::Never), report.to_string());
}

#[test]
fn nothing_in_a_file_reaches_the_terminal_unescaped() {
    let evil = "\u{1b}[2J\u{202e}";
    let text =
        format!("domain: \"\\e[2J\\u202e\"\n\"\\e[2J\\u202e\": 1\n# {evil}\ncolour: '{evil}'\n");
    let source = Source {
        name: format!("{evil}.yaml"),
        bytes: text.into_bytes(),
    };
    let Err(report) = compile(&[source], &CompileOptions::default()) else {
        panic!("it compiles")
    };
    let rendered = report.to_string();
    assert!(!rendered.contains(['\u{1b}', '\u{202e}']), "{rendered:?}");
}

#[test]
fn a_long_line_is_shown_around_the_fault() {
    let padding = "x".repeat(500);
    let report = compile_err(&format!(
        "domain: d\ndescriptors: [{{ key: {padding}, colour: 1 }}]\n"
    ));
    let diagnostic = report.iter().next().expect("a fault");
    assert!(diagnostic.snippet.chars().count() <= 160);
    let rendered = report.to_string();
    let lines: Vec<_> = rendered.lines().collect();
    let at = lines[4].find('^').expect("marks");
    assert!(lines[3][at..].starts_with("colour"), "{rendered}");
}

#[test]
fn bytes_that_are_not_utf8_are_placed() {
    let source = Source {
        name: "x".to_owned(),
        bytes: b"domain: d\nab\xff\n".to_vec(),
    };
    let report = compile(&[source], &CompileOptions::default()).expect_err("not UTF-8");
    let diagnostic = report.iter().next().expect("a fault");
    assert_eq!(
        (diagnostic.code, diagnostic.line, diagnostic.column),
        ("not-utf8", 2, 3)
    );
}

#[test]
fn every_file_is_reported_at_once_and_in_order() {
    let sources = ["one", "two"].map(|name| Source {
        name: name.to_owned(),
        bytes: format!("domain: {name}\ncolour: 1\ncolor: 2\n").into_bytes(),
    });
    let report = compile(&sources, &CompileOptions::default()).expect_err("faults");
    let places: Vec<_> = report
        .iter()
        .map(|it| format!("{}:{}", it.file, it.line))
        .collect();
    assert_eq!(places, ["one:2", "one:3", "two:2", "two:3"]);
}
