//! Envoy's rate limit service from outside: what a client of it sees.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod client;
mod rate_limit;
mod wire;
