//! Bytes of any kind as a rules file: either rules or a report, and then matching, without a crash.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_rules::{CompileOptions, Domain, Entry, Rule, Source, compile};

/// Entries of the longest descriptor that is looked up.
const MAX_ENTRIES: usize = 4;

fuzz_target!(|bytes: &[u8]| {
    let source = Source {
        name: "fuzz.yaml".to_owned(),
        bytes: bytes.to_vec(),
    };
    match compile(&[source], &CompileOptions::default()) {
        Ok(compiled) => {
            let text = String::from_utf8_lossy(bytes);
            for domain in compiled.rules.domains() {
                look_up(domain, &entries(&text));
            }
        }
        Err(report) => assert!(!report.to_string().is_empty(), "a refusal says why"),
    }
});

/// The words of the file as entries: those that it has rules for are among them.
fn entries(text: &str) -> Vec<Entry<'_>> {
    let words: Vec<&str> = text
        .split([':', '-', ' ', '\n'])
        .filter(|word| !word.is_empty())
        .collect();
    words
        .windows(2)
        .map(|pair| Entry {
            key: pair[0],
            value: pair[1],
        })
        .take(64)
        .collect()
}

/// What is found and the walk that is told must be the same.
fn look_up(domain: &Domain, entries: &[Entry<'_>]) {
    for length in 1..=MAX_ENTRIES {
        for descriptor in entries.windows(length) {
            let found = domain.find(descriptor).map(Rule::id);
            assert_eq!(found, domain.trace(descriptor).rule().map(Rule::id));
        }
    }
}
