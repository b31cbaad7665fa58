//! Where the rules are.

use std::path::{Path, PathBuf};

use tidegate_rules::Refusals;
use tidegate_rules::document::Code;
use tidegate_store_redis::book::Digest;
use tidegate_store_redis::client::ClientConfig;

use super::store::{Redis, Store};
use crate::config::reader::Section;
use crate::config::value::{CacheFile, Engine, Name, Place, RedisUrl, Words};
use crate::failure::Failure;
use crate::sharing::Sharing;
use crate::watch::WatchedFiles;

/// Where the rules are.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) files: RulesFiles,
    pub(crate) merge_domains: bool,
    pub(crate) refusals: Refusals,
    pub(crate) watch: bool,
    /// The Redis they were pushed to, if they come from there and not from `paths`.
    pub(crate) pushed: Option<PushedPlace>,
    /// How nodes share the limits of the rules; the store says.
    pub(crate) sharing: Sharing,
    /// The rules inside the binary that are in force if none are named.
    pub(crate) built_in: BuiltInRules,
}

/// Rules inside the binary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum BuiltInRules {
    /// The example.
    #[default]
    Example,
    /// A limit for each client address of a gateway.
    Gateway {
        /// The domain in which the gateway asks.
        domain: String,
    },
}

/// Rules in Redis.
#[derive(Clone, Debug)]
pub(crate) struct PushedPlace {
    pub(crate) url: RedisUrl,
    /// Which set of rules, where there are several.
    pub(crate) name: Name,
    /// Where a copy of them is kept, if anywhere.
    pub(crate) cache: Option<PathBuf>,
    /// How the store is let in, if it is the same Redis.
    pub(super) store: Option<Redis>,
}

/// Which files of a folder are rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RulesFiles {
    /// Those named `*.yaml` and `*.yml`, directly in it.
    Yaml,
    /// All of them, those of folders inside included.
    Every,
}

// === impl Rules ===

impl Rules {
    pub(super) fn read(mut section: Section<'_, '_>) -> Self {
        let (paths, pushed) = places(&mut section);
        Self {
            paths,
            pushed,
            files: section.value(
                "files",
                "Which files of a folder are rules",
                RulesFiles::Yaml,
            ),
            merge_domains: section.value(
                "merge_domains",
                "Take the rules of a domain that several files define together",
                false,
            ),
            refusals: section.value(
                "refusals",
                "What a refusal counts where a rule does not say: enforce, or quota as under quota_mode",
                Refusals::Enforce,
            ),
            watch: section.value("watch", "Reload when a file changes, or a version is pushed", true),
            sharing: Sharing::default(),
            built_in: BuiltInRules::default(),
        }
    }

    /// Whether there are files to be watched.
    pub(crate) fn is_watched(&self) -> bool {
        self.watch && !self.paths.is_empty()
    }

    /// The files of the rules.
    pub(crate) fn watched(&self) -> WatchedFiles {
        WatchedFiles {
            paths: self.paths.clone(),
            files: self.files,
        }
    }
}

// === impl PushedPlace ===

impl PushedPlace {
    /// The same without a copy.
    pub(crate) fn without_cache(self) -> Self {
        Self {
            cache: None,
            ..self
        }
    }

    /// What a client is told to be let in.
    pub(crate) fn login(&self) -> Result<ClientConfig, Failure> {
        match &self.store {
            Some(store) => store.login(&self.url),
            None => Ok(self.url.config.clone()),
        }
    }

    /// The same, where the store is known: its password and files of TLS are for the rules too, if both are in
    /// one Redis.
    pub(super) fn beside(self, store: &Store) -> Self {
        let is_same = matches!(&store.engine, Engine::Redis(url)
            if url.config.deployment == self.url.config.deployment);
        Self {
            store: is_same.then(|| store.redis.clone()),
            ..self
        }
    }

    /// Where a copy is kept if nobody says: a file for this Redis and these rules alone, so that no
    /// server starts with those of another.
    fn default_cache(folder: &Path, url: &RedisUrl, name: &Name) -> PathBuf {
        let place = Digest::of(format!("{url} {}", name.0).as_bytes());
        folder.join(format!("rules-{place:.12}"))
    }
}

/// The paths of files, or the Redis.
fn places(section: &mut Section<'_, '_>) -> (Vec<PathBuf>, Option<PushedPlace>) {
    let places: Vec<Place> = section.list(
        "paths",
        "Files of rules and folders of them, or the Redis they were pushed to; none means an example \
         inside the binary",
        Vec::new(),
    );
    let name = section.value(
        "name",
        "Which rules, where several sets of them are in one Redis",
        Name("default".to_owned()),
    );
    let cache: Option<CacheFile> = section.optional(
        "cache",
        "Where a copy of the rules in Redis is kept, or off; by default a file in the state folder",
    );
    let (mut paths, mut urls) = (Vec::new(), Vec::new());
    for place in places {
        match place {
            Place::Path(path) => paths.push(path),
            Place::Redis(url) => urls.push(*url),
        }
    }
    if urls.len() > 1 || !urls.is_empty() && !paths.is_empty() {
        section.fault(
            "paths",
            Code::Conflict,
            "rules come from files or from one Redis, not from both".to_owned(),
            "name the Redis alone, and push the files to it with `tidegate rules push`",
        );
    }
    let pushed = urls.pop().map(|url| PushedPlace {
        cache: match cache {
            Some(CacheFile::Off) => None,
            Some(CacheFile::At(path)) => Some(path),
            None => Some(PushedPlace::default_cache(
                section.state_folder(),
                &url,
                &name,
            )),
        },
        url,
        name,
        store: None,
    });
    (paths, pushed)
}

impl Words for Refusals {
    const EXPECTED: &'static str = "a mode";
    const WORDS: &'static [(&'static str, Self)] =
        &[("enforce", Self::Enforce), ("quota", Self::Quota)];
}

impl Words for RulesFiles {
    const EXPECTED: &'static str = "a kind of files";
    const WORDS: &'static [(&'static str, Self)] = &[("yaml", Self::Yaml), ("every", Self::Every)];
}
