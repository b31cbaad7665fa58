//! How often Redis is asked in the part of a load that counts.

use std::error::Error;
use std::net::SocketAddr;
use std::thread::JoinHandle;
use std::time::Duration;

use super::bare::Bare;
use crate::fleet::{counter, pass};

/// Reads how often one node has called its Redis.
pub struct CallCounter {
    bare: Bare,
    metrics: SocketAddr,
}

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

// === impl CallCounter ===

impl CallCounter {
    /// Of the node whose metrics are there.
    pub fn connect(redis: SocketAddr, metrics: SocketAddr) -> Result<Self, Box<dyn Error>> {
        let bare = Bare::connect(redis)?;
        Ok(Self { bare, metrics })
    }

    /// Reads the counts since both have started.
    pub fn read(&mut self) -> Result<Counts, Box<dyn Error>> {
        let calls = counter(self.metrics, CALLS)?;
        let commands = self.bare.commands()?;
        Ok(Counts { calls, commands })
    }
}

// === impl Counts ===

impl Counts {
    /// The counts since `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            calls: self.calls - before.calls,
            commands: self.commands - before.commands,
        }
    }
}

// === impl Asked ===

impl Asked {
    /// Counts after `warmup`, for `duration`, what Redis is asked by the node whose metrics are there.
    pub fn watch(
        redis: SocketAddr,
        metrics: SocketAddr,
        warmup: Duration,
        duration: Duration,
    ) -> Result<Self, Box<dyn Error>> {
        let mut counter = CallCounter::connect(redis, metrics)?;
        let mut counts = move || counter.read().map_err(|fault| fault.to_string());
        Ok(Self(std::thread::spawn(move || {
            pass(warmup);
            let before = counts()?;
            pass(duration);
            let after = counts()?;
            Ok(after.since(before))
        })))
    }

    /// What it came to.
    pub fn seen(self) -> Result<Counts, Box<dyn Error>> {
        let seen = self.0.join().map_err(|_| "the count of calls panicked")?;
        Ok(seen?)
    }
}
