//! What files look like from outside.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::config::RulesFiles;
use crate::rules_files;

/// Files and folders that are watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WatchedFiles {
    /// The files and folders.
    pub(crate) paths: Vec<PathBuf>,
    /// The files of a folder that count.
    pub(crate) files: RulesFiles,
}

/// What files look like, without their content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fingerprint(Vec<(PathBuf, Option<Look>)>);

/// What one file looks like. The time of its last change of any kind is among it, which no program can
/// set, so a file that is written again is never taken for what it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Look {
    device: u64,
    inode: u64,
    bytes: u64,
    written: (i64, i64),
    changed: (i64, i64),
}

/// The most folders that are listened to; the files in the others are still looked at.
const MAX_FOLDERS: usize = 256;

// === impl WatchedFiles ===

impl WatchedFiles {
    /// The folders in which something happens when the files change: those around them, and those around every link on the
    /// way to them.
    pub(super) fn folders(&self) -> Vec<PathBuf> {
        let mut folders = BTreeSet::new();
        for path in &self.paths {
            folders.insert(folder_of(path));
            let links = path.ancestors().filter(|part| part.is_symlink());
            folders.extend(links.map(folder_of));
            if path.is_dir() {
                folders.insert(path.clone());
            }
            let files = rules_files::files_at(path, self.files).unwrap_or_default();
            folders.extend(files.iter().map(|file| folder_of(file)));
        }
        folders.into_iter().take(MAX_FOLDERS).collect()
    }
}

// === impl Fingerprint ===

impl Fingerprint {
    /// Looks at the files.
    pub(crate) fn of(watched: &WatchedFiles) -> Self {
        let files = watched.paths.iter().flat_map(|path| {
            // A path that cannot be read looks like nothing, and that too is a look.
            rules_files::files_at(path, watched.files).unwrap_or_else(|_| vec![path.clone()])
        });
        let looks = files.map(|file| {
            let look = Look::at(&file);
            (file, look)
        });
        Self(looks.collect())
    }
}

impl Fingerprint {
    /// The same, but files that were looked at earlier too as they looked then.
    pub(crate) fn seen_since(mut self, earlier: &Self) -> Self {
        for (path, look) in &mut self.0 {
            if let Some((_, before)) = earlier.0.iter().find(|(other, _)| other == path) {
                *look = *before;
            }
        }
        self
    }
}

// === impl Look ===

impl Look {
    fn at(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            written: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}
