//! Counters that outlive the process: a file that is read at start, and written now and then and at
//! the end.
//!
//! The file is always whole: a new one is written beside it, brought to the disk and put in its place.
//! Another file beside it, `FILE.lock`, is locked as long as the process lives, so that two do not
//! write in turns.

mod file;
mod writer;

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tidegate_limiter::Limiter;
use tidegate_server::StateReport;
use tidegate_store::{Clock, EmbeddedStore, Restored, SnapshotError, StoreConfig, SystemClock};
use tracing::{error, info, warn};

use crate::config::Config;
use crate::failure::Failure;
use crate::stores::{self, AnyStore};
pub(crate) use file::StateFile;
use writer::{SharedReport, Writer};

/// A state file that cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StateError {
    /// Another process has it.
    #[error(
        "another process keeps its counters in {}; give each its own file with --state",
        path.display()
    )]
    InUse { path: PathBuf },
    /// There is something else in its place, which must not be moved out of the way.
    #[error("{} is no file; name a file with --state", path.display())]
    NotAFile { path: PathBuf },
    /// It could not be written there.
    #[error(
        "cannot keep counters in {}: {reason}; choose another place with --state",
        path.display()
    )]
    NoPlace { path: PathBuf, reason: io::Error },
}

/// A store in memory, and where its counters are to be kept.
pub(crate) struct Opened {
    pub(crate) store: EmbeddedStore,
    pub(crate) keeping: Keeping,
}

/// Where and how often counters are to be kept; nowhere, if there is no file.
#[derive(Debug, Default)]
pub(crate) struct Keeping(Option<Kept>);

/// Keeps the counters of a store that is in use.
#[derive(Debug)]
pub(crate) struct Keeper(Option<Writer>);

/// Tells how the keeping goes.
#[derive(Debug)]
pub(crate) struct Reporter(Option<SharedReport>);

/// The file that the counters of this process are kept in, and no other's.
#[derive(Debug)]
struct Kept {
    file: StateFile,
    interval: Duration,
    /// Held for its lock.
    _lock: File,
}

/// Makes the store, with the counters of the process before this one if there is a file of them. A
/// file that cannot be read is told of and put aside, and the store starts empty.
pub(crate) fn open(config: &Config) -> Result<Opened, Failure> {
    let memory = stores::memory_of(&config.store);
    let empty = || EmbeddedStore::try_new(memory).map_err(Failure::NoMemory);
    let Some(path) = &config.store.state.file else {
        return Ok(Opened {
            store: empty()?,
            keeping: Keeping::default(),
        });
    };
    let file = StateFile::at(path.clone());
    let lock = file.lock().map_err(Failure::NoState)?;
    let store = match restore(&file, memory) {
        Ok(Some((store, restored))) => {
            tell(&file, &store, restored);
            store
        }
        Ok(None) => {
            info!("there is no {file} yet: all counters start empty");
            empty()?
        }
        Err(SnapshotError::NoMemory(refused)) => return Err(Failure::NoMemory(refused)),
        Err(fault) => {
            refuse(&file, &fault);
            empty()?
        }
    };
    let keeping = Keeping(Some(Kept {
        file,
        interval: config.store.state.interval,
        _lock: lock,
    }));
    Ok(Opened { store, keeping })
}

// === impl Keeping ===

impl Keeping {
    /// Begins to write the counters of `limiter`'s store to the file, on a thread of its own.
    pub(crate) fn start(self, limiter: &Arc<Limiter<AnyStore>>) -> Result<Keeper, Failure> {
        let start = |kept| Writer::start(kept, Arc::clone(limiter));
        let writer = self.0.map(start).transpose();
        writer.map(Keeper).map_err(|reason| Failure::System {
            what: "start a thread",
            reason,
        })
    }
}

// === impl Keeper ===

impl Keeper {
    /// What tells how the writing goes, now and later.
    pub(crate) fn reporter(&self) -> Reporter {
        Reporter(self.0.as_ref().map(Writer::report))
    }

    /// Writes a last time. To be called when nothing is charged any more.
    pub(crate) fn finish(self) {
        if let Some(writer) = self.0 {
            writer.finish();
        }
    }
}

// === impl Reporter ===

impl Reporter {
    /// How the writing goes; `None` if nothing is written.
    pub(crate) fn report(&self) -> Option<StateReport> {
        let report = self.0.as_ref()?.lock();
        Some(report.unwrap_or_else(PoisonError::into_inner).clone())
    }
}

fn restore(
    file: &StateFile,
    memory: StoreConfig,
) -> Result<Option<(EmbeddedStore, Restored)>, SnapshotError> {
    match file.read() {
        Ok(source) => EmbeddedStore::restore(memory, SystemClock::new(), source).map(Some),
        Err(reason) if reason.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(reason) => Err(SnapshotError::Unreadable(reason)),
    }
}

fn tell(file: &StateFile, store: &EmbeddedStore, restored: Restored) {
    let Restored {
        written_at,
        counters,
        shared,
        expired,
        dropped,
    } = restored;
    let age_ms = store.clock().now().since(written_at).as_millis();
    info!(
        counters,
        shared, expired, dropped, age_ms, "{counters} counters go on from {file}"
    );
    if dropped > 0 {
        warn!(
            dropped,
            "{dropped} counters of {file} found no room and start empty; give them more with --max-memory"
        );
    }
}

/// Says that a file is of no use, and puts it where the next one does not replace it.
fn refuse(file: &StateFile, fault: &SnapshotError) {
    let cause =
        std::error::Error::source(fault).map_or(String::new(), |cause| format!(": {cause}"));
    match file.put_aside() {
        Ok(aside) => error!(
            "{file} is of no use, all counters start empty: {fault}{cause}; it is kept as {}",
            aside.display()
        ),
        Err(reason) => error!(
            "{file} is of no use, all counters start empty: {fault}{cause}; it could not be kept: {reason}"
        ),
    }
}
