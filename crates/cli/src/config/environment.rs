//! The environment: our own variables, and those of envoyproxy/ratelimit.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use super::raw::{Origin, Page, Written, scalar};
use super::reference::Reference;
use super::value::has_login;

/// What is set in the environment.
#[derive(Debug)]
pub(crate) struct Environment {
    /// Our own variables.
    pub(super) own: Vec<Written>,
    /// Those of envoyproxy/ratelimit.
    pub(super) reference: Reference,
    /// Those of OpenTelemetry.
    pub(super) otel: BTreeMap<String, String>,
    /// Ours and the reference's, a line each.
    pub(super) page: Page,
    /// Where programs are to keep what they write, with the rank of who says so.
    pub(super) state_folder: Option<(usize, PathBuf)>,
    config_file: Option<PathBuf>,
}

/// Variables that say where programs keep what they write, the one with the last word first, and the
/// folder in theirs that is ours: of systemd, of the XDG base directories, and of the user.
const STATE_FOLDERS: [(&str, &str); 3] = [
    ("STATE_DIRECTORY", ""),
    ("XDG_STATE_HOME", "tidegate"),
    ("HOME", ".local/state/tidegate"),
];

/// What our variables begin with.
const PREFIX: &str = "TIDEGATE_";

/// Names the config file, as `--config` does.
const CONFIG: &str = "TIDEGATE_CONFIG";

// === impl Environment ===

impl Environment {
    /// Picks the variables that concern us; their page will be source number `file`. One that is set
    /// to nothing counts as not set.
    pub(super) fn read(
        file: usize,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        let mut environment = Self {
            own: Vec::new(),
            reference: Reference::default(),
            otel: BTreeMap::new(),
            page: Page::new(file),
            state_folder: None,
            config_file: None,
        };
        let mut variables: Vec<(String, OsString)> = variables
            .into_iter()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
            .filter(|(_, value)| !value.is_empty())
            .collect();
        variables.sort();
        for (name, value) in variables {
            environment.take(&name, value);
        }
        environment
    }

    /// The config file that is named.
    pub(super) fn config_file(&self) -> Option<&Path> {
        self.config_file.as_deref()
    }

    fn take(&mut self, name: &str, value: OsString) {
        if name == CONFIG {
            self.config_file = Some(value.into());
            return;
        }
        if let Some(rank) = STATE_FOLDERS.iter().position(|(known, _)| *known == name) {
            self.take_state_folder(rank, &value);
            return;
        }
        // What is not UTF-8 is no value of any setting, and the finding shows where it is not.
        let value = value.to_string_lossy().into_owned();
        if name.starts_with("OTEL_") {
            self.otel.insert(name.to_owned(), value.clone());
        }
        if let Some(name) = Reference::known(name) {
            let span = self.page.line(name, '=', shown(name, &value));
            self.reference.insert(name, value, span);
        } else if name.starts_with(PREFIX) && !is_of_kubernetes(name, &value) {
            let span = self.page.line(name, '=', shown(name, &value));
            self.own.push(Written {
                path: name.to_owned(),
                origin: Origin::Environment(name.to_owned()),
                node: scalar(span, value),
            });
        }
    }

    fn take_state_folder(&mut self, rank: usize, value: &OsStr) {
        // systemd names several folders with colons between them; the first is the main one.
        let first = value.as_encoded_bytes().split(|byte| *byte == b':').next();
        let Some(folder) = first.and_then(|bytes| str::from_utf8(bytes).ok()) else {
            return;
        };
        if self
            .state_folder
            .as_ref()
            .is_none_or(|(best, _)| rank < *best)
        {
            let inner = STATE_FOLDERS[rank].1;
            self.state_folder = Some((rank, Path::new(folder).join(inner)));
        }
    }
}

/// Who works here, as far as the system says: `ann@laptop`.
pub(crate) fn author() -> String {
    let user = ["USER", "LOGNAME"]
        .into_iter()
        .find_map(|name| env::var(name).ok());
    let machine = fs::read_to_string("/etc/hostname").unwrap_or_default();
    let parts = [user.unwrap_or_default(), machine.trim().to_owned()];
    let known: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    known.join("@")
}

/// The value for a page that people see: not that of a secret.
fn shown<'v>(name: &str, value: &'v str) -> &'v str {
    let is_secret = ["_TOKEN", "_AUTH", "_PASSWORD"]
        .iter()
        .any(|end| name.ends_with(end));
    if is_secret || has_login(value) {
        "…"
    } else {
        value
    }
}

/// Whether Kubernetes set the variable, as it does in every pod for a service that is called
/// `tidegate` or `tidegate-something`. A port of its has a URL where one of ours would have a number.
fn is_of_kubernetes(name: &str, value: &str) -> bool {
    let is_numbered = |rest: &str| rest.starts_with(|first: char| first.is_ascii_digit());
    name.ends_with("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || name.ends_with("_PORT") && value.contains("://")
        || name.split("_PORT_").skip(1).any(is_numbered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_folder_is_that_of_who_knows_best() {
        fn check(variables: &[(&str, &str)], expected: Option<&str>) {
            let variables = variables
                .iter()
                .map(|(name, value)| (name.into(), value.into()));
            let environment = Environment::read(0, variables);
            let folder = environment.state_folder.map(|(_, folder)| folder);
            assert_eq!(folder.as_deref(), expected.map(Path::new));
        }
        let home = ("HOME", "/srv/ann");
        let xdg = ("XDG_STATE_HOME", "/state");
        let systemd = ("STATE_DIRECTORY", "/var/lib/a:/var/lib/b");
        check(&[], None);
        check(&[home], Some("/srv/ann/.local/state/tidegate"));
        check(&[home, xdg], Some("/state/tidegate"));
        check(&[systemd, home, xdg], Some("/var/lib/a"));
        check(
            &[home, ("STATE_DIRECTORY", "")],
            Some("/srv/ann/.local/state/tidegate"),
        );
    }
}
