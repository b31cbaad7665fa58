//! What others did on the machine meanwhile: figures of a busy machine are worth less.

use std::error::Error;
use std::fs;
use std::time::Instant;

use super::process::{self, Process};

/// Hundredths of a second, in which Linux counts on the platforms we build for.
const PER_SECOND: f64 = 100.0;

/// The machine when the measuring began.
pub struct Noise {
    begun: Instant,
    busy: f64,
    ours: f64,
}

// === impl Noise ===

impl Noise {
    /// Begins to listen, while those servers run.
    pub fn begin(servers: &[&Process]) -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            begun: Instant::now(),
            busy: busy_seconds()?,
            ours: our_seconds(servers)?,
        })
    }

    /// How many cores others had since, on average.
    pub fn others(&self, servers: &[&Process]) -> Result<f64, Box<dyn Error>> {
        let busy = busy_seconds()? - self.busy;
        let ours = our_seconds(servers)? - self.ours;
        Ok(((busy - ours) / self.begun.elapsed().as_secs_f64()).max(0.0))
    }
}

/// Seconds that all cores were busy since the machine started.
fn busy_seconds() -> Result<f64, Box<dyn Error>> {
    let stat = fs::read_to_string("/proc/stat")?;
    let line = stat.lines().next().ok_or("no line in /proc/stat")?;
    // cpu, user, nice, system, idle, iowait, irq, softirq, ...
    let numbers = line.split_whitespace().skip(1).map(str::parse::<f64>);
    let numbers: Vec<f64> = numbers.collect::<Result<_, _>>()?;
    let busy = [0, 1, 2, 5, 6].map(|place| numbers.get(place).copied().unwrap_or_default());
    Ok(busy.iter().sum::<f64>() / PER_SECOND)
}

/// Seconds of processor that the servers, this program and its children of before had.
fn our_seconds(servers: &[&Process]) -> Result<f64, Box<dyn Error>> {
    let mut seconds = process::cpu_seconds(std::process::id())? + ended_seconds()?;
    for server in servers {
        seconds += server.cpu_seconds()?;
    }
    Ok(seconds)
}

/// Seconds of processor that children had which have ended.
fn ended_seconds() -> Result<f64, Box<dyn Error>> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The name may have spaces; what follows it begins with the third field.
    let fields = stat
        .rsplit(") ")
        .next()
        .ok_or("no fields in /proc/self/stat")?;
    let ticks = fields
        .split_whitespace()
        .skip(13)
        .take(2)
        .map(str::parse::<f64>);
    let ticks = ticks.collect::<Result<Vec<_>, _>>()?;
    Ok(ticks.iter().sum::<f64>() / PER_SECOND)
}
