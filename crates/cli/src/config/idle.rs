//! Settings that somebody wrote and that do nothing, for another one decides that.
//!
//! They are told and not refused: one file may serve a laptop, where counters are in memory, and a fleet.

use super::raw::Origin;
use super::reader::{Known, origin_of};
use super::sections::Config;
use super::value::Engine;

/// Settings that were written in vain, for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Idle {
    /// What they are called where they were written.
    pub(crate) names: Vec<String>,
    reason: Reason,
}

/// Why settings do nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// They are about Redis, and counters are in memory.
    InMemory,
    /// They are about TLS, and the URL of the store is of none.
    InPlainText,
}

/// Settings that are about a store in Redis, or how nodes share it.
const OF_REDIS: [&str; 15] = [
    "store.name",
    "store.password",
    "store.password_file",
    "store.timeout",
    "store.min_timeout",
    "store.consistency",
    "store.standby",
    "store.lease_life",
    "store.remember_denials",
    "store.sync_interval",
    "store.heartbeat",
    "store.member_expiry",
    "store.slack",
    "store.members",
    "store.folder",
];

/// The same for regions.
const REGIONS: &str = "regions";

/// Settings that are about TLS with the store.
const OF_TLS: [&str; 3] = ["store.tls.ca", "store.tls.cert", "store.tls.key"];

/// All settings that were written and do nothing.
pub(super) fn find(config: &Config, known: &[Known]) -> Vec<Idle> {
    let (names, reason) = match &config.store.engine {
        Engine::Memory => {
            let paths = OF_REDIS.into_iter().chain(OF_TLS).chain([REGIONS]);
            (written(known, paths), Reason::InMemory)
        }
        Engine::Redis(url) if url.config.tls.is_none() => {
            (written(known, OF_TLS), Reason::InPlainText)
        }
        Engine::Redis(_) => return Vec::new(),
    };
    if names.is_empty() {
        return Vec::new();
    }
    vec![Idle { names, reason }]
}

// === impl Idle ===

impl Idle {
    /// Those that are flags, if any are.
    pub(crate) fn of_flags(&self) -> Option<Self> {
        let flags = self.names.iter().filter(|name| name.starts_with("--"));
        let names: Vec<String> = flags.cloned().collect();
        (!names.is_empty()).then_some(Self { names, ..*self })
    }

    /// What does nothing, why, and what to do.
    pub(crate) fn note(&self) -> String {
        let names = self.names.join(", ");
        match self.reason {
            Reason::InMemory => format!(
                "without effect: {names}: counters are in the memory of this process; share them with \
                 --store redis://…"
            ),
            Reason::InPlainText => format!(
                "without effect: {names}: the store is reached without TLS; write rediss:// in its URL"
            ),
        }
    }
}

/// Those of `paths` that somebody set, by the name they were set by.
fn written(known: &[Known], paths: impl IntoIterator<Item = &'static str>) -> Vec<String> {
    let set = paths.into_iter().filter_map(|path| {
        let origin = origin_of(known, path)?;
        name(path, origin)
    });
    set.collect()
}

/// What a setting is called by who set it; `None` if nobody did.
fn name(path: &str, origin: &Origin) -> Option<String> {
    match origin {
        Origin::Default | Origin::Assumed(_) => None,
        Origin::File => Some(path.to_owned()),
        Origin::Environment(name) | Origin::Flag(name) => Some(name.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::defaults;
    use super::super::reader::KnownKind;
    use super::*;

    /// A setting that is renamed must not be forgotten here.
    #[test]
    fn every_setting_that_may_be_idle_exists() {
        let known = defaults();
        for path in OF_REDIS.into_iter().chain(OF_TLS).chain([REGIONS]) {
            assert!(known.iter().any(|one| one.path == path), "{path}");
        }
    }

    /// A new setting of the store is about Redis, or it is said here that it is not.
    #[test]
    fn every_setting_of_the_store_is_thought_of() {
        let in_memory = [
            "store.engine",
            "store.max_memory",
            "store.state.file",
            "store.state.interval",
        ];
        for one in defaults() {
            let is_setting = matches!(one.kind, KnownKind::Setting(_));
            let path = one.path.as_str();
            if is_setting && path.starts_with("store.") {
                let is_listed = OF_REDIS.contains(&path) || OF_TLS.contains(&path);
                assert!(is_listed || in_memory.contains(&path), "{path}");
            }
        }
    }
}
