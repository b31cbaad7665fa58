//! The copy of the version in force, for a start without Redis.

use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tidegate_store_redis::book::{Digest, Entry, MAX_BODY, Version};
use tracing::error;

use crate::rules_files;
use crate::rules_source::apart_io;
use crate::state::StateFile;

/// The file with the version that was last in force here.
#[derive(Clone, Debug)]
pub(super) struct RulesCache {
    path: PathBuf,
}

/// A copy that is of no use.
#[derive(Debug, thiserror::Error)]
#[error("no copy of the rules can be read in {}: {reason}", path.display())]
pub(super) struct NoCache {
    path: PathBuf,
    reason: io::Error,
}

/// What the file begins with. After it come the number and the line of the history, and then the body.
const MAGIC: &str = "tidegate-rules-1 ";

/// More bytes than a first line has.
const MAX_LINE: usize = 8 << 10;

// === impl RulesCache ===

impl RulesCache {
    pub(super) const fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Puts a version in the place of the one before, whole or not at all. If that fails it is told,
    /// and the rules come into force all the same.
    pub(super) async fn write(&self, version: &Version) {
        let (path, version) = (self.path.clone(), version.clone());
        if let Err(reason) = apart_io(move || write(&path, &version)).await {
            error!(
                "cannot keep a copy of the rules in {self}: {reason}; without it and without Redis this \
                 node does not start; choose another file with --rules-cache, or `off`"
            );
        }
    }

    /// The version in the file.
    pub(super) async fn read(&self) -> Result<Version, NoCache> {
        let path = self.path.clone();
        apart_io(move || read(&path))
            .await
            .map_err(|reason| NoCache {
                path: self.path.clone(),
                reason,
            })
    }
}

impl fmt::Display for RulesCache {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(formatter)
    }
}

fn write(path: &Path, version: &Version) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    StateFile::shared(path.to_owned()).replace(|file| {
        let Entry { number, .. } = version.entry;
        writeln!(file, "{MAGIC}{number} {}", version.entry.line())?;
        file.write_all(&version.body)
    })
}

fn read(path: &Path) -> io::Result<Version> {
    let mut bytes = Vec::new();
    let most = u64::try_from(MAX_LINE + MAX_BODY).unwrap_or(u64::MAX);
    rules_files::open_regular(path)?
        .take(most)
        .read_to_end(&mut bytes)?;
    parse(&bytes).ok_or_else(|| io::Error::other("it is damaged, or no such copy"))
}

fn parse(bytes: &[u8]) -> Option<Version> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let (line, body) = (&bytes[..end], &bytes[end + 1..]);
    let line = str::from_utf8(line).ok()?.strip_prefix(MAGIC)?;
    let (number, line) = line.split_once(' ')?;
    let entry = Entry::read(number.parse().ok()?, line.as_bytes())?;
    (entry.digest == Digest::of(body)).then(|| Version {
        entry,
        body: body.to_vec(),
    })
}
