//! Real servers for tests: started on free ports in folders of their own, and ended with their values,
//! also when a test panics.
//!
//! Everything here blocks for as long as it takes, but no longer than [`PATIENCE`], and panics with the
//! server's own log when something does not come about.

#![expect(
    clippy::missing_panics_doc,
    reason = "a test that cannot have its server is a failed test, everywhere here"
)]

mod folder;
mod port;
mod process;
mod server;

use std::time::Duration;

pub use folder::Folder;
pub use server::{Listening, RedisServer, ServerOptions};

/// How long to wait for another program before giving up: a guard against hanging, far beyond what a
/// loaded machine needs.
pub const PATIENCE: Duration = Duration::from_secs(30);
