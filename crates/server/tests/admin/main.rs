//! The admin listener over real sockets.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod audit;
mod bounds;
mod callers;
mod decisions;
mod desk;
mod document;
mod guard;
mod pages;
mod program;
mod rules;
mod samples;
mod schema;
mod store;
