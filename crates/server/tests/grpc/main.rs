//! Envoy's rate limit service from outside: what a client of it sees, and what one that means harm does.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod calls;
mod client;
mod client_bytes;
mod codec;
mod deadline;
mod health;
mod hostile;
mod lifecycle;
mod memory;
mod rate_limit;
mod raw;
mod reflection;
mod wire;
mod writes;
