//! The files of the repository, as git sees them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Source;

/// The tracked files, and the new ones that git would not ignore.
#[derive(Clone, Debug)]
pub struct Tree {
    root: PathBuf,
    files: Vec<String>,
}

// === impl Tree ===

impl Tree {
    /// Lists the repository that this crate stands in.
    ///
    /// # Panics
    ///
    /// If git is missing or this is no repository: a test that cannot look must not pass.
    pub fn of_this_repository() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let output = Command::new("git")
            .args([
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ])
            .current_dir(&root)
            .output()
            .expect("git must be installed to list the files");
        assert!(
            output.status.success(),
            "git ls-files: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let listing = String::from_utf8(output.stdout).expect("file names must be UTF-8");
        let files = listing
            .split_terminator('\0')
            .filter(|file| root.join(file).is_file())
            .map(str::to_owned)
            .collect();
        Self { root, files }
    }

    /// The root of the repository.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// All files, from the root of the repository.
    pub fn files(&self) -> &[String] {
        &self.files
    }

    /// Whether the file or folder exists in the repository.
    pub fn has(&self, path: &str) -> bool {
        self.files.iter().any(|file| {
            file.strip_prefix(path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// The text of a file; empty for a folder and for what is no text.
    pub fn read(&self, path: &str) -> Option<String> {
        let read = || fs::read_to_string(self.root.join(path)).unwrap_or_default();
        self.has(path).then(read)
    }

    /// The files that are text, with their contents, whose names end so.
    ///
    /// # Panics
    ///
    /// If a listed file cannot be read.
    pub fn texts<'a>(&'a self, ending: &'a str) -> impl Iterator<Item = (&'a str, String)> {
        self.files
            .iter()
            .filter(move |file| file.ends_with(ending))
            .filter_map(|file| {
                let bytes = fs::read(self.root.join(file)).expect("a listed file must be readable");
                Some((file.as_str(), String::from_utf8(bytes).ok()?))
            })
    }

    /// All Rust files, parsed.
    ///
    /// # Panics
    ///
    /// If one does not parse.
    pub fn sources(&self) -> Vec<Source> {
        self.texts(".rs")
            .map(|(path, text)| Source::parse(path, &text))
            .collect()
    }
}
