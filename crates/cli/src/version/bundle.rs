//! The files of a version, as one body.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use tidegate_rules::Source;

/// The files of a version, in the order in which they are read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bundle {
    format: u32,
    /// Whether several files may speak of one domain.
    pub(crate) merge_domains: bool,
    files: Vec<BundledFile>,
}

/// One file of a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BundledFile {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// Files that make no version, or bytes that are none.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotABundle {
    #[error("two files are named {name}; put them in one folder and push that")]
    Twice { name: String },
    #[error("{name:?} is no name of a file in a folder, of at most {MAX_NAME} plain characters")]
    BadName { name: String },
    #[error("{name} is not UTF-8")]
    NotText { name: String },
    #[error("it is not what `tidegate rules push` writes: {0}")]
    NotJson(serde_json::Error),
    #[error("it has format {found}, and this release knows {FORMAT}; a later one pushed it")]
    Later { found: u32 },
    #[error("there is no file in it")]
    Empty,
}

/// How it is known how to read the rest.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

/// What is written. A change that an older release would misread takes the next number.
const FORMAT: u32 = 1;

/// The most characters of a name.
const MAX_NAME: usize = 255;

// === impl Bundle ===

impl Bundle {
    /// The files that were read, each with the path that led to it: a folder, or the file itself.
    /// Names are those inside the folder, so that it does not matter where it lies.
    pub(crate) fn new(
        found: &[(PathBuf, Source)],
        merge_domains: bool,
    ) -> Result<Self, NotABundle> {
        let files = found.iter().map(|(path, source)| {
            let name = name_in(path, &source.name);
            match String::from_utf8(source.bytes.clone()) {
                Ok(text) => Ok(BundledFile { name, text }),
                Err(_) => Err(NotABundle::NotText { name }),
            }
        });
        Self {
            format: FORMAT,
            merge_domains,
            files: files.collect::<Result<_, _>>()?,
        }
        .checked()
    }

    /// As it is stored.
    pub(crate) fn body(&self) -> Vec<u8> {
        // A map of strings always has a JSON form.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads what is stored.
    pub(crate) fn read(body: &[u8]) -> Result<Self, NotABundle> {
        let Format { format } = serde_json::from_slice(body).map_err(NotABundle::NotJson)?;
        if format != FORMAT {
            return Err(NotABundle::Later { found: format });
        }
        let read: Self = serde_json::from_slice(body).map_err(NotABundle::NotJson)?;
        read.checked()
    }

    /// Its files.
    pub(crate) fn files(&self) -> &[BundledFile] {
        &self.files
    }

    /// Its files for the compiler. Findings name them as `v17:api.yaml`.
    pub(crate) fn sources(&self, version: u64) -> Vec<Source> {
        let sources = self.files.iter().map(|file| Source {
            name: format!("v{version}:{}", file.name),
            bytes: file.text.clone().into_bytes(),
        });
        sources.collect()
    }

    fn checked(self) -> Result<Self, NotABundle> {
        let mut names = HashSet::new();
        for BundledFile { name, .. } in &self.files {
            let is_name = !name.is_empty()
                && name.chars().count() <= MAX_NAME
                && !name.chars().any(char::is_control)
                && Path::new(name)
                    .components()
                    .all(|part| matches!(part, Component::Normal(_)));
            if !is_name {
                return Err(NotABundle::BadName { name: name.clone() });
            }
            if !names.insert(name) {
                return Err(NotABundle::Twice { name: name.clone() });
            }
        }
        if self.files.is_empty() {
            return Err(NotABundle::Empty);
        }
        Ok(self)
    }
}

/// The name of `file` as seen from `path`.
fn name_in(path: &Path, file: &str) -> String {
    let file = Path::new(file);
    let inside = file.strip_prefix(path).unwrap_or(file);
    let name = if inside.as_os_str().is_empty() {
        file.file_name().map_or(file, Path::new)
    } else {
        inside
    };
    name.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, name: &str, text: &str) -> (PathBuf, Source) {
        let source = Source {
            name: name.to_owned(),
            bytes: text.into(),
        };
        (PathBuf::from(path), source)
    }

    #[test]
    fn a_bundle_reads_back_the_same() {
        let files = [
            found("rules", "rules/b.yaml", "domain: b\n"),
            found("rules", "rules/in/a.yaml", "domain: \"ä\"\n"),
            found("/etc/c.yaml", "/etc/c.yaml", ""),
        ];
        let bundle = Bundle::new(&files, true).expect("the names differ");
        let names: Vec<&str> = bundle.files().iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["b.yaml", "in/a.yaml", "c.yaml"]);
        let again = Bundle::read(&bundle.body()).expect("it was written just now");
        assert_eq!(again, bundle);
        assert_eq!(again.sources(7)[0].name, "v7:b.yaml");
    }

    #[test]
    fn files_that_make_no_version_are_told() {
        let twice = [found("a", "a/x.yaml", ""), found("b", "b/x.yaml", "")];
        let fault = Bundle::new(&twice, false).expect_err("one name is there twice");
        assert!(fault.to_string().starts_with("two files are named x.yaml"));
        let mut binary = found("a", "a/x.yaml", "");
        binary.1.bytes = vec![0xff];
        let fault = Bundle::new(&[binary], false).expect_err("it is no text");
        assert_eq!(fault.to_string(), "x.yaml is not UTF-8");
    }

    #[test]
    fn what_nobody_pushed_is_told() {
        fn check(body: &str, expected: &str) {
            let fault = Bundle::read(body.as_bytes()).expect_err(body).to_string();
            assert!(fault.starts_with(expected), "{fault}");
        }
        check("domain: shop", "it is not what");
        check(r#"{"format":2,"parts":[]}"#, "it has format 2");
        check(r#"{"format":1}"#, "it is not what");
        for name in ["..", "../x", "/etc/x", "a/../../x", "./x", ""] {
            let file = format!(r#"{{"name":"{name}","text":""}}"#);
            let body = format!(r#"{{"format":1,"merge_domains":false,"files":[{file}]}}"#);
            check(&body, &format!("{name:?} is no name"));
        }
        check(
            r#"{"format":1,"merge_domains":false,"files":[]}"#,
            "there is no file",
        );
        check(
            r#"{"format":1,"merge_domains":false,"files":[{"name":"a\u001b","text":""}]}"#,
            r#""a\u{1b}" is no name"#,
        );
    }
}
