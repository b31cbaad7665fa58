//! Writing the file, on a thread of its own: a core answers while another one waits for the disk.

use std::convert::Infallible;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tidegate_limiter::Limiter;
use tidegate_server::StateReport;
use tidegate_store::Written;
use tracing::{debug, error, info};

use super::Kept;
use crate::stores::AnyStore;

/// The shortest time between two writings. A disk is the slowest part of a machine.
const LEAST_INTERVAL: Duration = Duration::from_millis(100);

/// How the writing goes, for whoever is asked.
pub(super) type SharedReport = Arc<Mutex<StateReport>>;

/// Writes the counters of a store to its file until it is told to finish.
#[derive(Debug)]
pub(super) struct Writer {
    report: SharedReport,
    /// Nothing is ever sent: the thread notices when it is dropped, and that is the end.
    alive: Sender<Infallible>,
    thread: JoinHandle<()>,
}

/// What the thread works on.
struct Task {
    limiter: Arc<Limiter<AnyStore>>,
    kept: Kept,
    report: SharedReport,
}

// === impl Writer ===

impl Writer {
    /// Begins to write.
    pub(super) fn start(kept: Kept, limiter: Arc<Limiter<AnyStore>>) -> io::Result<Self> {
        let (alive, end) = channel();
        let report = SharedReport::default();
        let task = Task {
            limiter,
            kept,
            report: Arc::clone(&report),
        };
        let thread = thread::Builder::new()
            .name("state".to_owned())
            .spawn(move || task.run(&end))?;
        Ok(Self {
            report,
            alive,
            thread,
        })
    }

    /// Tells how the writing goes, also after its end.
    pub(super) fn report(&self) -> SharedReport {
        Arc::clone(&self.report)
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
        while end.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
            self.write();
        }
        self.write();
    }

    fn write(&self) {
        let store = self.limiter.store().local();
        let written = self.kept.file.replace(|out| store.write_snapshot(out));
        let mut report = lock(&self.report);
        let file = &self.kept.file;
        match written {
            Ok(Written {
                at,
                counters,
                bytes,
            }) => {
                debug!(counters, bytes, "wrote {counters} counters to {file}");
                if report.fault.take().is_some() {
                    info!("{file} can be written again");
                }
                report.written_at = Some(Duration::from_nanos(at.nanos()));
                report.counters = counters;
                report.bytes = bytes;
            }
            Err(reason) => {
                // Once: a disk that is full stays so for a while.
                if report.fault.is_none() {
                    error!("cannot write counters to {file}: {reason}; it is tried again");
                }
                report.failures += 1;
                report.fault = Some(reason.to_string());
            }
        }
    }
}

fn lock(report: &Mutex<StateReport>) -> MutexGuard<'_, StateReport> {
    report.lock().unwrap_or_else(PoisonError::into_inner)
}
