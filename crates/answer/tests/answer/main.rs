//! What verdicts look like to clients, from rules to headers and bodies.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod broken;
mod dialects;
mod fixture;
mod hidden;
mod page;
mod problem;
mod properties;
mod structured;
