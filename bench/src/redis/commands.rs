//! How many commands Redis gets in the part of a load that counts.

use std::error::Error;
use std::net::SocketAddr;
use std::thread::JoinHandle;
use std::time::Duration;

use super::bare::Bare;
use crate::fleet::pass;

/// A count under way, beside the load.
pub struct Commands(JoinHandle<Result<f64, String>>);

// === impl Commands ===

impl Commands {
    /// Counts after `warmup`, for `duration`.
    pub fn watch(
        server: SocketAddr,
        warmup: Duration,
        duration: Duration,
    ) -> Result<Self, Box<dyn Error>> {
        let mut bare = Bare::connect(server)?;
        let mut commands = move || bare.commands().map_err(|fault| fault.to_string());
        Ok(Self(std::thread::spawn(move || {
            pass(warmup);
            let before = commands()?;
            pass(duration);
            Ok(commands()? - before)
        })))
    }

    /// What it came to.
    pub fn seen(self) -> Result<f64, Box<dyn Error>> {
        let seen = self
            .0
            .join()
            .map_err(|_| "the count of commands panicked")?;
        Ok(seen?)
    }
}
