//! The files of a node with a store in Redis for the process that takes its place: the number of members,
//! and at its end what it counted while Redis was unavailable.
//!
//! Both matter only to a node that starts without Redis, so nothing here keeps a node from starting: a folder
//! that cannot be written, or a damaged file, is a warning.

mod members;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tidegate_share::{CounterGroup, KnownMembers, RestoreResult, SavedCounters, SharedStore};
use tidegate_store::{Clock, MAX_MEMBERS, Restored, SystemClock, Written};
use tidegate_store_redis::RedisStore;
use tidegate_store_redis::book::Digest;
use tokio::task::spawn_blocking;
use tokio::time::interval;
use tracing::{debug, info, warn};

use crate::config::RedisUrl;
use crate::state::{StateError, StateFile};
use members::{MemberCounts, MembersFile};

/// The time between two writes of counts of members.
const INTERVAL: Duration = Duration::from_secs(1);

/// The files of one node.
#[derive(Debug, Default)]
pub(crate) struct RestartFiles {
    members: Option<Members>,
    counters: Option<Counters>,
}

/// The number of members that is known before Redis has answered, by each way in which nodes find each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StartMembers {
    pub(crate) heartbeat: KnownMembers,
    pub(crate) eventual: KnownMembers,
}

/// The number of members.
#[derive(Debug)]
struct Members {
    file: MembersFile,
    counts: Mutex<MemberCounts>,
    /// Whether the last write failed.
    is_failing: AtomicBool,
}

/// The counters of this process. Each process on a machine has a number, and restores the counters of the
/// process that had this number before.
#[derive(Debug)]
struct Counters {
    /// The folder and the name of the store in Redis.
    place: Place,
    number: u32,
    /// Held for its lock.
    _lock: File,
}

/// The folder and names of the files of one installation.
#[derive(Clone, Debug)]
struct Place {
    folder: PathBuf,
    /// Differs for each Redis and `store.name`.
    store: String,
}

// === impl RestartFiles ===

impl RestartFiles {
    /// Opens the files of a node that counts in the Redis at `url` under `name`; none if there is no folder.
    pub(crate) fn open(folder: Option<&Path>, url: &RedisUrl, name: &str) -> Self {
        let Some(folder) = folder else {
            return Self::default();
        };
        let digest = Digest::of(format!("{url} {name}").as_bytes());
        let place = Place {
            folder: folder.to_owned(),
            store: format!("{digest:.12}"),
        };
        let members = Members::open(&place);
        let opened = fs::create_dir_all(folder).and_then(|()| Counters::open(place));
        let counters = opened.map_err(|reason| {
            // The number of members cannot be written there either.
            members.is_failing.store(true, Ordering::Relaxed);
            warn!(
                "cannot write to the state folder {}: {reason}; a node that restarts without Redis will enforce \
                 whole limits; choose a folder with `store.folder`, or set `store.members`",
                folder.display()
            );
        });
        Self {
            members: Some(members),
            counters: counters.ok(),
        }
    }

    /// The number of members to start with, where `floor` is configured.
    pub(crate) fn members(&self, floor: Option<u32>) -> StartMembers {
        let counts = self.members.as_ref().map(|members| lock(&members.counts));
        let known = |remembered| KnownMembers { floor, remembered };
        StartMembers {
            heartbeat: known(counts.as_ref().and_then(|it| it.heartbeat.largest())),
            eventual: known(counts.as_ref().and_then(|it| it.eventual.largest())),
        }
    }

    /// The snapshot of a group of counters, if there is one.
    pub(crate) fn saved(&self, group: CounterGroup) -> Option<SavedCounters> {
        let file = self.counters.as_ref()?.file(group);
        match file.read() {
            Ok(source) => Some(Box::new(source)),
            Err(reason) => {
                if reason.kind() != io::ErrorKind::NotFound {
                    warn!("cannot read {file}: {reason}; its counters start empty");
                }
                None
            }
        }
    }

    /// Logs what became of the snapshots.
    pub(crate) fn report(&self, restored: &[(CounterGroup, RestoreResult)]) {
        let Some(counters) = &self.counters else {
            return;
        };
        for (group, restored) in restored {
            let file = counters.file(*group);
            match restored {
                Ok(it) if it.counters > 0 => {
                    let Restored {
                        counters,
                        expired,
                        dropped,
                        ..
                    } = *it;
                    let s = if counters == 1 { "" } else { "s" };
                    info!(
                        expired,
                        dropped, "restored {counters} counter{s} from {file}"
                    );
                }
                Ok(_) => {}
                Err(error) => warn!("ignored {file}, its counters start empty: {error}"),
            }
        }
    }

    /// Writes counts of members as they are received, for ever.
    pub(crate) async fn run(&self, store: &SharedStore<RedisStore>) {
        let mut ticks = interval(INTERVAL);
        loop {
            ticks.tick().await;
            if let Some(members) = &self.members {
                members.record(store).await;
            }
        }
    }

    /// Saves what the process that takes this one's place needs. To be called when nothing is charged any more.
    pub(crate) async fn finish(&self, store: &SharedStore<RedisStore>) {
        if let Some(members) = &self.members {
            members.record(store).await;
        }
        let Some(counters) = &self.counters else {
            return;
        };
        for group in CounterGroup::ALL {
            let file = counters.file(group);
            match file.replace(|out| store.save(group, out)) {
                Ok(Written { counters, .. }) => debug!("saved {counters} counters to {file}"),
                Err(reason) => warn!("cannot save counters to {file}: {reason}"),
            }
        }
    }
}

// === impl Members ===

impl Members {
    fn open(place: &Place) -> Self {
        let file = MembersFile(place.file("members"));
        let counts = file.read().unwrap_or_else(|reason| {
            warn!("ignored {}: {reason}", file.path().display());
            MemberCounts::default()
        });
        Self {
            file,
            counts: Mutex::new(counts),
            is_failing: AtomicBool::new(false),
        }
    }

    /// Writes the counts received since the last time, if there are any.
    async fn record(&self, store: &SharedStore<RedisStore>) {
        let heartbeat = store.membership().take_received();
        let eventual = store.eventual().membership().take_received();
        if heartbeat.or(eventual).is_none() {
            return;
        }
        let now = Duration::from_nanos(SystemClock::new().now().nanos());
        let counts = {
            let mut counts = lock(&self.counts);
            if let Some(count) = heartbeat {
                counts.heartbeat.receive(count, now);
            }
            if let Some(count) = eventual {
                counts.eventual.receive(count, now);
            }
            counts.clone()
        };
        let file = self.file.clone();
        let written = spawn_blocking(move || file.merge(&counts)).await;
        let written = written.unwrap_or_else(|reason| Err(io::Error::other(reason)));
        let was_failing = self.is_failing.swap(written.is_err(), Ordering::Relaxed);
        if let Err(reason) = written
            && !was_failing
        {
            // Once: a disk that is full stays so for a while.
            let path = self.file.path().display();
            warn!("cannot write the number of members to {path}: {reason}; retrying");
        }
    }
}

// === impl Counters ===

impl Counters {
    /// Takes the first number that no other process has.
    fn open(place: Place) -> io::Result<Self> {
        let mut number = 0;
        loop {
            let path = place.numbered(CounterGroup::Standby, number);
            match StateFile::at(path).lock() {
                Ok(lock) => {
                    return Ok(Self {
                        place,
                        number,
                        _lock: lock,
                    });
                }
                Err(StateError::InUse { .. }) if number < MAX_MEMBERS => number += 1,
                Err(StateError::NoPlace { reason, .. }) => return Err(reason),
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }

    fn file(&self, group: CounterGroup) -> StateFile {
        StateFile::at(self.place.numbered(group, self.number))
    }
}

// === impl Place ===

impl Place {
    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}-{}", self.store))
    }

    fn numbered(&self, group: CounterGroup, number: u32) -> PathBuf {
        self.folder
            .join(format!("{}-{}-{number}", group.name(), self.store))
    }
}

fn lock(counts: &Mutex<MemberCounts>) -> std::sync::MutexGuard<'_, MemberCounts> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}
