//! Real servers for tests: started on free ports in folders of their own, and ended with their values,
//! also when a test panics.
//!
//! Everything here blocks for as long as it takes, but no longer than [`PATIENCE`], and panics with the
//! server's own log when something does not come about.

#![expect(
    clippy::missing_panics_doc,
    reason = "a test that cannot have its server is a failed test, everywhere here"
)]

mod asker;
mod certificates;
mod cluster;
mod folder;
mod port;
mod process;
mod proxy;
mod readers;
mod sentinel;
mod server;

use std::thread;
use std::time::{Duration, Instant};

pub use certificates::Certificates;
pub use cluster::ClusterSetup;
pub use folder::Folder;
pub use proxy::{Fault, FaultyProxy};
pub use readers::{read_reply, read_text};
pub use sentinel::SentinelSetup;
pub use server::{Listening, RedisServer, ServerOptions};

/// How long to wait for another program before giving up: a guard against hanging, far beyond what a
/// loaded machine needs.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until something is so that nobody tells of. `what` is for the panic if it never is.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    const STEP: Duration = Duration::from_millis(5);
    let began = now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "never: {what}");
        #[expect(clippy::disallowed_methods, reason = "other programs tell nobody")]
        thread::sleep(STEP);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long other programs take is by the clock of the machine, which no test moves"
)]
fn now() -> Instant {
    Instant::now()
}
