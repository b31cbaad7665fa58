//! What files look like from outside.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::config::Rules;
use crate::rules_files;

/// What the files of rules look like, without their content.
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

// === impl Fingerprint ===

impl Fingerprint {
    /// Looks at the files.
    pub(crate) fn of(rules: &Rules) -> Self {
        let files = rules.paths.iter().flat_map(|path| {
            // A path that cannot be read looks like nothing, and that too is a look.
            rules_files::files_at(path, rules.files).unwrap_or_else(|_| vec![path.clone()])
        });
        let looks = files.map(|file| {
            let look = Look::at(&file);
            (file, look)
        });
        Self(looks.collect())
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

/// The folders in which something happens when the files of rules change: those around them, and those
/// around every link on the way to them.
pub(super) fn folders(rules: &Rules) -> Vec<PathBuf> {
    let mut folders = BTreeSet::new();
    for path in &rules.paths {
        folders.insert(folder_of(path));
        let links = path.ancestors().filter(|part| part.is_symlink());
        folders.extend(links.map(folder_of));
        if path.is_dir() {
            folders.insert(path.clone());
        }
        let files = rules_files::files_at(path, rules.files).unwrap_or_default();
        folders.extend(files.iter().map(|file| folder_of(file)));
    }
    folders.into_iter().take(MAX_FOLDERS).collect()
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}
