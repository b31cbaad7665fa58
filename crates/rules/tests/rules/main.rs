//! The crate from outside.

mod compiled;
mod documents;
mod examples;
mod explain;
mod fixtures;
mod identity;
mod matching;
mod oracle;
mod report;
mod robust;
mod support;
