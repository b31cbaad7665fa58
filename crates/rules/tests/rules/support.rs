//! What the tests share.

use tidegate_rules::{CompileOptions, Compiled, Entry, Report, Source, compile};

/// A source named `rules.yaml`.
pub(crate) fn source(text: &str) -> Source {
    Source {
        name: "rules.yaml".to_owned(),
        bytes: text.as_bytes().to_vec(),
    }
}

/// Compiles one file.
pub(crate) fn compile_text(text: &str) -> Result<Compiled, Report> {
    compile(&[source(text)], &CompileOptions::default())
}

/// Compiles one file that has no faults.
pub(crate) fn compile_ok(text: &str) -> Compiled {
    match compile_text(text) {
        Ok(compiled) => compiled,
        Err(report) => panic!("{report}"),
    }
}

/// The report of one file that has faults.
pub(crate) fn compile_err(text: &str) -> Report {
    match compile_text(text) {
        Ok(_) => panic!("it compiles:\n{text}"),
        Err(report) => report,
    }
}

/// Reads `a=b,c=d`.
pub(crate) fn entries(text: &str) -> Vec<Entry<'_>> {
    let pairs = text.split(',').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (key, value) = pair.split_once('=').expect("key=value");
            Entry { key, value }
        })
        .collect()
}
