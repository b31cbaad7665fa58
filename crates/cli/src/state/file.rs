//! The file itself: how it is locked, read, replaced and put aside.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process;

use super::StateError;

/// Only its owner may read it: it holds the secret of the fingerprints.
const MODE: u32 = 0o600;

/// Bytes that are written or read at a time.
const BUFFER: usize = 256 * 1024;

/// The file that counters are kept in.
#[derive(Clone, Debug)]
pub(crate) struct StateFile {
    path: PathBuf,
    /// What is after the name of the one that is to replace it.
    fresh: String,
}

// === impl StateFile ===

impl StateFile {
    /// A file of this process and no other: see [`lock`](Self::lock).
    pub(crate) fn at(path: PathBuf) -> Self {
        let fresh = "new".to_owned();
        Self { path, fresh }
    }

    /// A file that several processes may replace at the same moment; one of them is the last.
    pub(crate) fn shared(path: PathBuf) -> Self {
        let fresh = format!("new-{}", process::id());
        Self { path, fresh }
    }

    /// Makes sure that no other process has the file, as long as what this returns lives.
    pub(crate) fn lock(&self) -> Result<File, StateError> {
        let path = || self.path.clone();
        // A folder or a device would be put aside as if it were a damaged file.
        if fs::metadata(&self.path).is_ok_and(|it| !it.is_file()) {
            return Err(StateError::NotAFile { path: path() });
        }
        let file = self.open_lock().map_err(|reason| StateError::NoPlace {
            path: path(),
            reason,
        })?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => Err(StateError::InUse { path: path() }),
            Err(TryLockError::Error(reason)) => Err(StateError::NoPlace {
                path: path(),
                reason,
            }),
        }
    }

    /// Opens the file of the lock, and creates it if it is not there. Only a new file is created, never the target of a
    /// symlink: in a folder that others may write to, they would choose what this process creates.
    fn open_lock(&self) -> io::Result<File> {
        let path = self.beside("lock");
        let mut options = OpenOptions::new();
        options.write(true).mode(MODE);
        match options.clone().create_new(true).open(&path) {
            Err(reason) if reason.kind() == io::ErrorKind::AlreadyExists => options.open(&path),
            opened => opened,
        }
    }

    /// What is in it.
    pub(crate) fn read(&self) -> io::Result<impl Read + use<>> {
        let file = File::open(&self.path)?;
        Ok(BufReader::with_capacity(BUFFER, file))
    }

    /// Puts in its place what `write` writes, whole or not at all.
    pub(crate) fn replace<T>(
        &self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<T>,
    ) -> io::Result<T> {
        let fresh = self.beside(&self.fresh);
        let replaced = self.write_fresh(&fresh, write);
        if replaced.is_err() {
            // It may not be there; and what is wrong is told in any case.
            let _ = fs::remove_file(&fresh);
        }
        replaced
    }

    /// Gives it another name, which it returns; a file that had it is replaced.
    pub(super) fn put_aside(&self) -> io::Result<PathBuf> {
        let aside = self.beside("bad");
        fs::rename(&self.path, &aside)?;
        Ok(aside)
    }

    fn write_fresh<T>(
        &self,
        fresh: &Path,
        write: impl FnOnce(&mut dyn Write) -> io::Result<T>,
    ) -> io::Result<T> {
        // What a process that was killed left behind may be anybody's to read.
        match fs::remove_file(fresh) {
            Err(reason) if reason.kind() != io::ErrorKind::NotFound => return Err(reason),
            _ => {}
        }
        let file = OpenOptions::new()
            .create_new(true)
            .write(true)
            .mode(MODE)
            .open(fresh)?;
        let mut file = BufWriter::with_capacity(BUFFER, file);
        let written = write(&mut file)?;
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        // The contents before the name, or a loss of power could leave the name of an empty file.
        file.sync_all()?;
        fs::rename(fresh, &self.path)?;
        File::open(self.folder())?.sync_all()?;
        Ok(written)
    }

    fn folder(&self) -> &Path {
        match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        }
    }

    /// The same path with something after its name.
    fn beside(&self, ending: &str) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".");
        name.push(ending);
        name.into()
    }
}

impl fmt::Display for StateFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(formatter)
    }
}
