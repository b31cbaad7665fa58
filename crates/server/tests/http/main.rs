//! The HTTP front door over real sockets.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod authorize;
mod bounds;
mod check;
mod client;
mod document;
mod json;
mod lifecycle;
mod page;
#[path = "../admin/schema.rs"]
mod schema;
