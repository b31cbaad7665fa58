//! A folder that goes with its value.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, fs, process};

/// An empty folder of its own, removed with all that is in it when dropped.
#[derive(Debug)]
pub struct Folder(PathBuf);

// === impl Folder ===

impl Folder {
    /// Makes one.
    pub fn new() -> Self {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        // Short: the path of a unix socket has room for some hundred bytes.
        let path = env::temp_dir().join(format!("tidegate-{}-{number}", process::id()));
        // A process of the same id may have been killed before it could clean up.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a temporary folder can be made");
        Self(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Default for Folder {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
