//! The real executable, run from outside.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod authorize;
mod check;
mod config;
mod drain;
mod explain;
mod faults;
mod full_memory;
mod gateway;
mod health;
mod help;
mod program;
mod pushed;
mod reference;
mod reload;
mod schema;
mod serve;
mod server;
mod shared;
mod state;
