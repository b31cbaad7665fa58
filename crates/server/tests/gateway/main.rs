//! The gateway from outside: a real server, raw bytes on both sides.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod bounds;
mod connections;
mod forwarding;
mod harness;
mod http2;
mod limits;
mod own_paths;
mod paths;
mod refunds;
mod smuggling;
mod upgrade;
mod websocket;
