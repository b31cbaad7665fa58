//! `/v1/check`: our own question in JSON, and its answer.
//!
//! A body is read into a tree first and judged as a whole, so that all its faults are told at once.

mod answer;
mod fault;
mod json;
mod question;
mod text;

pub(crate) use answer::{Checked, CheckedBatch, Outcome};
pub(crate) use fault::{Fault, Faults};
pub(crate) use json::Json;
pub(crate) use question::{Check, CheckRequest};
pub(crate) use text::body_text;

#[cfg(test)]
mod tests;
