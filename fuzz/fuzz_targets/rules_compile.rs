//! Bytes of any kind as a rules file: either rules or a report, and then matching, without a crash.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_rules::{CompileOptions, Source, compile};

fuzz_target!(|bytes: &[u8]| {
    let source = Source {
        name: "fuzz.yaml".to_owned(),
        bytes: bytes.to_vec(),
    };
    match compile(&[source], &CompileOptions::default()) {
        Ok(compiled) => {
            let _ = compiled;
        }
        Err(report) => assert!(!report.to_string().is_empty(), "a refusal says why"),
    }
});
