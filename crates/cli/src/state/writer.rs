//! Writing the file, on a thread of its own: a core answers while another one waits for the disk.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tidegate_limiter::Limiter;
use tidegate_store::{EmbeddedStore, Written};
use tracing::{debug, error, info};

use super::Kept;

/// The shortest time between two writings. A disk is the slowest part of a machine.
const LEAST_INTERVAL: Duration = Duration::from_millis(100);

/// Writes the counters of a store to its file until it is told to finish.
#[derive(Debug)]
pub(super) struct Writer {
    /// Nothing is ever sent: the thread notices when it is dropped, and that is the end.
    alive: Sender<Infallible>,
    thread: JoinHandle<()>,
}

/// Whether the last attempt to write succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Health {
    Good,
    Failing,
}

/// What the thread works on.
struct Task {
    limiter: Arc<Limiter<EmbeddedStore>>,
    kept: Kept,
}

// === impl Writer ===

impl Writer {
    /// Begins to write.
    pub(super) fn start(kept: Kept, limiter: Arc<Limiter<EmbeddedStore>>) -> io::Result<Self> {
        let (alive, end) = channel();
        let task = Task { limiter, kept };
        let thread = thread::Builder::new()
            .name("state".to_owned())
            .spawn(move || task.run(&end))?;
        Ok(Self { alive, thread })
    }

    /// Writes a last time.
    pub(super) fn finish(self) {
        drop(self.alive);
        // A thread that panicked has said so already.
        let _ = self.thread.join();
    }
}

// === impl Task ===

impl Task {
    fn run(self, end: &Receiver<Infallible>) {
        let interval = self.kept.interval.max(LEAST_INTERVAL);
        let mut health = Health::Good;
        while end.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
            health = self.write(health);
        }
        self.write(Health::Good);
    }

    /// Writes the file, and tells of a failure if the last attempt had none: a disk that is full
    /// stays so for a while.
    fn write(&self, before: Health) -> Health {
        let store = self.limiter.store();
        let file = &self.kept.file;
        match file.replace(|out| store.write_snapshot(out)) {
            Ok(written) => {
                let Written {
                    counters, bytes, ..
                } = written;
                debug!(counters, bytes, "wrote {counters} counters to {file}");
                if before == Health::Failing {
                    info!("{file} can be written again");
                }
                Health::Good
            }
            Err(reason) => {
                if before == Health::Good {
                    error!("cannot write counters to {file}: {reason}; it is tried again");
                }
                Health::Failing
            }
        }
    }
}
