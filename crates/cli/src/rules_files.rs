//! Rules from files and folders: the reading, bounded in size and number.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tidegate_rules::{
    CompileOptions, Compiled, MergeDomains, Refusals, Report, Source, compile_for,
};

use crate::config::{BuiltInRules, Rules, RulesFiles, without_login};
use crate::failure::Failure;
use crate::sharing::Sharing;

/// The most bytes that are read of a file. No set of rules comes near; a wrong path may.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// How deep folders may lie in a folder whose every file is rules.
const MAX_DEPTH: usize = 8;

/// The most files that are read of a folder.
const MAX_FILES: usize = 10_000;

/// The rules inside the binary, for a first try.
const EXAMPLE: &str = include_str!("../../../deploy/rules/example.yaml");

/// The rules of a gateway that is given none.
const GATEWAY: &str = include_str!("../../../deploy/rules/gateway.yaml");

/// All paths that could not be read.
#[derive(Debug, Default, thiserror::Error)]
#[error("{} paths could not be read", .0.len())]
pub(crate) struct Unreadable(Vec<Fault>);

/// One path that could not be read, and why.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: {reason}", path.display())]
pub(crate) struct Fault {
    pub(crate) path: PathBuf,
    pub(crate) reason: Reason,
}

/// Why a path could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Reason {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("larger than {} MiB", MAX_FILE_BYTES >> 20)]
    TooLarge,
    #[error("no *.yaml or *.yml file in this folder")]
    NoYamlFiles,
    #[error("no file in this folder")]
    NoFiles,
    #[error("more than {MAX_FILES} files in this folder")]
    TooManyFiles,
    #[error(
        "it is no path; make files of rules in Redis with `tidegate rules show --into FOLDER --from URL`"
    )]
    InRedis,
}

/// Reads and compiles rules, or those inside the binary if none are named.
pub(crate) fn load(rules: &Rules) -> Result<Compiled, Failure> {
    let sources = if rules.paths.is_empty() {
        vec![built_in(&rules.built_in)]
    } else {
        let (sources, unreadable) = read(&rules.paths, rules.files);
        if !unreadable.0.is_empty() {
            return Err(Failure::Unreadable(unreadable));
        }
        sources
    };
    compile_all(&sources, rules).map_err(Failure::BadRules)
}

fn built_in(which: &BuiltInRules) -> Source {
    let (name, text) = match which {
        BuiltInRules::Example => ("example.yaml", EXAMPLE.to_owned()),
        BuiltInRules::Gateway { domain } => {
            // A name between quotes of JSON is the same in YAML, whatever is in it.
            let domain = serde_json::Value::from(domain.as_str());
            let text = GATEWAY.replace("domain: gateway", &format!("domain: {domain}"));
            ("gateway.yaml", text)
        }
    };
    Source {
        name: name.to_owned(),
        bytes: text.into(),
    }
}

/// Compiles rules that were read, as the settings want it.
pub(crate) fn compile_all(sources: &[Source], rules: &Rules) -> Result<Compiled, Report> {
    let options = options(rules.merge_domains, rules.refusals);
    compile(sources, options, rules.sharing)
}

/// Reads the files at `paths`, and those in a folder at one of them, in the order of their names.
/// Subfolders and names that begin with a dot are left out: in a folder that Kubernetes mounts, those
/// hold a second copy of every file. Gives also what could not be read.
pub(crate) fn read(paths: &[PathBuf], which: RulesFiles) -> (Vec<Source>, Unreadable) {
    let (mut sources, mut faults) = (Vec::new(), Vec::new());
    for path in paths {
        match files_at(path, which) {
            Ok(files) => {
                for file in files {
                    match read_file(&file) {
                        Ok(source) => sources.push(source),
                        Err(reason) => faults.push(Fault { path: file, reason }),
                    }
                }
            }
            Err(reason) => faults.push(Fault::at(path, reason)),
        }
    }
    (sources, Unreadable(faults))
}

/// Compiles rules for nodes that share limits in this way: what their store cannot count is a fault.
pub(crate) fn compile(
    sources: &[Source],
    options: CompileOptions,
    sharing: Sharing,
) -> Result<Compiled, Report> {
    compile_for(sources, &options, &|quota, said| sharing.fit(quota, said))
}

/// What the compiler is told.
pub(crate) const fn options(merge_domains: bool, refusals: Refusals) -> CompileOptions {
    let merge_domains = if merge_domains {
        MergeDomains::Merge
    } else {
        MergeDomains::Refuse
    };
    CompileOptions {
        merge_domains,
        refusals,
    }
}

// === impl Fault ===

impl Fault {
    /// What is wrong with a path that was named. One that is a URL may hold a password, which is not told.
    fn at(path: &Path, reason: Reason) -> Self {
        match path.to_str() {
            Some(url) if url.contains("://") => Self {
                path: without_login(url).into(),
                reason: Reason::InRedis,
            },
            _ => Self {
                path: path.to_owned(),
                reason,
            },
        }
    }
}

// === impl Unreadable ===

impl Unreadable {
    /// The paths, each with its reason.
    pub(crate) fn faults(&self) -> &[Fault] {
        &self.0
    }

    /// Adds the paths of another.
    pub(crate) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// A line for each path.
    pub(crate) fn text(&self) -> String {
        let lines: Vec<_> = self
            .0
            .iter()
            .map(|fault| format!("error: {fault}\n"))
            .collect();
        lines.concat()
    }
}

/// The files of rules at a path: itself, or if it is a folder those in it, in the order of their names.
pub(crate) fn files_at(path: &Path, which: RulesFiles) -> Result<Vec<PathBuf>, Reason> {
    if !fs::metadata(path)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    walk(path, which, MAX_DEPTH, &mut files)?;
    if files.is_empty() {
        return Err(match which {
            RulesFiles::Yaml => Reason::NoYamlFiles,
            RulesFiles::Every => Reason::NoFiles,
        });
    }
    files.sort();
    Ok(files)
}

fn walk(
    folder: &Path,
    which: RulesFiles,
    depth: usize,
    files: &mut Vec<PathBuf>,
) -> Result<(), Reason> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        // The metadata is that of a link's target, for Kubernetes mounts files as links. What cannot be looked at is reported when it is
        // read; FIFOs, sockets and devices are left out, because reading one may take for ever.
        let is_file = fs::metadata(&path).map_or(true, |it| it.is_file());
        // A link to a folder is not followed, for it may lead in a circle.
        let is_inner = depth > 0 && entry.file_type().is_ok_and(|it| it.is_dir());
        match which {
            _ if is_hidden(&path) => {}
            RulesFiles::Every if is_inner => walk(&path, which, depth - 1, files)?,
            RulesFiles::Every if is_file => files.push(path),
            RulesFiles::Yaml if is_file && is_yaml(&path) => files.push(path),
            RulesFiles::Every | RulesFiles::Yaml => {}
        }
        if files.len() > MAX_FILES {
            return Err(Reason::TooManyFiles);
        }
    }
    Ok(())
}

fn is_hidden(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

fn is_yaml(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "yaml" || extension == "yml")
}

fn read_file(path: &Path) -> Result<Source, Reason> {
    Ok(Source {
        name: path.display().to_string(),
        bytes: read_bytes(path)?,
    })
}

/// Opens a file that is a regular one. To open or to read a FIFO or a device may take for ever.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    File::open(path)
}

/// The content of a file that is not too large.
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>, Reason> {
    let mut bytes = Vec::new();
    open_regular(path)?
        .take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|read| read > MAX_FILE_BYTES) {
        return Err(Reason::TooLarge);
    }
    Ok(bytes)
}
