//! How often Redis is asked in the part of a load that counts.

use std::error::Error;
use std::net::SocketAddr;
use std::thread::JoinHandle;
use std::time::Duration;

use super::bare::Bare;
use crate::fleet::{counter, pass};

/// A count under way, beside the load.
pub struct Asked(JoinHandle<Result<Counts, String>>);

/// How often Redis was asked.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    /// By the node: decisions, draws and what was given back.
    pub calls: f64,
    /// In so many commands, for calls that wait together are one.
    pub commands: f64,
}

/// What a node counts its calls by.
const CALLS: &str = "tidegate_store_calls_total";

// === impl Asked ===

impl Asked {
    /// Counts after `warmup`, for `duration`, what Redis is asked by the node whose metrics are there.
    pub fn watch(
        redis: SocketAddr,
        metrics: SocketAddr,
        warmup: Duration,
        duration: Duration,
    ) -> Result<Self, Box<dyn Error>> {
        let mut bare = Bare::connect(redis)?;
        let mut counts = move || {
            let calls = counter(metrics, CALLS).map_err(|fault| fault.to_string())?;
            let commands = bare.commands().map_err(|fault| fault.to_string())?;
            Ok::<_, String>(Counts { calls, commands })
        };
        Ok(Self(std::thread::spawn(move || {
            pass(warmup);
            let before = counts()?;
            pass(duration);
            let after = counts()?;
            Ok(Counts {
                calls: after.calls - before.calls,
                commands: after.commands - before.commands,
            })
        })))
    }

    /// What it came to.
    pub fn seen(self) -> Result<Counts, Box<dyn Error>> {
        let seen = self.0.join().map_err(|_| "the count of calls panicked")?;
        Ok(seen?)
    }
}
