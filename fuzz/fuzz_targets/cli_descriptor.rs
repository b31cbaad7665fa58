//! Any text as a descriptor on the command line: what is read, quoted and read again stays the same.

#![no_main]

use descriptor::{TypedEntry, parse};
use libfuzzer_sys::fuzz_target;

// A program has no public interface: the file itself is taken in.
#[path = "../../crates/cli/src/descriptor.rs"]
mod descriptor;

fuzz_target!(|text: &str| {
    if let Ok(entries) = parse(text) {
        let written: Vec<String> = entries.iter().map(write).collect();
        assert_eq!(parse(&written.join(",")), Ok(entries));
    }
});

fn write(entry: &TypedEntry) -> String {
    format!("{}={}", quote(&entry.key), quote(&entry.value))
}

fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
