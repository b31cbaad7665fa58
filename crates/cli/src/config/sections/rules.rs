//! Where the rules are.

use std::path::PathBuf;

use tidegate_rules::Refusals;

use crate::config::reader::Section;
use crate::config::value::Words;

/// Where the rules are.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) files: RulesFiles,
    pub(crate) merge_domains: bool,
    pub(crate) refusals: Refusals,
    pub(crate) watch: bool,
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
        Self {
            paths: section.list(
                "paths",
                "Files of rules and folders of them; none means an example inside the binary",
                Vec::new(),
            ),
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
            watch: section.value("watch", "Reload when a file changes", true),
        }
    }

    /// Whether there are files to be watched.
    pub(crate) fn is_watched(&self) -> bool {
        self.watch && !self.paths.is_empty()
    }
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
